"""tf.quantization: floats as small integers, by the names that TF1 also has there."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.nn.functions import dequantize, fake_quant_with_min_max_args, fake_quant_with_min_max_args_gradient
from dtflab.ops.nn.functions import fake_quant_with_min_max_vars, fake_quant_with_min_max_vars_gradient
from dtflab.ops.nn.functions import fake_quant_with_min_max_vars_per_channel
from dtflab.ops.nn.functions import fake_quant_with_min_max_vars_per_channel_gradient, quantize, quantize_and_dequantize
from dtflab.ops.nn.functions import quantize_and_dequantize_v2

__getattr__ = _missing_in("tf.quantization", globals())
