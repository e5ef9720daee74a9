"""Generated inputs for every op: what `test_every_op.py` runs on dtflab and on TensorFlow.

Families with a file of their own in this folder are found there. An op that only means something in a program of
several steps (a queue, a reader) is named in `IN_PROGRAMS` of its file, with the test that runs it on both.

A function per family of ops gets a `Values` (a dtype and a seeded generator) and gives `Example`s. Whatever is in
the registry and not here is a failure of that test.

Rule: ordinary values stay clear of whole and half numbers, where derivatives jump; `special` ones (NaN, infinities,
the ends of the integers) are for values only.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes, op_registry
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape


@dataclasses.dataclass(frozen=True)
class Var:
    """An input that is a variable, of either family, with this value."""

    value: np.ndarray


@dataclasses.dataclass(frozen=True)
class Example:
    """One use of an op. `smooth` if finite differences say what the gradient is.

    `gradient` is False where TensorFlow's own gradient function fails on the example.
    """

    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    smooth: bool = True
    gradient: bool = True


class Values:
    """Generated values of one dtype."""

    def __init__(self, op: str, dtype: DType) -> None:
        self.op = op
        self.dtype = dtype
        self.random = np.random.default_rng(zlib.crc32(f"{op} {dtype.name}".encode()))

    def __call__(self, *inputs: Any, smooth: bool = True, gradient: bool = True, **attrs: Any) -> Example:
        return Example(inputs, attrs, smooth, gradient)

    def array(self, *shape: int, low: int = -3, high: int = 3) -> np.ndarray:
        """Ordinary values between `low` and `high`."""
        kind = self.dtype
        if kind == dtypes.string:
            words = np.array([b"", b"a", b"bc", "dé".encode(), b"\0\xff"], object)
            found = np.empty(shape, object)
            found[...] = words[self.random.integers(0, len(words), shape)]
            return found
        if kind.is_bool:
            return self.random.integers(0, 2, shape).astype(bool)
        if kind.is_unsigned:
            low, high = max(low, 0), high + 3
        whole = self.random.integers(low, high, shape)
        if kind.is_floating or kind.is_complex:
            whole = whole + self.random.uniform(0.15, 0.4, shape)
            if kind.is_complex:
                whole = whole + 1j * (self.random.integers(low, high, shape) + self.random.uniform(0.15, 0.4, shape))
        return np.asarray(whole).astype(kind.as_numpy_dtype)

    def positive(self, *shape: int) -> np.ndarray:
        return self.array(*shape, low=1, high=4)

    def within(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Floats between two bounds."""
        values = self.random.uniform(low, high, shape)
        if self.dtype.is_complex:
            values = values + 1j * self.random.uniform(low, high, shape)
        return np.asarray(values).astype(self.dtype.as_numpy_dtype)

    def special(self) -> np.ndarray:
        """Values at which formulas break."""
        kind = self.dtype
        if kind.is_floating:
            largest = float(kind.max) ** 0.75  # its inverse is no subnormal, which TensorFlow takes for zero
            return np.array(
                [np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, 0.5, -2.5, largest, -largest, 1e-3],
                kind.as_numpy_dtype,
            )
        if kind.is_complex:
            return np.array([0, 1, -1, 1j, -1j, 0.5 - 2j], kind.as_numpy_dtype)
        if kind.is_integer:
            return np.array([kind.min, kind.max, 0, 1, 2, kind.max // 2], kind.as_numpy_dtype)
        return self.array(4)

    def index(self, bound: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
        return self.random.integers(0, bound, shape).astype(dtype)


Family = Callable[[Values], list[Example]]
EXAMPLES: dict[str, Family] = {}
_ANY = [
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.int8, dtypes.bool,
    dtypes.string, dtypes.complex64, dtypes.float16, dtypes.bfloat16, dtypes.uint16,
]  # fmt: skip


def examples(*ops: str) -> Callable[[Family], Family]:
    def register(family: Family) -> Family:
        for op in ops:
            assert op not in EXAMPLES, op
            EXAMPLES[op] = family
        return family

    return register


def main_attr(op_def: op_registry.OpDef) -> str:
    """The type attribute that the examples run through: the first that allows more than integers, or the first."""
    found = [name for arg in (*op_def.inputs, *op_def.outputs) if (name := arg.type_attr or arg.type_list_attr)]
    wide = [name for name in found if any(d.is_floating or d.is_complex for d in op_def.attrs[name].allowed or _ANY)]
    return (wide or found or [""])[0]


def dtypes_of(op_def: op_registry.OpDef) -> list[DType]:
    """All dtypes that the interface allows, or a choice where it allows any."""
    attr = op_def.attrs.get(main_attr(op_def))
    if attr is None:
        fixed = op_def.inputs[0].type if op_def.inputs else None
        return [dtypes.float32 if fixed in (None, dtypes.resource) else fixed]
    allowed = _ANY if attr.allowed is None else attr.allowed
    return [d for d in allowed if d == dtypes.string or (d.size and not d.is_quantized)]


def examples_of(op: str, dtype: DType) -> list[Example]:
    return EXAMPLES[op](Values(op, dtype))


# -- element by element -----------------------------------------------------------------------------------------


@examples(
    "Abs", "Neg", "Sign", "Square", "Exp", "Expm1", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Asinh", "Atan",
    "Sigmoid", "Erf", "Erfc", "Floor", "Ceil", "Rint", "Round", "Conj", "IsNan", "IsInf", "IsFinite", "Softplus",
    "Softsign", "Relu", "Relu6", "Elu", "Selu", "Invert", "LogicalNot", "ZerosLike", "OnesLike", "Identity",
    "Snapshot", "StopGradient", "PreventGradient", "Digamma", "Lgamma",
    "PopulationCount", "DebugGradientIdentity", "DeepCopy", "GuaranteeConst",
)  # fmt: skip
def unary(v: Values) -> list[Example]:
    found = [v(v.array(2, 3)), v(v.array()), v(v.array(0, 2))]
    if v.op == "Erf" and v.dtype == dtypes.float64:
        return found  # TensorFlow's erf of infinity is NaN
    if v.op == "Round" and v.dtype.is_integer:
        return []  # TensorFlow's is 0
    return [*found, v(v.special(), smooth=False)]


_REAL = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


@examples("Real", "Imag", "ComplexAbs", "Angle")
def parts_of_complex(v: Values) -> list[Example]:
    real = _REAL[v.dtype]
    return [v(v.array(2, 3), Tout=real), v(v.array(), Tout=real), v(v.special(), Tout=real, smooth=False)]


@examples("Complex")
def complex_(v: Values) -> list[Example]:
    whole = {d: c for c, d in _REAL.items()}[v.dtype]
    return [v(v.array(2, 3), v.array(2, 3), Tout=whole), v(v.array(2, 3), v.array(3), Tout=whole)]


@examples("Log", "Log1p", "Sqrt", "Rsqrt", "Acosh", "Inv", "Reciprocal")
def unary_positive(v: Values) -> list[Example]:
    found = [v(v.positive(2, 3)), v(v.positive())]
    if v.op == "Log1p" and v.dtype.is_complex:
        return found  # TensorFlow's Log1p(-1) has NaN as its imaginary part
    return [*found, v(v.special(), smooth=False)]


@examples("Asin", "Acos", "Atanh")
def unary_unit(v: Values) -> list[Example]:
    return [v(v.within(-0.9, 0.9, 2, 3)), v(v.within(-0.9, 0.9)), v(v.special(), smooth=False)]


@examples("LeakyRelu")
def leaky_relu(v: Values) -> list[Example]:
    return [
        v(v.array(2, 3)),
        v(v.array(2, 3), alpha=0.5),
        v(v.array(3), alpha=1.5),
        v(v.special(), smooth=False),
    ]


@examples(
    "Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "MulNoNan", "DivNoNan", "Less",
    "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Atan2",
)  # fmt: skip
def binary(v: Values) -> list[Example]:
    shapes = [
        ((2, 3), (2, 3)),
        ((2, 3), ()),
        ((), (3,)),
        ((2, 1, 3), (4, 1)),
        ((0, 3), (1, 3)),
        ((2, 3), (3,)),
    ]
    found = [v(v.array(*a), v.array(*b)) for a, b in shapes]
    s = v.special()
    return [*found, v(s[:, None], s[None, :], smooth=False)]


@examples("Equal", "NotEqual", "ApproximateEqual")
def equality(v: Values) -> list[Example]:
    a = v.array(2, 3)
    found = [v(a, a), v(a, v.array(2, 3))]
    if v.op != "ApproximateEqual":
        found += [v(v.array(2, 1), v.array(3)), v(v.special()[:, None], v.special()[None])]
        found += [v(a, v.array(4), incompatible_shape_error=False)]
    return found


@examples("Div", "RealDiv", "FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod", "Mod")
def division(v: Values) -> list[Example]:
    found = [
        v(v.array(2, 3), v.positive(2, 3)),
        v(v.array(2, 3), v.positive()),
        v(v.array(3), v.positive(2, 1)),
    ]
    if v.dtype.is_floating:
        s = v.special()
        found.append(v(s[:, None], s[None, :], smooth=False))
    elif v.dtype.is_integer and not v.dtype.is_unsigned:
        found.append(
            v(
                np.array([7, -7, 7, -7, 0, -1]).astype(v.dtype.as_numpy_dtype),
                np.array([3, 3, -3, -3, -3, 2]).astype(v.dtype.as_numpy_dtype),
            )
        )
    return found


@examples("Pow")
def power(v: Values) -> list[Example]:
    if v.dtype.is_integer:
        small = np.array([0, 1, 2, 3]).astype(v.dtype.as_numpy_dtype)
        return [v(v.array(3), small[2]), v(small, small), v(v.array(2, 1), small)]
    found = [
        v(v.positive(2, 3), v.array(2, 3)),
        v(v.positive(2, 3), v.array()),
        v(v.positive(3), v.array(2, 1)),
    ]
    if v.dtype.is_floating:
        found.append(v(v.special()[:, None], v.special()[None, :], smooth=False))
    return found


@examples("Xdivy", "Xlogy", "Xlog1py")
def x_times_function(v: Values) -> list[Example]:
    zero = np.zeros(3, v.dtype.as_numpy_dtype)
    return [
        v(v.array(2, 3), v.positive(3)),
        v(zero, v.array(3) * 0, smooth=False),
        v(v.array(2, 1), v.positive(3)),
    ]


@examples("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad")
def gradient_from_output(v: Values) -> list[Example]:
    return [v(v.positive(2, 3), v.array(2, 3)), v(v.positive(), v.array())]


@examples("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad")
def gradient_of_activation(v: Values) -> list[Example]:
    return [v(v.array(2, 3), v.array(2, 3)), v(v.array(4), np.zeros(4, v.dtype.as_numpy_dtype), smooth=False)]


@examples("Select")
def select(v: Values) -> list[Example]:
    flags = np.array([True, False])
    return [
        v(np.array([[True, False, True], [False, False, True]]), v.array(2, 3), v.array(2, 3)),
        v(flags, v.array(2, 3), v.array(2, 3)),
        v(np.array(True), v.array(2, 3), v.array(2, 3)),
    ]


@examples("SelectV2")
def select_v2(v: Values) -> list[Example]:
    flags = np.array([True, False])
    return [
        v(flags[:, None], v.array(3), v.array(2, 3)),
        v(flags[0], v.array(2), v.array()),
        v(flags, v.array(), v.array(3, 2)),
    ]


@examples("ClipByValue")
def clip_by_value(v: Values) -> list[Example]:
    if v.dtype.is_complex:
        return []  # which of two complex numbers is smaller?
    one = np.ones((), v.dtype.as_numpy_dtype)
    crossing = v(v.array(2, 3), v.array(2, 3), v.array(2, 3), smooth=False)
    return [v(v.array(2, 3), one, one + one), v(v.array(2, 3), v.array(2, 3) * 0, v.positive(2, 3)), crossing]


@examples("Cast")
def cast(v: Values) -> list[Example]:
    if v.dtype == dtypes.string:
        return []
    targets = [d for d in _ANY if d != dtypes.string and not (v.dtype.is_complex and d.is_integer)]
    low = 0 if any(d.is_unsigned for d in targets) else -3
    found = [v(v.array(2, 3, low=low), DstT=d) for d in targets]
    if v.dtype.is_floating:
        found += [v(v.array(4), DstT=d, Truncate=True) for d in (dtypes.float16, dtypes.bfloat16)]
    return found


@examples("Bitcast")
def bitcast(v: Values) -> list[Example]:
    if v.dtype.is_bool:
        return []
    same = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.int32, 8: dtypes.int64, 16: dtypes.complex128}[v.dtype.size]
    found = [v(v.array(2, 3), type=same)]
    if v.dtype.size > 1:
        found.append(v(v.array(2, 3), type=dtypes.uint8))
    return found


@examples("CheckNumerics", "CheckNumericsV2")
def check_numerics(v: Values) -> list[Example]:
    return [v(v.array(2, 3), message="here")]


@examples("AddN", "AccumulateNV2")
def add_n(v: Values) -> list[Example]:
    shape = {"shape": [2, 3]} if v.op == "AccumulateNV2" else {}
    return [v([v.array(2, 3) for _ in range(n)], **shape) for n in (1, 2, 5)]


@examples("L2Loss")
def l2_loss(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array())]


# -- matrices and reductions ----------------------------------------------------------------------------------------


@examples("MatMul")
def matmul(v: Values) -> list[Example]:
    found = [
        v(v.array(2, 3), v.array(3, 4)),
        v(v.array(0, 3), v.array(3, 4)),
        v(v.array(2, 0), v.array(0, 4)),
    ]
    found += [
        v(v.array(3, 2), v.array(3, 4), transpose_a=True),
        v(v.array(2, 3), v.array(4, 3), transpose_b=True),
    ]
    return [*found, v(v.array(3, 2), v.array(4, 3), transpose_a=True, transpose_b=True)]


@examples("_UnaryOpsComposition")
def unary_ops_composition(v: Values) -> list[Example]:
    names = ([b"Square"], [b"Tanh", b"Neg", b"Exp"], [b"Abs", b"Sqrt", b"Relu", b"Log1p", b"Sigmoid"])
    return [v(v.array(2, 3), op_names=list(n)) for n in names]


@examples("_FusedMatMul")
def fused_matmul(v: Values) -> list[Example]:
    functions: list[list[str]] = [[], ["Relu"], ["Relu6"], ["Elu"], ["LeakyRelu"], ["Tanh"], ["Sigmoid"]]
    found = [
        v(v.array(2, 3), v.array(3, 4), [v.array(4)], fused_ops=["BiasAdd", *f], leakyrelu_alpha=0.3) for f in functions
    ]
    turned = {"fused_ops": ["BiasAdd"], "transpose_a": True, "transpose_b": True}
    return [*found, v(v.array(3, 2), v.array(4, 3), [v.array(4)], **turned)]


@examples("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(v: Values) -> list[Example]:
    extra = {"Tout": v.dtype} if v.op == "BatchMatMulV3" else {}
    found = [
        v(v.array(2, 2, 3), v.array(2, 3, 4), **extra),
        v(v.array(2, 3, 2), v.array(2, 4, 3), adj_x=True, adj_y=True, **extra),
    ]
    if v.op != "BatchMatMul":
        found += [
            v(v.array(2, 1, 2, 3), v.array(3, 3, 2), **extra),
            v(v.array(2, 3), v.array(4, 3, 2), **extra),
        ]
    return found


@examples("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm")
def reduction(v: Values) -> list[Example]:
    axes = [0, 1, -1, [0], [0, 1], [], [-1, 0]]
    found = [v(v.array(2, 3), np.array(a, np.int32), keep_dims=k) for a in axes for k in (False, True)]
    found += [v(v.array(2, 3, 2), np.array([0, 2], np.int64)), v(v.array(), np.array([], np.int32))]
    if v.op in ("Sum", "Prod"):
        found.append(v(v.array(0, 3), np.array(0, np.int32)))
    return found


@examples("All", "Any")
def logical_reduction(v: Values) -> list[Example]:
    flags = v.random.integers(0, 2, (2, 3)).astype(bool)
    kind = v.dtype.as_numpy_dtype  # of the axes
    found = [v(flags, np.array(a, kind), keep_dims=k) for a in (0, -1, [0, 1], []) for k in (False, True)]
    return [*found, v(flags[:0], np.array(0, kind)), v(flags[0, 0], np.array([], kind))]


@examples("ArgMax", "ArgMin")
def arg_extreme(v: Values) -> list[Example]:
    found = [v(v.array(2, 3), np.array(a, np.int32)) for a in (0, 1, -1)]
    return [
        *found,
        v(v.array(4), np.array(0, np.int64), output_type=dtypes.int32),
        v(v.array(2, 3, 4), np.array(1, np.int32)),
    ]


@examples("Cumsum", "Cumprod")
def cumulative(v: Values) -> list[Example]:
    flags = [(e, r) for e in (False, True) for r in (False, True)]
    return [v(v.array(2, 3), np.array(a, np.int32), exclusive=e, reverse=r) for e, r in flags for a in (0, -1)]


@examples("SegmentSum")
def segments(v: Values) -> list[Example]:
    return [v(v.array(4, 2), np.array([0, 0, 1, 1], np.int32)), v(v.array(3), np.array([0, 2, 2], np.int64))]


@examples("UnsortedSegmentSum")
def unsorted_segments(v: Values) -> list[Example]:
    three = np.array(3, np.int32)
    found = [
        v(v.array(4, 2), np.array([2, 0, 2, -1], np.int32), three),
        v(v.array(2, 2), np.array([[0, 1], [1, 2]], np.int64), three),
    ]
    return [*found, v(v.array(0, 2), np.zeros(0, np.int32), three)]


@examples("TopKV2")
def top_k(v: Values) -> list[Example]:
    found = [v(v.array(2, 5), np.array(k, np.int32), sorted=True) for k in (1, 3, 5)]
    distinct = v.random.permutation(80).reshape(2, 40).astype(v.dtype.as_numpy_dtype)
    return [*found, v(distinct, np.array(2, np.int32)), v(v.array(2, 40), np.array(2, np.int32))]


@examples("InTopK", "InTopKV2")
def in_top_k(v: Values) -> list[Example]:
    logits = np.array([[1.0, 3, 2], [3, 2, 1]], np.float32)
    target = np.array([2, 2], v.dtype.as_numpy_dtype)
    if v.op == "InTopK":
        return [v(logits, target, k=2)]
    return [v(logits, target, np.array(2, v.dtype.as_numpy_dtype))]


@examples("BroadcastGradientArgs", "BroadcastArgs")
def broadcast_args(v: Values) -> list[Example]:
    pairs = [([2, 3], [2, 3]), ([2, 1], [3]), ([], [2, 3]), ([1, 1], [1]), ([4, 1, 3], [2, 1])]
    return [v(np.array(a, v.dtype.as_numpy_dtype), np.array(b, v.dtype.as_numpy_dtype)) for a, b in pairs]


# -- shapes and pieces ------------------------------------------------------------------------------------------------


@examples("Shape", "Size", "Rank")
def about_shape(v: Values) -> list[Example]:
    found = [v(v.array(2, 3)), v(v.array()), v(v.array(0, 2))]
    return found if v.op == "Rank" else [*found, v(v.array(2), out_type=dtypes.int64)]


@examples("ShapeN")
def shape_n(v: Values) -> list[Example]:
    return [v([v.array(2, 3), v.array()]), v([v.array(3)], out_type=dtypes.int64)]


@examples("Reshape")
def reshape(v: Values) -> list[Example]:
    shapes = [[3, 2], [-1], [6], [2, -1], [1, 6, 1]]
    return [v(v.array(2, 3), np.array(s, t)) for s in shapes for t in (np.int32, np.int64)] + [
        v(v.array(0, 2), np.array([2, 0, 5], np.int32))
    ]


@examples("ExpandDims")
def expand_dims(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array(a, t)) for a in (0, 1, 2, -1, -3) for t in (np.int32, np.int64)]


@examples("Squeeze")
def squeeze(v: Values) -> list[Example]:
    return [
        v(v.array(1, 2, 1)),
        v(v.array(1, 2, 1), squeeze_dims=[0]),
        v(v.array(1, 2, 1), squeeze_dims=[-1, 0]),
        v(v.array(2)),
    ]


@examples("EnsureShape")
def ensure_shape(v: Values) -> list[Example]:
    shapes = [[2, 3], [None, 3]]
    return [v(v.array(2, 3), shape=s) for s in shapes]


@examples("Transpose", "ConjugateTranspose")
def transpose(v: Values) -> list[Example]:
    found = [v(v.array(2, 3), np.array([1, 0], np.int32)), v(v.array(2, 3, 4), np.array([2, 0, 1], np.int64))]
    if v.op == "Transpose":  # the other aborts TensorFlow's process on scalars
        found.append(v(v.array(), np.array([], np.int32)))
    return found


@examples("InvertPermutation")
def invert_permutation(v: Values) -> list[Example]:
    return [v(np.array(p, v.dtype.as_numpy_dtype)) for p in ([2, 0, 1], [0], [])]


@examples("Concat")
def concat(v: Values) -> list[Example]:
    return [
        v(np.array(0, np.int32), [v.array(2, 3), v.array(1, 3)]),
        v(np.array(1, np.int32), [v.array(2, 3), v.array(2, 0)]),
    ]


@examples("ConcatV2")
def concat_v2(v: Values) -> list[Example]:
    found = [
        v([v.array(2, 3), v.array(1, 3)], np.array(0, np.int32)),
        v([v.array(2, 3), v.array(2, 0), v.array(2, 1)], np.array(-1, np.int64), gradient=False),
    ]
    return [*found, v([v.array(2, 2, 2), v.array(2, 2, 2)], np.array(1, np.int32))]


@examples("ConcatOffset")
def concat_offset(v: Values) -> list[Example]:
    kind = np.int32
    return [v(np.array(1, np.int32), [np.array([2, 3], kind), np.array([2, 5], kind), np.array([2, 1], kind)])]


@examples("Split")
def split(v: Values) -> list[Example]:
    return [v(np.array(a, np.int32), v.array(4, 6), num_split=n) for a, n in ((0, 2), (1, 3), (-1, 2), (0, 1))]


@examples("SplitV")
def split_v(v: Values) -> list[Example]:
    sizes = [([1, 3], 0), ([2, -1, 1], 1), ([4], 0)]
    return [
        v(v.array(4, 6), np.array(s, t), np.array(a, np.int32), num_split=len(s))
        for s, a in sizes
        for t in (np.int32, np.int64)
    ]


@examples("Pack", "ParallelStack")
def pack(v: Values) -> list[Example]:
    if v.op == "ParallelStack":
        return [v([v.array(1, 3), v.array(1, 3)], shape=[2, 3])]
    single = [v([v.array()]), v([v.array(), v.array()])]  # of strings, too
    return [v([v.array(2, 3) for _ in range(3)], axis=a) for a in (0, 1, 2, -1)] + single


@examples("Unpack")
def unpack(v: Values) -> list[Example]:
    return [v(v.array(2, 3), num=n, axis=a) for n, a in ((2, 0), (3, 1), (3, -1))]


@examples("Slice")
def slice_(v: Values) -> list[Example]:
    cuts = [([0, 0], [2, 3]), ([1, 0], [1, -1]), ([0, 1], [-1, 1]), ([0, 0], [0, 2])]
    return [v(v.array(2, 3), np.array(b, t), np.array(s, t)) for b, s in cuts for t in (np.int32, np.int64)]


STRIDES: list[tuple[list[int], list[int], list[int], dict[str, int]]] = [
    ([0, 0], [2, 3], [1, 1], {}),
    ([1, 0], [2, 3], [1, 2], {}),
    ([-1, 2], [-3, 0], [-1, -1], {}),
    ([0], [2], [1], {"shrink_axis_mask": 1}),
    ([0, 1], [0, 2], [1, 1], {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}),
    ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
    ([0, 0], [0, 0], [1, 1], {"begin_mask": 3, "end_mask": 3, "new_axis_mask": 0}),
    ([5, 0], [9, 1], [1, 1], {}),
]


@examples("StridedSlice")
def strided_slice(v: Values) -> list[Example]:
    return [v(v.array(2, 3), *(np.array(x, np.int32) for x in (b, e, s)), **masks) for b, e, s, masks in STRIDES]


@examples("StridedSliceGrad")
def strided_slice_grad(v: Values) -> list[Example]:
    found = [
        ([2, 3], [1, 0], [2, 3], [1, 2], {}, (1, 2)),
        ([2, 3], [0], [2], [1], {"shrink_axis_mask": 1}, (3,)),
    ]
    return [
        v(*(np.array(x, np.int32) for x in (shape, b, e, s)), v.array(*dy), **masks)
        for shape, b, e, s, masks, dy in found
    ]


@examples("Gather")
def gather(v: Values) -> list[Example]:
    return [v(v.array(4, 3), v.index(4, 2, dtype=t)) for t in (np.int32, np.int64)] + [v(v.array(4), v.index(4, 2, 2))]


@examples("GatherV2")
def gather_v2(v: Values) -> list[Example]:
    found = [
        v(v.array(4, 3), v.index(3, 2, dtype=t), np.array(a, np.int32))
        for t in (np.int32, np.int64)
        for a in (0, 1, -1)
    ]
    found += [
        v(v.array(4, 3), v.index(3), np.array(1, np.int64)),
        v(v.array(4, 3), v.index(3, 2, 2), np.array(0, np.int32)),
    ]
    batches = [((2, 3, 4), 4, (2, 2), 2, 1), ((2, 3, 4), 4, (2, 3, 2, 2), 2, 2), ((2, 3, 4), 3, (2,), 1, 1)]
    batches += [((2, 5, 3, 2), 3, (2, 4, 1), 2, 1), ((2, 3), 3, (2, 2), 1, -1), ((2, 3, 0), 3, (2, 2), 1, 1)]
    return found + [
        v(v.array(*shape), v.index(n, *where), np.array(axis, np.int32), batch_dims=batch)
        for shape, n, where, axis, batch in batches
    ]


@examples("GatherNd")
def gather_nd(v: Values) -> list[Example]:
    places = ([[0, 1], [3, 2]], [[1], [1]], [[[0], [2]]])
    found = [v(v.array(4, 3), np.array(at, t)) for t in (np.int32, np.int64) for at in places]
    none = [v(v.array(4, 3), np.zeros(s, np.int32), smooth=False, gradient=False) for s in ([2, 0], [0, 2], [1])]
    return found + none  # TensorFlow has no gradient for them


@examples("ScatterNd")
def scatter_nd(v: Values) -> list[Example]:
    where = np.array([[1], [3], [1]], np.int32)
    return [
        v(where, v.array(3), np.array([5], np.int32)),
        v(where, v.array(3, 2), np.array([5, 2], np.int32)),
        v(np.array([[0, 1], [1, 0]], np.int64), v.array(2), np.array([2, 2], np.int64)),
        v(where[:0], v.array(0, 2), np.array([5, 2], np.int32)),
    ]


@examples("Tile")
def tile(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array(m, t)) for m in ([1, 1], [2, 1], [2, 3], [0, 1]) for t in (np.int32, np.int64)]


@examples("BroadcastTo")
def broadcast_to(v: Values) -> list[Example]:
    return [
        v(v.array(3), np.array([2, 3], np.int32)),
        v(v.array(), np.array([2, 2], np.int64)),
        v(v.array(2, 1), np.array([4, 2, 3], np.int32)),
    ]


@examples("Pad")
def pad(v: Values) -> list[Example]:
    return [
        v(v.array(2, 3), np.array(p, t)) for p in ([[1, 0], [0, 2]], [[0, 0], [0, 0]]) for t in (np.int32, np.int64)
    ]


@examples("PadV2")
def pad_v2(v: Values) -> list[Example]:
    pads = ([[1, 0], [0, 2]], [[0, 0], [0, 0]])
    found = [v(v.array(2, 3), np.array(p, t), v.array()) for p in pads for t in (np.int32, np.int64)]
    return [*found, v(v.array(0, 3), np.array([[1, 1], [0, 1]], np.int32), v.array())]


@examples("MirrorPad")
def mirror_pad(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array([[1, 0], [0, 2]], np.int32), mode=m) for m in ("REFLECT", "SYMMETRIC")]


@examples("Reverse")
def reverse(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array([True, False]))]


@examples("ReverseV2")
def reverse_v2(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array(a, np.int32)) for a in ([0], [-1], [0, 1], [])]


@examples("Where")
def where(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array(4)), v(v.array(0))]


@examples("OneHot")
def one_hot(v: Values) -> list[Example]:
    on, off = v.array(), v.array()
    where = np.array([0, 2, -1, 5])
    found = [v(where.astype(t), np.array(3, np.int32), on, off) for t in (np.int32, np.int64)] + [
        v(where[:3].astype(np.uint8), np.array(3, np.int32), on, off)
    ]
    return [
        *found,
        v(np.array([[0, 1], [2, 0]], np.int32), np.array(3, np.int32), on, off, axis=1),
        v(np.array(1, np.int32), np.array(3, np.int32), on, off, axis=0),
    ]


@examples("Unique", "UniqueWithCounts")
def unique(v: Values) -> list[Example]:
    found = [v(v.array(8, low=0, high=2)), v(v.array(3), out_idx=dtypes.int64), v(v.array(0))]
    return [*found, v(np.tile(v.special(), 2))] if v.dtype.is_floating else found  # no NaN equals another


@examples("ListDiff")
def list_diff(v: Values) -> list[Example]:
    return [v(v.array(6), v.array(2)), v(v.array(3), v.array(0), out_idx=dtypes.int64)]


@examples("Diag", "MatrixDiag")
def diag(v: Values) -> list[Example]:
    return [v(v.array(3)), v(v.array(2, 2))]


@examples("DiagPart", "MatrixDiagPart")
def diag_part(v: Values) -> list[Example]:
    return [v(v.array(3, 3)), v(v.array(2, 2, 2, 2))]


@examples("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(v: Values) -> list[Example]:
    i = np.int32
    return [
        v([np.array([0, 2], i), np.array([1], i)], [v.array(2, 3), v.array(1, 3)]),
        v([np.array(1, i), np.array([[0, 2]], i)], [v.array(), v.array(1, 2)]),
    ]


@examples("DynamicPartition")
def dynamic_partition(v: Values) -> list[Example]:
    return [v(v.array(4, 2), np.array([1, 0, 1, 2], np.int32), num_partitions=3)]


@examples("IdentityN")
def identity_n(v: Values) -> list[Example]:
    return [v([v.array(2), v.array(2, 3)])]


# -- made from nothing ---------------------------------------------------------------------------------------------


@examples("Const")
def const(v: Values) -> list[Example]:
    return [v(value=v.array(*shape), dtype=v.dtype) for shape in ((2, 3), (), (0, 2), (1,))] + [
        v(value=np.broadcast_to(v.array(), (2, 5)), dtype=v.dtype)
    ]


@examples("Fill")
def fill(v: Values) -> list[Example]:
    return [v(np.array(s, t), v.array()) for s in ([2, 3], [], [0]) for t in (np.int32, np.int64)]


@examples("Range")
def range_(v: Values) -> list[Example]:
    def one(*limits):
        return v(*(np.array(x).astype(v.dtype.as_numpy_dtype) for x in limits))

    found = [one(0, 5, 1), one(3, 10, 3), one(2, 2, 1)]
    return found if v.dtype.is_unsigned else [*found, one(5, -3, -2)]


@examples("LinSpace")
def lin_space(v: Values) -> list[Example]:
    return [v(v.array(), v.array(), np.array(n, t)) for n in (1, 2, 5) for t in (np.int32, np.int64)]


@examples("PlaceholderWithDefault")
def placeholder_with_default(v: Values) -> list[Example]:
    shapes = [[2, 3], [None, 3], TensorShape(None)]
    return [v(v.array(2, 3), shape=s) for s in shapes]


# -- networks -------------------------------------------------------------------------------------------------------


@examples("BiasAdd", "BiasAddV1")
def bias_add(v: Values) -> list[Example]:
    found = [v(v.array(2, 3), v.array(3)), v(v.array(2, 2, 2, 3), v.array(3))]
    return found if v.op == "BiasAddV1" else [*found, v(v.array(2, 3, 2, 2), v.array(3), data_format="NCHW")]


@examples("BiasAddGrad")
def bias_add_grad(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array(2, 2, 2, 3)), v(v.array(2, 3, 2, 2), data_format="NCHW")]


@examples("Softmax", "LogSoftmax")
def softmax(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array(4)), v(v.array(2, 2, 3)), v(v.array(2, 3) * 30)]


@examples("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(v: Values) -> list[Example]:
    labels = np.array([[0.2, 0.3, 0.5], [1, 0, 0]]).astype(v.dtype.as_numpy_dtype)
    spread = [(v.array(2, 3), labels[:1]), (v.array(1, 3), labels)]
    return [v(v.array(2, 3), labels), *(v(*inputs, gradient=False) for inputs in spread)]


@examples("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array([2, 0], t)) for t in (np.int32, np.int64)]


# -- random numbers ---------------------------------------------------------------------------------------------------


@examples("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def random(v: Values) -> list[Example]:
    shapes = [np.array(s, t) for s in ([2, 3], [300], []) for t in (np.int32, np.int64)]
    return [v(s, dtype=v.dtype, seed=7, seed2=n) for n, s in enumerate(shapes)]


@examples("RandomUniformInt")
def random_uniform_int(v: Values) -> list[Example]:
    def limit(x):
        return np.array(x, np.int64)

    return [v(np.array([50], np.int32), limit(a).astype(t), limit(b).astype(t), seed=1, seed2=2)
            for a, b in ((0, 10), (-5, 6)) for t in (np.int32, np.int64)]  # fmt: skip


@examples("RandomShuffle", "Multinomial")
def random_order(v: Values) -> list[Example]:
    if v.op == "Multinomial":
        return [
            v(v.array(2, 3), np.array(20, np.int32), seed=3, seed2=4, output_dtype=d)
            for d in (dtypes.int32, dtypes.int64)
        ]
    return [v(v.array(7), seed=3, seed2=4), v(v.array(5, 2), seed=3, seed2=5)]


# -- state: the first input is a variable ------------------------------------------------------------------------------


@examples("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def assign(v: Values) -> list[Example]:
    return [v(Var(v.array(2, 3)), v.array(2, 3)), v(Var(v.array()), v.array())]


@examples("ReadVariableOp", "VariableShape", "VarIsInitializedOp", "IsVariableInitialized", "RefIdentity")
def about_variable(v: Values) -> list[Example]:
    return [v(Var(v.array(2, 3)), **({"dtype": v.dtype} if v.op == "ReadVariableOp" else {}))]


@examples(
    "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax", "ScatterUpdate",
    "ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul", "ResourceScatterDiv", "ResourceScatterMin",
    "ResourceScatterMax", "ResourceScatterUpdate",
)  # fmt: skip
def scatter(v: Values) -> list[Example]:
    def rows(*where):
        return np.array(where, np.int32)

    found = [
        v(Var(v.array(4, 2)), rows(3, 0), v.positive(2, 2)),
        v(Var(v.array(4)), np.array([1, 2], np.int64), v.positive(2)),
    ]
    if not v.op.endswith("Update"):  # which of two updates of a row wins is not defined
        found.append(v(Var(v.array(4, 2)), rows(3, 0, 3), v.positive(3, 2)))
    return [*found, v(Var(v.array(4, 2)), rows(1), v.positive())]


@examples("ResourceGather")
def resource_gather(v: Values) -> list[Example]:
    return [v(Var(v.array(4, 2)), v.index(4, 3, dtype=t), dtype=v.dtype) for t in (np.int32, np.int64)]


@examples("CountUpTo")
def count_up_to(v: Values) -> list[Example]:
    return [v(Var(np.array(3, v.dtype.as_numpy_dtype)), limit=5)]


@examples("ResourceCountUpTo")
def resource_count_up_to(v: Values) -> list[Example]:
    return [v(Var(np.array(3, v.dtype.as_numpy_dtype)), limit=5, T=v.dtype)]


@examples("StringFormat")
def string_format(v: Values) -> list[Example]:
    if v.dtype != dtypes.float32:
        # TensorFlow shows complex numbers as question marks, and loses count of them.
        return [] if v.dtype.is_complex else [v([v.array(2, 3)], template="%s")]
    values = [np.array([1.5, -2, 3, 4, 5], np.float32), np.array([[1, 2], [3, 4]], np.int32), np.array(True)]
    words = np.array([b"a", b"b"], object), np.array(b"a\n", object)
    found = [v([value], template="<%s>") for value in [*values, *words, np.array(2.25)]]
    return [
        *found,
        v(values, template="%s, %s; %s", summarize=2),
        v(values[:1], template="{}", placeholder="{}", summarize=-1),
    ]


def _bands() -> list[tuple[int, int, int]]:
    """(lowest, highest, length of the longest) diagonals of a 3 by 4 matrix."""
    return [(0, 0, 3), (1, 1, 3), (-1, -1, 2), (-1, 1, 3), (0, 2, 3), (-2, -1, 2)]


_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


@examples("MatrixDiagV3")
def matrix_diag_v3(v: Values) -> list[Example]:
    rows, cols, free = np.array(3, np.int32), np.array(4, np.int32), np.array(-1, np.int32)
    found = [v(v.array(2, 3), np.array(0, np.int32), free, free, v.array())]
    for low, high, longest in _bands():
        stored = v.array(2, longest) if low == high else v.array(2, high - low + 1, longest)
        k = np.array([low, high], np.int32) if low != high else np.array(low, np.int32)
        found += [v(stored, k, rows, cols, v.array(), align=a) for a in _ALIGNMENTS]
    return found


@examples("MatrixDiagPartV3")
def matrix_diag_part_v3(v: Values) -> list[Example]:
    ks = [np.array([low, high], np.int32) for low, high, _ in _bands()] + [np.array(1, np.int32)]
    return [v(v.array(2, 3, 4), k, v.array(), align=a) for k in ks for a in _ALIGNMENTS]


@examples("MatrixSetDiagV3")
def matrix_set_diag_v3(v: Values) -> list[Example]:
    found = [v(v.array(3, 4), v.array(3), np.array(0, np.int32))]
    for low, high, longest in _bands():
        if low != high:
            stored = v.array(high - low + 1, longest)
            found += [v(v.array(3, 4), stored, np.array([low, high], np.int32), align=a) for a in _ALIGNMENTS]
    return found


IN_PROGRAMS: dict[str, str] = {}  # op → the test, from the root of the repository, whose programs run it on both

for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    IN_PROGRAMS.update(getattr(_module, "IN_PROGRAMS", {}))
