"""Sets of dtypes that many interfaces name, in the grammar of `op_registry`.

Rule: they hold what TensorFlow's OpDefs hold; the order of the names means nothing.
"""

_FLOATS = "bfloat16, half, float, double"
_SIGNED = "int8, int16, int32, int64"
_UNSIGNED = "uint8, uint16, uint32, uint64"
_COMPLEX = "complex64, complex128"
_QUANTIZED = "qint8, quint8, qint32, qint16, quint16"

FLOAT = f"{{{_FLOATS}}}"
FLOAT_COMPLEX = f"{{{_FLOATS}, {_COMPLEX}}}"
INTEGER = f"{{{_SIGNED}, {_UNSIGNED}}}"
SIGNED = f"{{{_FLOATS}, {_SIGNED}}}"
SIGNED_COMPLEX = f"{{{_FLOATS}, {_SIGNED}, {_COMPLEX}}}"
REAL = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}}}"
REAL_COMPLEX = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_COMPLEX}}}"
REAL_COMPLEX_BOOL = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_COMPLEX}, bool}}"
REAL_QUANTIZED = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_QUANTIZED}}}"
REAL_QUANTIZED_BOOL = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_QUANTIZED}, bool}}"
NUMBER = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_COMPLEX}, {_QUANTIZED}}}"
NUMBER_BOOL = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_COMPLEX}, {_QUANTIZED}, bool}}"
NUMBER_VARIANT = f"{{{_FLOATS}, {_SIGNED}, {_UNSIGNED}, {_COMPLEX}, {_QUANTIZED}, variant}}"
