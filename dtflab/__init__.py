"""dtflab: TensorFlow 1.x's distributed graph runtime, small enough to read and open enough to look inside.

`import dtflab as tf` runs TF1 programs; this module is their namespace, and the few names that TF1 does not have
(`Cluster`, `viz`, `datasets`, `timeouts`) are the lab's own.

The rooms, lower ones first; a lower one never imports an upper one:
`protos` < `graph` < `ops` < `runtime` < `cluster` < `train` < `viz` < `notebook`, with `datasets` beside `train`.

One step of a session, in the order in which `runtime/` is read:
`session` → `master` → `placer` → `prune` → `partition` → `worker` → `graph_mgr` → `executor` → `rendezvous`.
Beside the chapter: `local` (the cluster of one task), `frames` (loops), `runner` and `clock` (the seam below the
executor), `transport` (the seam between tasks), `devices`, `resources`, `step_stats` and `console`.
"""

from __future__ import annotations

import difflib as _difflib
import importlib as _importlib
from typing import Any as _Any

from dtflab.graph import dtypes as dtypes, errors as errors
from dtflab.graph.convert import (
    constant as constant,
    convert_to_tensor as convert_to_tensor,
    register_tensor_conversion_function as register_tensor_conversion_function,
)
from dtflab.graph.device_spec import DeviceSpec as DeviceSpec
from dtflab.graph.dtypes import (
    DType as DType,
    as_dtype as as_dtype,
    bfloat16 as bfloat16,
    bool as bool,
    complex64 as complex64,
    complex128 as complex128,
    double as double,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    half as half,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    qint8 as qint8,
    qint16 as qint16,
    qint32 as qint32,
    quint8 as quint8,
    quint16 as quint16,
    resource as resource,
    string as string,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    variant as variant,
)
from dtflab.graph.gradients import (
    AggregationMethod as AggregationMethod,
    RegisterGradient as RegisterGradient,
    UnconnectedGradients as UnconnectedGradients,
    gradients as gradients,
)
from dtflab.graph.graph import Graph as Graph
from dtflab.graph.graph_keys import GraphKeys as GraphKeys
from dtflab.graph.importer import import_graph_def as import_graph_def
from dtflab.graph.indexed_slices import IndexedSlices as IndexedSlices
from dtflab.graph.operation import Operation as Operation, Tensor as Tensor
from dtflab.graph.random_seed import get_seed as get_seed, set_random_seed as set_random_seed
from dtflab.graph.scopes import (
    add_to_collection as add_to_collection,
    add_to_collections as add_to_collections,
    colocate_with as colocate_with,
    container as container,
    control_dependencies as control_dependencies,
    device as device,
    get_collection as get_collection,
    get_collection_ref as get_collection_ref,
    get_default_graph as get_default_graph,
    get_default_session as get_default_session,
    name_scope as name_scope,
    reset_default_graph as reset_default_graph,
)
from dtflab.graph.tensor_proto import make_ndarray as make_ndarray, make_tensor_proto as make_tensor_proto
from dtflab.graph.tensor_shape import Dimension as Dimension, TensorShape as TensorShape
from dtflab.ops import all as _all_ops  # noqa: F401 - fills the registry
from dtflab.ops.along_axis import argmax as argmax, argmin as argmin, cumprod as cumprod, cumsum as cumsum
from dtflab.ops.array import (
    ensure_shape as ensure_shape,
    identity as identity,
    identity_n as identity_n,
    rank as rank,
    shape as shape,
    shape_n as shape_n,
    size as size,
    stop_gradient as stop_gradient,
)
from dtflab.ops.casting import (
    angle as angle,
    cast as cast,
    complex as complex,
    conj as conj,
    imag as imag,
    real as real,
    to_bfloat16 as to_bfloat16,
    to_double as to_double,
    to_float as to_float,
    to_int32 as to_int32,
    to_int64 as to_int64,
)
from dtflab.ops.checks import Assert as Assert, check_numerics as check_numerics
from dtflab.ops.clipping import (
    clip_by_average_norm as clip_by_average_norm,
    clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm,
    clip_by_value as clip_by_value,
    global_norm as global_norm,
)
from dtflab.ops.constant import (
    fill as fill,
    linspace as linspace,
    ones as ones,
    ones_like as ones_like,
    placeholder as placeholder,
    placeholder_with_default as placeholder_with_default,
    range as range,
    zeros as zeros,
    zeros_like as zeros_like,
)
from dtflab.ops.control_flow import group as group, no_op as no_op, tuple as tuple
from dtflab.ops.debug import Print as Print, print_ as print
from dtflab.ops.division import (
    div as div,
    div_no_nan as div_no_nan,
    divide as divide,
    floor_div as floor_div,
    floordiv as floordiv,
    floormod as floormod,
    mod as mod,
    realdiv as realdiv,
    truediv as truediv,
    truncatediv as truncatediv,
    truncatemod as truncatemod,
)
from dtflab.ops.gathering import gather as gather, gather_nd as gather_nd, one_hot as one_hot, scatter_nd as scatter_nd
from dtflab.ops.initializers import (
    constant_initializer as constant_initializer,
    glorot_normal_initializer as glorot_normal_initializer,
    glorot_uniform_initializer as glorot_uniform_initializer,
    ones_initializer as ones_initializer,
    random_normal_initializer as random_normal_initializer,
    random_uniform_initializer as random_uniform_initializer,
    truncated_normal_initializer as truncated_normal_initializer,
    uniform_unit_scaling_initializer as uniform_unit_scaling_initializer,
    variance_scaling_initializer as variance_scaling_initializer,
    zeros_initializer as zeros_initializer,
)
from dtflab.ops.joining import concat as concat, split as split, stack as stack, unstack as unstack
from dtflab.ops.linalg import (
    eye as eye,
    matrix_diag as matrix_diag,
    matrix_diag_part as matrix_diag_part,
    matrix_set_diag as matrix_set_diag,
    norm as norm,
    tensordot as tensordot,
    trace as trace,
)
from dtflab.ops.logic import (
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_or as logical_or,
    logical_xor as logical_xor,
    not_equal as not_equal,
    where as where,
    where_v2 as where_v2,
)
from dtflab.ops.math import (
    accumulate_n as accumulate_n,
    add as add,
    add_n as add_n,
    atan2 as atan2,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    pow as pow,
    scalar_mul as scalar_mul,
    squared_difference as squared_difference,
    subtract as subtract,
)
from dtflab.ops.matmul import matmul as matmul, matvec as matvec
from dtflab.ops.random import (
    random_normal as random_normal,
    random_shuffle as random_shuffle,
    random_uniform as random_uniform,
    truncated_normal as truncated_normal,
)
from dtflab.ops.reduction import (
    count_nonzero as count_nonzero,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_logsumexp as reduce_logsumexp,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
)
from dtflab.ops.repeating import (
    broadcast_dynamic_shape as broadcast_dynamic_shape,
    broadcast_static_shape as broadcast_static_shape,
    broadcast_to as broadcast_to,
    pad as pad,
    reverse as reverse,
    tile as tile,
)
from dtflab.ops.reshaping import (
    expand_dims as expand_dims,
    invert_permutation as invert_permutation,
    matrix_transpose as matrix_transpose,
    reshape as reshape,
    squeeze as squeeze,
    transpose as transpose,
)
from dtflab.ops.segments import (
    boolean_mask as boolean_mask,
    dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch,
    segment_sum as segment_sum,
    setdiff1d as setdiff1d,
    unique as unique,
    unsorted_segment_sum as unsorted_segment_sum,
)
from dtflab.ops.slicing import slice as slice, strided_slice as strided_slice
from dtflab.ops.state import (
    assign as assign,
    assign_add as assign_add,
    assign_sub as assign_sub,
    count_up_to as count_up_to,
    is_variable_initialized as is_variable_initialized,
    scatter_add as scatter_add,
    scatter_div as scatter_div,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
    scatter_update as scatter_update,
)
from dtflab.ops.unary import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atanh as atanh,
    ceil as ceil,
    cos as cos,
    cosh as cosh,
    erf as erf,
    erfc as erfc,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    is_finite as is_finite,
    is_inf as is_inf,
    is_nan as is_nan,
    log as log,
    log1p as log1p,
    logical_not as logical_not,
    negative as negative,
    reciprocal as reciprocal,
    rint as rint,
    round as round,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    tan as tan,
    tanh as tanh,
)
from dtflab.ops.variable import (
    Variable as Variable,
    VariableAggregation as VariableAggregation,
    VariableSynchronization as VariableSynchronization,
    disable_resource_variables as disable_resource_variables,
    enable_resource_variables as enable_resource_variables,
    init_scope as init_scope,
    resource_variables_enabled as resource_variables_enabled,
)
from dtflab.ops.variables import (
    all_variables as all_variables,
    assert_variables_initialized as assert_variables_initialized,
    global_variables as global_variables,
    global_variables_initializer as global_variables_initializer,
    initialize_all_variables as initialize_all_variables,
    initialize_local_variables as initialize_local_variables,
    initialize_variables as initialize_variables,
    local_variables as local_variables,
    local_variables_initializer as local_variables_initializer,
    model_variables as model_variables,
    moving_average_variables as moving_average_variables,
    report_uninitialized_variables as report_uninitialized_variables,
    trainable_variables as trainable_variables,
    variables_initializer as variables_initializer,
)
from dtflab.runtime import local as _local, transport as _transport  # noqa: F401 - sessions without a target
from dtflab.runtime.session import InteractiveSession as InteractiveSession, Session as Session

__version__ = "0.1.0"
newaxis = None
lin_space = linspace

# What is loaded when it is first used: name → (module, attribute), or the module itself.
_LAZY = {
    **dict.fromkeys(("ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "RunMetadata", "RunOptions"),
                    "dtflab.protos.config_pb2"),
    "AttrValue": "dtflab.protos.attr_value_pb2",
    "GraphDef": "dtflab.protos.graph_pb2",
    "MetaGraphDef": "dtflab.protos.meta_graph_pb2",
    "NodeDef": "dtflab.protos.node_def_pb2",
    "Cluster": "dtflab.cluster.cluster",
    "timeouts": "dtflab.cluster.timeouts",
    "datasets": "",
    "nn": "",
    "train": "",
    "viz": "",
}  # fmt: skip


def _cluster_master(target: str, config: _Any) -> _Any:
    """The master behind `grpc://…`; the rooms that know of clusters are loaded by the first such session."""
    return _importlib.import_module("dtflab.cluster.connect").master_at(target, config)


_transport.register_scheme("grpc", _cluster_master)


def __getattr__(name: str) -> _Any:
    """Names that are loaded when first used; others get an error that says what is there."""
    if name in _LAZY:
        module = _LAZY[name]
        found = getattr(_importlib.import_module(module), name) if module else _importlib.import_module(f"dtflab.{name}")
        globals()[name] = found
        return found
    if name.startswith("__"):
        raise AttributeError(f"module 'dtflab' has no attribute '{name}'")
    near = _difflib.get_close_matches(name, dir(), n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"dtflab has no '{name}' (yet). If TensorFlow 1 has it, it is not written here.{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY} - {n for n in globals() if n.startswith("_") and not n.startswith("__")})


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
