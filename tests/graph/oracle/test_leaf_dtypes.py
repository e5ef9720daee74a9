from __future__ import annotations

import copy
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from dtflab.graph import dtypes as ours
from tests.house import without_address
from tests.oracle.leaf import outcome

theirs = pytest.importorskip("tensorflow.python.framework.dtypes")

NUMBERS = [base + number for base in (0, 100) for number in range(1, 34)]
ATTRIBUTES = (
    "name size as_datatype_enum as_numpy_dtype base_dtype real_dtype _is_ref_dtype _as_ref "
    "is_floating is_integer is_unsigned is_bool is_complex is_quantized is_numeric is_numpy_compatible "
    "min max limits"
).split()

NAMES = """
    float double half float_ref double_ref half_ref float32_ref bool boolean str string bytes object int long
    uint f4 <f4 >f4 i8 S complex bfloat16 resource resource_ref variant qint8 Float32 DT_FLOAT float16
""".split()
CONVERTIBLE = [
    *[0, 1, 7, 101, 99, True, 1.0, 3.0, 2.5, np.int64(3), np.str_("half"), b"half", None, [1], object()],
    *[float, int, bool, str, bytes, complex, object, list, type(None)],
    *[np.float16, np.float32, np.longdouble, np.int_, np.intc, np.uintc, np.longlong, np.ulonglong],
    *[np.object_, np.str_, np.bytes_, np.void, np.number, np.datetime64, np.complex64, np.bool_],
    *[np.dtype(t) for t in ("float32", ">f4", "S3", "U3", "O", "datetime64[s]", "bool")],
    *[np.dtype([("qint8", "i1")]), np.dtype([("quint16", "<u2")]), np.dtype([("resource", "u1")])],
    *[ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), ml_dtypes.float8_e5m2, ml_dtypes.int4],
    *[np.float32(1), np.array([1], np.int8), np.zeros(2, np.bool_)],
]  # fmt: skip


STRING_REF = 107


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_attribute(number, attribute):
    if (number, attribute) == (STRING_REF, "as_numpy_dtype"):
        number -= 100  # TF says numpy.object_ for string_ref, object for string: we say object for both
    assert outcome(lambda: getattr(ours.DType(number), attribute)) == outcome(
        lambda: getattr(theirs.as_dtype(number), attribute)
    )


@pytest.mark.parametrize("number", NUMBERS)
def test_text_and_identity(number):
    our, their = ours.DType(number), theirs.as_dtype(number)
    assert (repr(our), str(our), hash(our), int(our)) == (repr(their), str(their), hash(their), int(their))
    assert copy.deepcopy(our) is our is ours.as_dtype(our.name)


def test_every_public_name_is_there():
    public = {name for name in dir(theirs) if isinstance(getattr(theirs, name), theirs.DType)}
    exotic = {name for name in public if name.startswith(("float8", "float4", "int2", "int4", "uint2", "uint4"))}
    for name in public - {name for name in exotic if name.endswith("_ref")}:
        assert getattr(ours, name).as_datatype_enum == getattr(theirs, name).as_datatype_enum
    assert {d.name for d in ours.QUANTIZED_DTYPES} == {d.name for d in theirs.QUANTIZED_DTYPES}


@pytest.mark.parametrize("value", [*NAMES, *CONVERTIBLE], ids=without_address)
def test_as_dtype(value):
    assert outcome(lambda: ours.as_dtype(value)) == outcome(lambda: theirs.as_dtype(value))


@pytest.mark.parametrize("number", [1, 3, 7, 8, 10, 11, 14, 20, 101, 120])
def test_comparison(number):
    our, their = ours.DType(number), theirs.as_dtype(number)
    for value in [*NAMES, *CONVERTIBLE]:
        if isinstance(value, np.ndarray):
            continue  # NumPy compares elementwise
        assert (our == value, our != value, value == our) == (their == value, their != value, value == their)
        assert outcome(lambda v=value: our.is_compatible_with(v)) == outcome(
            lambda v=value: their.is_compatible_with(v)
        )
    for other in NUMBERS:
        pair = ours.DType(other), theirs.as_dtype(other)
        assert (our == pair[0]) == (their == pair[1])
        assert our.is_compatible_with(pair[0]) == their.is_compatible_with(pair[1])


@pytest.mark.parametrize("number", [0, 55, 134, "float32", -1])
def test_constructor_refuses(number):
    assert outcome(lambda: ours.DType(number)) == outcome(lambda: theirs.DType(number))


def test_something_with_a_dtype_of_its_own():
    """A tensor has a dtype too, but not one that NumPy knows: TensorFlow refuses it."""
    with pytest.raises(TypeError, match="to a TensorFlow DType"):
        ours.as_dtype(SimpleNamespace(dtype=ours.float32))
