"""Every page that registers ops, gradients, conversions, operators or hooks, so that all registries are full."""
# ruff: noqa: F401

from __future__ import annotations

# Laid out by hand, a paragraph a family.
# fmt: off
# isort: off
from dtflab.ops import operators, sendrecv
from dtflab.ops.arrays import (
    constant, diagonal, functions as array_functions, identity, joining, repeating, reshaping, space_batch, stacking,
)
from dtflab.ops.control import (
    cond_context, flow_ops, functions as control_functions, gradients_through_loops, state_ops, while_context,
)
from dtflab.ops.conv import convolution, depthwise, dilation
from dtflab.ops.datasets import batch, calls as dataset_calls, iterator_ops, order, shuffle, sources, threads
from dtflab.ops.examples import example_ops, sequence_ops, serialize_ops
from dtflab.ops.functional import calls as function_calls
from dtflab.ops.images import boxes, colors, png, resize
from dtflab.ops.indexing import arranging, gathering, partitioning, slicing, tensor_scatter
from dtflab.ops.labels import candidate_sampling, ctc_decoding, ctc_loss, edit_distance
from dtflab.ops.linalg import eigen, einsum, factorizations, fourier, matmul, matrices, matrix_functions, solving
from dtflab.ops.lists import (
    optional_ops, tensor_array, tensor_array_ops, tensor_array_row_ops, tensor_list_ops, tensor_list_row_ops,
)
from dtflab.ops.math import binary, complex_numbers, division, elementwise, logic, special, unary
from dtflab.ops.nn import activations, batch_norm, channels, fake_quant, fused, losses, quantize, ranking
from dtflab.ops.pool import fractional, pooling
from dtflab.ops.queues import accumulator_ops, queue_ops, reader_ops
from dtflab.ops.reduce import along_axis, counting, reduction, segments, sets
from dtflab.ops.sampling import draws, stateless
from dtflab.ops.sparse import (
    arithmetic_ops, layout_ops, part_ops, reduction_ops, segment_ops, sparse_tensor, transport_ops,
)
from dtflab.ops.summaries import debug_ops, session_tensors, summary_ops
from dtflab.ops.tables import table_ops
from dtflab.ops.text import csv_ops, elementwise_ops, file_ops, number_ops, part_ops as text_part_ops, regex_ops
from dtflab.ops.training import rules, save_restore, updates
from dtflab.ops.variables import (
    partitioned_variables, reference_ops, reference_variable, resource_ops, resource_variable, scatter_ops, variable,
    variable_methods,
)
