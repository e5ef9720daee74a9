"""Functions that compute element by element, with NumPy's broadcasting.

Stand for their parts of `python/ops/math_ops.py`, `special_math_ops.py`, `bitwise_ops.py` and `gen_math_ops.py`.

Rule: both operands have one dtype, and so has the result; different ones are a TypeError when the graph is built.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices, convert_n_to_tensor_or_indexed_slices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.sparse.sparse_tensor import SparseTensor, of_values


class UnaryFunction(Protocol):
    """A function of one tensor."""

    def __call__(self, x: Any, name: str | None = None) -> Any: ...


class BinaryFunction(Protocol):
    """A function of two tensors, which broadcast."""

    def __call__(self, x: Any, y: Any, name: str | None = None) -> Tensor: ...


def _unary(op_name: str, summary: str, sparse: bool = False) -> UnaryFunction:
    """The function `f(x, name=None)` of an op; a `sparse` one keeps zeros, and so takes SparseTensors, too."""

    def function(x: Any, name: str | None = None) -> Any:
        if sparse and isinstance(x, SparseTensor):
            return of_values(function, x, name, tried=op_name)
        return apply_op(op_name, name, x=x)

    return arrays.described(function, op_name, summary)


def _binary(op_name: str, summary: str) -> BinaryFunction:
    """The function `f(x, y, name=None)` of an op."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return apply_op(op_name, name, x=x, y=y)

    return arrays.described(function, op_name, summary)


# -- sums, differences, products ------------------------------------------------------------------------


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y; strings are joined."""
    with name_scope(name, "Add", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        return apply_op("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", scope, x=x, y=y)


subtract = _binary("Sub", "x - y")
multiply = _binary("Mul", "x * y")
maximum = _binary("Maximum", "The larger of x and y, element by element.")
minimum = _binary("Minimum", "The smaller of x and y, element by element.")
squared_difference = _binary("SquaredDifference", "(x - y)², element by element.")


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A number times a tensor or IndexedSlices."""
    scalar = convert_to_tensor(scalar, x.dtype.base_dtype, name="scalar")
    if scalar.shape.ndims != 0:
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(scalar, x.values, name), x.indices, x.dense_shape)
    return multiply(scalar, x, name)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x to the power of y"""
    with name_scope(name, "Pow", [x]) as scope:
        return apply_op("Pow", scope, x=x, y=y)


def add_n(inputs: Iterable[Any], name: str | None = None) -> Tensor:
    """The sum of tensors (or IndexedSlices) of one shape."""
    message = "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
    if not isinstance(inputs, Iterable) or not inputs:
        raise ValueError(message)
    values = convert_n_to_tensor_or_indexed_slices(inputs)
    if not all(isinstance(v, Tensor | IndexedSlices) for v in values):
        raise ValueError(message)
    if len(values) > 1:
        return apply_op("AddN", name, inputs=values)
    value = convert_to_tensor(values[0])
    return arrays.identity(value, name=name) if name else value


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape."""
    tensors = [convert_to_tensor(x) for x in inputs] if isinstance(inputs, list | tuple) else []
    if len({t.dtype.base_dtype for t in tensors}) != 1:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    if tensor_dtype is not None and tensor_dtype != tensors[0].dtype:
        text = f"The `tensor_dtype` argument is {tensor_dtype}, but `input` is of type {tensors[0].dtype}."
        raise TypeError(f"{text} These must be equal. Try casting the input to the desired type.")
    return add_n(tensors, name=name)


def polyval(coeffs: list[Any], x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, the highest power first, at `x`: Horner's rule."""
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    with name_scope(name, "polyval", [*coeffs, x]) as scope:
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return arrays.zeros_like(x, name=scope)
        first, *rest = [convert_to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs)]
        result: Tensor = first
        for coefficient in rest:
            result = coefficient + result * x
        return result


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0, even if x is infinite or NaN there."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        return apply_op("MulNoNan", scope, x=x, y=y)


# -- quotients and remainders ---------------------------------------------------------------------------

_TRUE_QUOTIENT = {  # the dtype in which `/` divides; None: its own
    **dict.fromkeys((dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16), dtypes.float32),
    **dict.fromkeys((dtypes.uint32, dtypes.int32, dtypes.uint64, dtypes.int64), dtypes.float64),
    **dict.fromkeys((dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)),
    **dict.fromkeys((dtypes.complex64, dtypes.complex128)),
}


def _cast_for_quotient(x: Tensor, y: Tensor, where: str) -> tuple[Tensor, Tensor]:
    """x and y in the dtype in which they divide; TypeError for two dtypes, or one that can't."""
    x_dtype, y_dtype = x.dtype.base_dtype, y.dtype.base_dtype
    if x_dtype != y_dtype:
        raise TypeError(f"`x` and `y` must have the same dtype, got {x_dtype!r} != {y_dtype!r}.")
    if x_dtype not in _TRUE_QUOTIENT:
        raise TypeError(f"Invalid dtype {x_dtype!r} in {where}. Expected one of {list(_TRUE_QUOTIENT)}.")
    dtype = _TRUE_QUOTIENT[x_dtype]
    return (x, y) if dtype is None else (arrays.cast(x, dtype), arrays.cast(y, dtype))


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; whole numbers become float64 (small ones float32)."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        x, y = _cast_for_quotient(x, y, "__truediv__")
        return apply_op("RealDiv", scope, x=x, y=y)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 2: of whole numbers rounded down."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        fractions = x.dtype.is_floating or x.dtype.is_complex
        return apply_op("RealDiv" if fractions else "FloorDiv", scope, x=x, y=y)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 3."""
    if name is not None:
        return truediv(x, y, name)
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x, y.dtype.base_dtype if isinstance(y, Tensor) else None)
    return x / y


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, rounded down."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return apply_op("FloorDiv", scope, x=x, y=y)


floor_div = _binary("FloorDiv", "x / y, rounded down: the op FloorDiv itself.")
realdiv = _binary("RealDiv", "x / y: the op RealDiv itself.")
truncatediv = _binary("TruncateDiv", "The whole part of x / y.")
floormod = mod = _binary("FloorMod", "The remainder of x / y, with the sign of y, as Python's `%`.")
truncatemod = _binary("TruncateMod", "The remainder of x / y, with the sign of x.")


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        if isinstance(y, Tensor) and not isinstance(x, Tensor):
            x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
        else:
            x = convert_to_tensor(x, name="x")
            y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        x, y = _cast_for_quotient(x, y, "tf.math.divide_no_nan")
        return apply_op("DivNoNan", scope, x=x, y=y)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        one = constant(1, x.dtype.base_dtype, name="one")
        return apply_op("DivNoNan", scope, x=one, y=x)


# -- powers, exponentials, logarithms -------------------------------------------------------------------

square = _unary("Square", "x²", sparse=True)
sqrt = _unary("Sqrt", "The square root.", sparse=True)
rsqrt = _unary("Rsqrt", "1 / sqrt(x)")
exp = _unary("Exp", "e to the power of x.")
expm1 = _unary("Expm1", "exp(x) - 1, exact near 0.")
log = _unary("Log", "The natural logarithm.")
log1p = _unary("Log1p", "log(1 + x), exact near 0.")
reciprocal = _unary("Reciprocal", "1 / x")
tanh = _unary("Tanh", "The hyperbolic tangent.", sparse=True)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""
    with name_scope(name, "Sigmoid", [x]) as scope:
        return apply_op("Sigmoid", scope, x=convert_to_tensor(x, name="x"))


def _gradient(op_name: str, summary: str) -> Callable[..., Tensor]:
    """The function `f(y, dy, name=None)` of an op that is the gradient of another one."""

    def function(y: Any, dy: Any, name: str | None = None) -> Tensor:
        return apply_op(op_name, name, y=y, dy=dy)

    return arrays.described(function, op_name, summary)


tanh_grad = _gradient("TanhGrad", "dy * (1 - y²), the gradient of y = tanh(x).")
sigmoid_grad = _gradient("SigmoidGrad", "dy * y * (1 - y), the gradient of y = sigmoid(x).")
sqrt_grad = _gradient("SqrtGrad", "dy * 0.5 / y, the gradient of y = sqrt(x).")
rsqrt_grad = _gradient("RsqrtGrad", "dy * -0.5 * y³, the gradient of y = 1 / sqrt(x).")
reciprocal_grad = _gradient("ReciprocalGrad", "-dy * y², the gradient of y = 1 / x.")

# -- angles ---------------------------------------------------------------------------------------------

sin = _unary("Sin", "The sine of x in radians.", sparse=True)
cos = _unary("Cos", "The cosine of x in radians.")
tan = _unary("Tan", "The tangent of x in radians.", sparse=True)
asin = _unary("Asin", "The angle whose sine is x.", sparse=True)
acos = _unary("Acos", "The angle whose cosine is x.")
atan = _unary("Atan", "The angle whose tangent is x.", sparse=True)
sinh = _unary("Sinh", "The hyperbolic sine.")
cosh = _unary("Cosh", "The hyperbolic cosine.")
asinh = _unary("Asinh", "The inverse of sinh.", sparse=True)
acosh = _unary("Acosh", "The inverse of cosh.")
atanh = _unary("Atanh", "The inverse of tanh.", sparse=True)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y), in radians."""
    return apply_op("Atan2", name, y=y, x=x)


# -- signs and rounding ---------------------------------------------------------------------------------

negative = _unary("Neg", "-x", sparse=True)
floor = _unary("Floor", "The largest whole number not above x.")
ceil = _unary("Ceil", "The smallest whole number not below x.")
rint = _unary("Rint", "The whole number nearest to x; of two, the even one.")
is_nan = _unary("IsNan", "Where x is not a number.")
is_inf = _unary("IsInf", "Where x is infinite.")
is_finite = _unary("IsFinite", "Where x is a number and finite.")


def abs(x: Any, name: str | None = None) -> Any:
    """|x|, element by element; of complex numbers the magnitude."""
    if isinstance(x, SparseTensor):
        return of_values(abs, x, name, tried="Abs")
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return apply_op("ComplexAbs", scope, x=x, Tout=x.dtype.real_dtype)
        return apply_op("Abs", scope, x=x)


def sign(x: Any, name: str | None = None) -> Any:
    """-1, 0 or 1, as x is negative, zero or positive; of complex numbers x / |x|."""
    if isinstance(x, SparseTensor):
        return of_values(sign, x, name)
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        magnitude = apply_op("ComplexAbs", x=x, Tout=x.dtype.real_dtype)
        return apply_op("DivNoNan", name, x=x, y=arrays.cast(magnitude, x.dtype))
    return apply_op("Sign", name, x=x)


def round(x: Any, name: str | None = None) -> Tensor:
    """The whole number nearest to x, of two the even one; integers are returned as they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else apply_op("Round", name, x=x)


# -- comparisons, logic, bits ---------------------------------------------------------------------------

equal = _binary("Equal", "x == y, element by element.")
not_equal = _binary("NotEqual", "x != y, element by element.")
less = _binary("Less", "x < y")
less_equal = _binary("LessEqual", "x <= y")
greater = _binary("Greater", "x > y")
greater_equal = _binary("GreaterEqual", "x >= y")
logical_not = _unary("LogicalNot", "not x, element by element.")
logical_and = _binary("LogicalAnd", "x and y")
logical_or = _binary("LogicalOr", "x or y")
invert = _unary("Invert", "x with its bits inverted.")
bitwise_and = _binary("BitwiseAnd", "The bits set in x and y.")
bitwise_or = _binary("BitwiseOr", "The bits set in x or y.")
bitwise_xor = _binary("BitwiseXor", "The bits that differ.")
left_shift = _binary("LeftShift", "x with its bits moved up by y places.")
right_shift = _binary("RightShift", "x with its bits moved down by y places; of signed integers the sign moves in.")


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """x or y, but not both."""
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name=name)


# -- complex numbers ------------------------------------------------------------------------------------


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """The complex numbers with these parts."""
    real, imag = convert_to_tensor(real, name="real"), convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kinds = [dtypes.float32, dtypes.float64]
        if real.dtype.base_dtype != imag.dtype.base_dtype or real.dtype.base_dtype not in kinds:
            found = f"{real.dtype.name} {imag.dtype.name}. They must be consistent, and one of {kinds}"
            raise TypeError(f"The `real` and `imag` components have incorrect types: {found}")
        out = dtypes.complex64 if real.dtype.size == 4 else dtypes.complex128
        return apply_op("Complex", scope, real=real, imag=imag, Tout=out)


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part of numbers; real ones are returned as they are."""
    with name_scope(name, "Real", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Real", scope, input=input, Tout=input.dtype.real_dtype)
        if not input.dtype.is_numeric:
            raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {input.dtype}")
        return input


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part of numbers; zeros for real ones."""
    with name_scope(name, "Imag", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Imag", scope, input=input, Tout=input.dtype.real_dtype)
        return arrays.zeros_like(input)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of numbers in radians."""
    with name_scope(name, "Angle", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return apply_op("Angle", scope, input=input, Tout=input.dtype.real_dtype)
        return indexing.where(input < 0, np.pi * arrays.ones_like(input), arrays.zeros_like(input))


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype == dtypes.variant:
            return apply_op("Conj", scope, input=x)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}.")


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` in another dtype; numbers out of its range become its largest or smallest."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        if value.dtype.is_complex and dtype.is_complex:
            limits = _complex_limits(value.dtype, dtype)
        else:
            value = real(value)
            limits = [_limit_inside(value.dtype, dtype, end) for end in ("min", "max")]
        if limits:
            low, high = (constant(limit, value.dtype) for limit in limits)
            value = apply_op("ClipByValue", "clamp", t=value, clip_value_min=low, clip_value_max=high)
        return arrays.cast(value, dtype, name=scope)


def _complex_limits(source: dtypes.DType, target: dtypes.DType) -> list[Any]:
    if source.real_dtype.max <= target.real_dtype.max:
        return []
    return [builtins.complex(end, end) for end in (target.real_dtype.min, target.real_dtype.max)]


def _limit_inside(source: dtypes.DType, target: dtypes.DType, end: str) -> Any:
    """The last number of `source` that `target` can hold: the end of one of them, or the number before it."""
    kind, narrower = source.as_numpy_dtype, max if end == "min" else min
    mine, other = getattr(source, end), getattr(target.real_dtype, end)
    limit = kind(narrower(float(mine), float(other)) if source.is_floating else narrower(mine, other))
    is_outside = float(limit) < float(other) if end == "min" else float(limit) > float(other)
    return np.nextafter(limit, kind(0), dtype=kind) if is_outside else limit


# -- special functions ----------------------------------------------------------------------------------


def _scoped(op_name: str, scope: str, summary: str) -> UnaryFunction:
    """The function of an op inside a name scope, as TensorFlow has it."""

    def function(x: Any, name: str | None = None) -> Tensor:
        with name_scope(name, scope, [x]):
            return apply_op(op_name, x=x)

    return arrays.described(function, scope, summary)


erf = _unary("Erf", "The error function.", sparse=True)
erfc = _unary("Erfc", "1 - erf(x)")
lgamma = _unary("Lgamma", "log |Γ(x)|")
digamma = _unary("Digamma", "The derivative of lgamma.")
erfinv = _scoped("Erfinv", "erfinv", "The number whose error function is x.")
ndtri = _scoped("Ndtri", "ndtri", "The number below which a normal number is with probability x.")
bessel_i0 = _scoped("BesselI0", "bessel_i0", "The modified Bessel function I₀.")
bessel_i1 = _scoped("BesselI1", "bessel_i1", "The modified Bessel function I₁.")
bessel_i0e = _scoped("BesselI0e", "bessel_i0e", "exp(-|x|) I₀(x)")
bessel_i1e = _scoped("BesselI1e", "bessel_i1e", "exp(-|x|) I₁(x)")


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The number whose complementary error function is x."""
    with name_scope(name, "erfcinv", [x]):
        x = convert_to_tensor(x, name="start")
        return -ndtri(0.5 * x) * np.sqrt(0.5)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function, Σ (q + k)⁻ˣ."""
    return apply_op("Zeta", name, x=x, q=q)


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The lower incomplete gamma function of x over Γ(a)."""
    return apply_op("Igamma", name, a=a, x=x)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The upper incomplete gamma function of x over Γ(a)."""
    return apply_op("Igammac", name, a=a, x=x)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The a-th derivative of digamma at x."""
    return apply_op("Polygamma", name, a=a, x=x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function I_x(a, b)."""
    return apply_op("Betainc", name, a=a, b=b, x=x)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next number that the dtype has after `x1` on the way to `x2`."""
    return apply_op("NextAfter", name, x1=x1, x2=x2)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """log |B(x)| over the last axis: the sum of lgamma less lgamma of the sum."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        logs = apply_op("Sum", input=lgamma(x), reduction_indices=[-1])
        return logs - lgamma(apply_op("Sum", input=x, reduction_indices=[-1]))


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where x is 0."""
    with name_scope(name, "xdivy", [x]):
        return apply_op("Xdivy", x=x, y=y)


def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x · log(y), and 0 where x is 0."""
    return apply_op("Xlogy", name, x=x, y=y)


def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x · log(1 + y), and 0 where x is 0."""
    with name_scope(name, "xlog1py", [x]):
        return apply_op("Xlog1py", x=x, y=y)
