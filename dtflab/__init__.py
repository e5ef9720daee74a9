"""dtflab: TensorFlow 1.x's distributed graph runtime, small enough to read and open enough to look inside.

`import dtflab as tf` runs TF1 programs; this module is their namespace, and the few names that TF1 does not have
(`Cluster`, `chaos`, `Credentials`, `timeouts`, `limits`, `simulate_gpus`, `smi`, `discovery`, `explain`, `conformance`,
`watch`, `variables_of`, `check`, `grade`, `predict`, `viz`, `datasets`, `attention`, `regularizers`, `model_parallel`,
`sim`, `grading`, `notebook`, `extend`) are the lab's own. What `dir(tf)` shows is public, and what these modules show
in turn; the rest may move.

The rooms, lower ones first; a lower one never imports an upper one:
`protos` < `base` < `graph` < `files` < `ops` < `machine` < `hardware` < `placement` < `runtime` < `virtual` <
`cluster` < `train` < `data` < `nets` < `sim` < `api` < `viz` < `grading` < `notebook`,
with `datasets` next to `train`, `compat` next to `api`, `python` next to `viz`.

One step of a session, in the order in which `runtime/` is read:
`session` → `master` → `placer` → `prune` → `partition` → `worker` → `graph_mgr` → `executor` → `rendezvous`.
Side pages: `client` (what a client checks and shows), `local` (the cluster of one task), `graph_execution_state` (a
session's graph and where its nodes are), `worker_session` (what a session has on a task), `frames` (loops), `runner`
(the seam below the executor), `function_call` (functions that kernels call), `partial_run`, `step_through` with `steps`
(a step in hand), `transport` (the seam between tasks), `blocked` (what a step waits for), `standstill` (who could end a
wait), `metering` (how busy a task is), `step_rendezvous` (what kernels see of the rendezvous), `pushing` (values that
no consumer has to ask for), `watched_master` (reports its calls), `cell_edges, remembering` (arithmetic of shapes).
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

# Where each name lives. Laid out by hand, a paragraph a file: a name a line would be five pages.
# fmt: off
# isort: off
from dtflab.base import errors
from dtflab.base.garbage import NO_COLLECTION as _NO_COLLECTION, unseen as _unseen

with _NO_COLLECTION, _unseen():  # most of what is loaded: all of it stays
    from dtflab.ops import all as _all_ops
    from dtflab.runtime import transport as _transport
from dtflab.graph.convert import constant, convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.device_spec import DeviceSpec
from dtflab.graph.dtypes import (
    DType, as_dtype, bfloat16, bool, complex64, complex128, double, float16, float32, float64, half, int8, int16, int32,
    int64, qint8, qint16, qint32, quint8, quint16, resource, string, uint8, uint16, uint32, uint64, variant,
)
from dtflab.graph.gradients import (
    AggregationMethod, NoGradient, NotDifferentiable, RegisterGradient, UnconnectedGradients, gradients,
    not_differentiable as no_gradient,
)
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.importer import import_graph_def
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.base.missing_names import missing as _missing
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.random_seed import get_seed, set_random_seed
from dtflab.base.redirect import Redirect as _Redirect
from dtflab.graph.scopes import (
    add_to_collection, add_to_collections, colocate_with, container, control_dependencies, device, get_collection,
    get_collection_ref, get_default_graph, name_scope, reset_default_graph,
)
from dtflab.graph.default_stacks import get_default_session
from dtflab.graph.static_value import get_static_value
from dtflab.graph.tensor_proto import make_ndarray, make_tensor_proto
from dtflab.graph.tensor_shape import Dimension, TensorShape, dimension_at_index, dimension_value
from dtflab.ops.nn.functions import (
    dequantize, fake_quant_with_min_max_args, fake_quant_with_min_max_args_gradient, fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient, fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient, log_sigmoid, quantize, quantize_v2,
)
from dtflab.ops.reduce.functions import (
    arg_max, arg_min, argmax, argmin, count_nonzero, cumprod, cumsum, reduce_all, reduce_any, reduce_logsumexp,
    reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum, segment_max, segment_mean, segment_min, segment_prod,
    segment_sum, unsorted_segment_max, unsorted_segment_mean, unsorted_segment_min, unsorted_segment_prod,
    unsorted_segment_sqrt_n, unsorted_segment_sum,
)
from dtflab.ops.arrays.functions import (
    batch_to_space, batch_to_space_nd, bitcast, broadcast_dynamic_shape, broadcast_static_shape, broadcast_to, cast,
    concat, depth_to_space, diag, diag_part, ensure_shape, expand_dims, fill, guarantee_const, identity, identity_n,
    invert_permutation, linspace, matrix_band_part, matrix_transpose, meshgrid, ones, ones_like, pad, parallel_stack,
    placeholder, placeholder_with_default, range, rank, required_space_to_batch_paddings, reshape, reverse,
    reverse as reverse_v2, shape, shape_n, size, space_to_batch, space_to_batch_nd, space_to_depth, split, squeeze,
    stack, stop_gradient, tile, to_bfloat16, to_complex128, to_complex64, to_double, to_float, to_int32, to_int64,
    transpose, unstack, zeros, zeros_like,
)
from dtflab.ops.indexing.functions import (
    argsort, batch_gather, boolean_mask, dynamic_partition, dynamic_stitch, gather, gather_nd, one_hot, repeat,
    reverse_sequence, roll, scatter_nd, searchsorted, sequence_mask, setdiff1d, slice, sort, sparse_mask, strided_slice,
    unique, unique_with_counts, unravel_index, where, where_v2,
)
from dtflab.ops.text.functions import (
    as_string, decode_base64, decode_csv, decode_raw, encode_base64, matching_files, read_file, reduce_join,
    regex_replace, string_join, string_split, string_strip, string_to_hash_bucket, string_to_hash_bucket_fast,
    string_to_hash_bucket_strong, string_to_number, substr, write_file,
)
from dtflab.ops.assertions.functions import (
    Assert, assert_equal, assert_greater, assert_greater_equal, assert_integer, assert_less, assert_less_equal,
    assert_near, assert_negative, assert_non_negative, assert_non_positive, assert_none_equal, assert_positive,
    assert_proper_iterable, assert_rank, assert_rank_at_least, assert_rank_in, assert_same_float_dtype, assert_scalar,
    assert_type, check_numerics, is_non_decreasing, is_numeric_tensor, is_strictly_increasing, verify_tensor_all_finite,
)
from dtflab.ops.control.case import case, switch_case
from dtflab.ops.math.functions import (
    abs, accumulate_n, acos, acosh, add, add_n, angle, asin, asinh, atan, atan2, atanh, betainc, ceil, complex, conj,
    cos, cosh, digamma, div, div_no_nan, divide, equal, erf, erfc, exp, expm1, floor, floor_div, floordiv, floormod,
    greater, greater_equal, igamma, igammac, imag, is_finite, is_inf, is_nan, lbeta, less, less_equal, lgamma, log,
    log1p, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply, negative, not_equal,
    polygamma, pow, real, realdiv, reciprocal, rint, round, rsqrt, saturate_cast, scalar_mul, sigmoid, sign, sin, sinh,
    sqrt, square, squared_difference, subtract, tan, tanh, truediv, truncatediv, truncatemod, zeta,
)
from dtflab.ops.math.clipping import clip_by_average_norm, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from dtflab.ops.control.cond import cond
from dtflab.ops.reduce.confusion_matrix import confusion_matrix
from dtflab.ops.control.functions import group, no_op, tuple
from dtflab.ops.reduce.histograms import bincount, histogram_fixed_width, histogram_fixed_width_bins
from dtflab.ops.control.critical_section import CriticalSection
from dtflab.ops.linalg.functions import (
    cholesky, cholesky_solve, cross, einsum, eye, hessians, matmul, matrix_determinant, matrix_diag, matrix_diag_part,
    matrix_inverse, matrix_set_diag, matrix_solve, matrix_solve_ls, matrix_square_root, matrix_triangular_solve, matvec,
    norm, qr, self_adjoint_eig, self_adjoint_eigvals, sparse_matmul, svd, tensordot, trace,
)
from dtflab.ops.functional.functions import (
    custom_gradient, foldl, foldr, grad_pass_through, map_fn, numpy_function, py_func, py_function, scan,
)
from dtflab.ops.summaries.functions import Print, print_ as print, timestamp
from dtflab.ops.labels.functions import edit_distance
from dtflab.ops.linalg.spectral import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from dtflab.ops.variables.initializers import (
    constant_initializer, glorot_normal_initializer, glorot_uniform_initializer, ones_initializer,
    orthogonal_initializer, random_normal_initializer, random_uniform_initializer, truncated_normal_initializer,
    uniform_unit_scaling_initializer, variance_scaling_initializer, zeros_initializer,
)
from dtflab.ops.tables.functions import initialize_all_tables, tables_initializer
from dtflab.ops.examples.functions import (
    FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature, decode_json_example, parse_example,
    parse_single_example, parse_single_sequence_example, parse_tensor, serialize_tensor,
)
from dtflab.ops.variables.partitioned_variables import (
    fixed_size_partitioner, min_max_variable_partitioner, variable_axis_size_partitioner,
)
from dtflab.ops.conv.functions import extract_image_patches
from dtflab.ops.queues.functions import (
    ConditionalAccumulator, ConditionalAccumulatorBase, FIFOQueue, FixedLengthRecordReader, IdentityReader,
    PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue, ReaderBase, SparseConditionalAccumulator,
    TextLineReader, TFRecordReader, WholeFileReader,
)
from dtflab.ops.sampling.functions import (
    multinomial, random_gamma, random_normal, random_poisson, random_shuffle, random_uniform, truncated_normal,
)
from dtflab.ops.images.functions import random_crop
from dtflab.ops.variables.functions import (
    all_variables, assert_variables_initialized, assign, assign_add, assign_sub, batch_scatter_update, count_up_to,
    global_variables, global_variables_initializer, initialize_all_variables, initialize_local_variables,
    initialize_variables, is_variable_initialized, local_variables, local_variables_initializer, model_variables,
    moving_average_variables, report_uninitialized_variables, scatter_add, scatter_div, scatter_max, scatter_min,
    scatter_mul, scatter_nd_add, scatter_nd_sub, scatter_nd_update, scatter_sub, scatter_update, tensor_scatter_add,
    tensor_scatter_add as tensor_scatter_nd_add, tensor_scatter_max as tensor_scatter_nd_max,
    tensor_scatter_min as tensor_scatter_nd_min, tensor_scatter_sub, tensor_scatter_sub as tensor_scatter_nd_sub,
    tensor_scatter_update, tensor_scatter_update as tensor_scatter_nd_update, trainable_variables,
    variables_initializer,
)
from dtflab.ops.summaries.session_tensors import delete_session_tensor, get_session_handle, get_session_tensor
from dtflab.ops.sparse.functions import (
    deserialize_many_sparse, serialize_many_sparse, serialize_sparse, sparse_add, sparse_concat, sparse_fill_empty_rows,
    sparse_maximum, sparse_merge, sparse_minimum, sparse_reduce_max, sparse_reduce_max_sparse, sparse_reduce_sum,
    sparse_reduce_sum_sparse, sparse_reorder, sparse_reset_shape, sparse_reshape, sparse_retain, sparse_segment_mean,
    sparse_segment_sqrt_n, sparse_segment_sum, sparse_slice, sparse_softmax, sparse_split, sparse_tensor_dense_matmul,
    sparse_tensor_to_dense, sparse_to_dense, sparse_to_indicator, sparse_transpose,
)
from dtflab.ops.sparse.sparse_tensor import (
    SparseTensor, SparseTensorValue, convert_to_tensor_or_sparse_tensor, sparse_placeholder,
)
from dtflab.ops.variables.get_variable import make_template
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.variables.policies import (
    VariableAggregation, VariableSynchronization, disable_resource_variables, enable_resource_variables,
    resource_variables_enabled, variable_creator_scope,
)
from dtflab.ops.variables.variable import Variable, is_tensor
from dtflab.ops.control.functions import init_scope
from dtflab.ops.variables.get_variable import (
    create_partitioned_variables, get_local_variable, get_variable, no_regularizer, variable_op_scope,
)
from dtflab.ops.variables.variable_scope import AUTO_REUSE, VariableScope, get_variable_scope, variable_scope
from dtflab.ops.control.while_loop import while_loop
from dtflab.runtime.session import InteractiveSession, Session
if _TYPE_CHECKING:  # what `_LAZY` and `_MODULES` load on first use
    from dtflab import compat, data, datasets, extend, grading, notebook, python, sim, train, viz
    from dtflab.api import (
        app, bitwise, debugging, dtypes, flags, gfile, graph_util, image, initializers, io, linalg, logging, lookup,
        losses, manip, math, metrics, nest, nn, python_io, quantization, queue, random, raw_ops, saved_model, sets,
        signal, sparse, spectral, strings, summary, test, version,
    )
    from dtflab.api.version import COMPILER_VERSION, GIT_VERSION
    from dtflab.base.credentials import Credentials
    from dtflab.base.errors import OpError
    from dtflab.base.limits import limits
    from dtflab.base.tf_logging import get_logger
    from dtflab.cluster.chaos import chaos
    from dtflab.cluster.cluster import Cluster
    from dtflab.cluster.resources_held import variables_of
    from dtflab.base.timeouts import timeouts
    from dtflab.files import timeline
    from dtflab.grading.choices import predict
    from dtflab.grading.grade import check, grade
    from dtflab.graph.dtypes import (
        QUANTIZED_DTYPES, bool_ref, float32_ref, float64_ref, half_ref, int32_ref, int64_ref, resource_ref, string_ref,
    )
    from dtflab.graph.graph_def import (
        GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, GRAPH_DEF_VERSION_MIN_PRODUCER,
    )
    from dtflab.machine.discovery import discovery
    from dtflab.machine.hosts import simulate_gpus
    from dtflab.machine.smi import smi
    from dtflab.machine.watch import watch
    from dtflab.nets import attention, layers, model_parallel, regularizers
    from dtflab.protos.attr_value_pb2 import AttrValue
    from dtflab.protos.config_pb2 import (
        ConfigProto, GPUOptions, GraphOptions, OptimizerOptions, RunMetadata, RunOptions,
    )
    from dtflab.protos.event_pb2 import Event, LogMessage, SessionLog
    from dtflab.protos.graph_pb2 import GraphDef
    from dtflab.protos.meta_graph_pb2 import MetaGraphDef
    from dtflab.protos.node_def_pb2 import NodeDef
    from dtflab.protos.summary_pb2 import HistogramProto, Summary, SummaryMetadata
    from dtflab.viz.conformance import conformance
    from dtflab.viz.explain import explain
# isort: on
# fmt: on

__version__ = "0.1.0"
VERSION = "1.15.0"  # as `tf.version.VERSION`: which TensorFlow this behaves as
newaxis = None
lin_space = linspace

# Names whose module is loaded on first use: name → module.
_LAZY = {
    **dict.fromkeys(("ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "RunMetadata", "RunOptions"),
                    "dtflab.protos.config_pb2"),
    "AttrValue": "dtflab.protos.attr_value_pb2",
    "GraphDef": "dtflab.protos.graph_pb2",
    "MetaGraphDef": "dtflab.protos.meta_graph_pb2",
    "NodeDef": "dtflab.protos.node_def_pb2",
    "Cluster": "dtflab.cluster.cluster",
    "chaos": "dtflab.cluster.chaos",
    "Credentials": "dtflab.base.credentials",
    "timeouts": "dtflab.base.timeouts",
    "limits": "dtflab.base.limits",
    "watch": "dtflab.machine.watch",
    "variables_of": "dtflab.cluster.resources_held",
    "explain": "dtflab.viz.explain",
    "conformance": "dtflab.viz.conformance",
    "simulate_gpus": "dtflab.machine.hosts",
    "smi": "dtflab.machine.smi",
    "discovery": "dtflab.machine.discovery",
    "check": "dtflab.grading.grade",
    "grade": "dtflab.grading.grade",
    "predict": "dtflab.grading.choices",
    "get_logger": "dtflab.base.tf_logging",
    "OpError": "dtflab.base.errors",
    **dict.fromkeys(("bool_ref", "float32_ref", "float64_ref", "half_ref", "int32_ref", "int64_ref", "string_ref",
                     "resource_ref"), "dtflab.graph.dtypes"),
    "QUANTIZED_DTYPES": "dtflab.graph.dtypes",
    **dict.fromkeys(("GIT_VERSION", "COMPILER_VERSION"), "dtflab.api.version"),
    **dict.fromkeys(("GRAPH_DEF_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER"),
                    "dtflab.graph.graph_def"),
    **dict.fromkeys(("HistogramProto", "Summary", "SummaryMetadata"), "dtflab.protos.summary_pb2"),
    **dict.fromkeys(("Event", "LogMessage", "SessionLog"), "dtflab.protos.event_pb2"),
}  # fmt: skip

# The files of dtflab/api.
_NAMESPACES = (
    "app bitwise debugging dtypes flags gfile graph_util image initializers io linalg logging lookup losses manip "
    "math metrics nest nn python_io quantization queue random raw_ops saved_model sets signal sparse spectral strings "
    "summary test version"
).split()

_PACKAGES = "compat data datasets extend grading notebook python sim train viz".split()

_MODULES = {
    **{name: f"dtflab.{name}" for name in _PACKAGES},
    **{name: f"dtflab.api.{name}" for name in _NAMESPACES},
    **{name: f"dtflab.nets.{name}" for name in ("attention", "layers", "model_parallel", "regularizers")},
    "errors": "dtflab.base.errors",
    "timeline": "dtflab.files.timeline",
}


def _module_of(path: str) -> str | None:
    """The module behind `import dtflab.nn` or `import dtflab.compat.v1.nn`; None for any other path."""
    if not path.startswith("dtflab."):
        return None
    name = path.removeprefix("dtflab.compat.v1.").removeprefix("dtflab.")
    return _MODULES.get(name) if _MODULES.get(name) != path else None


_sys.meta_path.append(_Redirect(_module_of))  # after what finds the files of the package


def _local_master(
    target: str, config: ConfigProto | None, credentials: Credentials | None = None
) -> _transport.MasterInterface:
    """The master behind a session without a target; what runs steps is loaded by the first one."""
    from dtflab.runtime.local import DirectMaster

    return DirectMaster(config)


def _cluster_master(
    target: str, config: ConfigProto | None, credentials: Credentials | None = None
) -> _transport.MasterInterface:
    """The master behind `grpc://…`; the rooms that know of clusters are loaded by the first such session."""
    from dtflab.cluster.connect import master_at

    return master_at(target, config, credentials)


_transport.register_scheme("", _local_master)
_transport.register_scheme("grpc", _cluster_master)


def __getattr__(name: str) -> _Any:
    """Names that are loaded when first used; others get an error that says what is there."""
    if name in _MODULES:
        found = globals()[name] = _importlib.import_module(_MODULES[name])
        return found
    if name in _LAZY:
        found = globals()[name] = getattr(_importlib.import_module(_LAZY[name]), name)
        return found
    raise _missing("tf", name, __dir__())


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *_LAZY, *_MODULES} - {n for n in globals() if n.startswith("_") and not n.startswith("__")}
    )


def disable_v2_behavior() -> None:
    """Does nothing: dtflab behaves as TensorFlow does after this call."""


def disable_eager_execution() -> None:
    """Does nothing: there are only graphs here."""


def executing_eagerly() -> _Any:
    """False: there are only graphs here."""
    return False


def load_ipython_extension(ipython: _Any) -> None:
    """`%load_ext dtflab`: the magics and rich views."""
    from dtflab.notebook import load

    load(ipython)


def unload_ipython_extension(ipython: _Any) -> None:
    """`%unload_ext dtflab`: stops all clusters of the kernel."""
    from dtflab.notebook import unload

    unload(ipython)
