"""tf.initializers: the initializers of variables, and the operations that run them."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.tables.functions import tables_initializer
from dtflab.ops.variables.functions import global_variables_initializer as global_variables
from dtflab.ops.variables.functions import local_variables_initializer as local_variables
from dtflab.ops.variables.functions import variables_initializer as variables
from dtflab.ops.variables.initializers import Constant as constant, GlorotNormal as glorot_normal
from dtflab.ops.variables.initializers import GlorotUniform as glorot_uniform, Identity as identity, Ones as ones
from dtflab.ops.variables.initializers import Orthogonal as orthogonal, RandomNormal as random_normal
from dtflab.ops.variables.initializers import RandomUniform as random_uniform, TruncatedNormal as truncated_normal
from dtflab.ops.variables.initializers import UniformUnitScaling as uniform_unit_scaling
from dtflab.ops.variables.initializers import VarianceScaling as variance_scaling, Zeros as zeros, he_normal, he_uniform
from dtflab.ops.variables.initializers import lecun_normal, lecun_uniform

__getattr__ = _missing_in("tf.initializers", globals())
