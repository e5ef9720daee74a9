"""Element by element."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import ANY, Example, Values, examples


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
    targets = [d for d in ANY if d != dtypes.string and not (v.dtype.is_complex and d.is_integer)]
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
