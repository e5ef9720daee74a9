"""Records of comma-separated values → a tensor per column.

Stands for `core/kernels/decode_csv_op.cc`.

Rule: there are two ways to the same values. Records without line ends, and without quotes that matter, are split all at
once, and all columns of a type are read together. Other records are read one by one, which also finds the error that
TensorFlow would report: that of the first record, and in it of the first field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, op
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.numerals import number, numbers


@op("""DecodeCSV(records: string, record_defaults: OUT_TYPE) -> (output: OUT_TYPE)
       OUT_TYPE: list({float, double, int32, int64, string}) >= 1, field_delim: string = ','
       use_quote_delim: bool = true, na_value: string = '', select_cols: list(int) = []""")
class DecodeCSV(Op):
    def infer(operation):
        for default in operation.inputs[1:]:
            shape = default.shape
            if (shape.ndims or 0) > 1:
                raise ValueError(f"Shape must be at most rank 1 but is rank {shape.ndims}")
            if shape.ndims == 1 and (shape.dims[0].value or 0) > 1:
                raise ValueError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
        return [operation.inputs[0].shape] * len(operation.outputs)

    def bind(node, xp):
        return Decoder(
            node["OUT_TYPE"], node["field_delim"], node["use_quote_delim"], node["na_value"], node["select_cols"]
        )


class Decoder:
    """The kernel: records and one default per column in, columns out."""

    def __init__(self, types: Sequence[DType], delim: bytes, quotes: bool, na: bytes, selected: Sequence[int]) -> None:
        if len(delim) != 1:
            raise invalid("field_delim should be only 1 char")
        self.types, self.delim, self.quotes = types, delim, quotes
        self.columns = {t: [i for i, each in enumerate(types) if each is t] for t in types}
        self.missing = (b"", na)
        self.selected = list(selected)

    def __call__(self, records: Any, *defaults: Any) -> list[Any]:
        _check(defaults)
        if records.ndim == 0:
            values = self._values(records.item(), 0, defaults)
            return [np.array(v, object) if isinstance(v, bytes) else v for v in values]
        texts = records.ravel().tolist()
        try:
            columns = self._all_at_once(texts, defaults)
        except ValueError:
            columns = self._one_by_one(texts, defaults)
        return [column.reshape(records.shape) for column in columns]

    def _all_at_once(self, texts: list[bytes], defaults: Sequence[Any]) -> list[Any]:
        """The columns. Raises ValueError if a record has to be read by itself."""
        mark = self.delim + b"\n" + self.delim  # a field of its own between the records
        whole, width = mark.join(texts), texts[0].count(self.delim) + 1 if texts else 0
        lines = whole.count(b"\n") >= max(len(texts), 1) or b"\r" in whole
        if lines or b"" in texts:
            raise ValueError("lines, or records without fields")
        fields = whole.split(self.delim)
        if len(fields) + 1 != len(texts) * (width + 1) or fields[width :: width + 1].count(b"\n") + 1 != len(texts):
            raise ValueError("records of different length")
        chosen = self.selected or range(width)
        if len(chosen) != len(self.types) or chosen[-1] >= width:
            raise ValueError("not as many fields as wanted")
        if self.quotes and b'"' in whole:
            fields = _unquoted(fields)
        columns: list[Any] = [fields[i :: width + 1] for i in chosen]
        gaps = list(map(self._gaps, columns))
        for dtype, places in self.columns.items():
            rows = _array([field for i in places for field in columns[i]], dtype).reshape(len(places), -1)
            for i, row in zip(places, rows):
                columns[i] = row.copy()
        for column, missing, default in zip(columns, gaps, defaults):
            if missing:
                column[missing] = default.item()  # ValueError if there is none
        return columns

    def _gaps(self, column: list[bytes]) -> list[int]:
        """The places of missing fields, which become zeros until they get their default."""
        empty, na = self.missing
        gaps = [i for i, field in enumerate(column) if field in self.missing] if empty in column or na in column else []
        for i in gaps:
            column[i] = b"0"
        return gaps

    def _one_by_one(self, texts: list[bytes], defaults: Sequence[Any]) -> list[Any]:
        rows = [self._values(text, i, defaults) for i, text in enumerate(texts)]
        columns = zip(*rows) if rows else [()] * len(self.types)
        return [np.array(column, dtype.as_numpy_dtype) for column, dtype in zip(columns, self.types)]

    def _values(self, text: bytes, record: int, defaults: Sequence[Any]) -> list[Any]:
        """The values of one record; InvalidArgumentError says which field of it is wrong."""
        if b'"' in text or b"\n" in text or b"\r" in text or not text:
            fields = self._careful_split(text)
        else:
            fields = text.split(self.delim)
        if self.selected:
            fields = [fields[i] for i in self.selected if i < len(fields)]
        if len(fields) != len(self.types):
            raise invalid(f"Expect {len(self.types)} fields but have {len(fields)} in record {record}")
        values = []
        for i, (field, dtype) in enumerate(zip(fields, self.types)):
            if field in self.missing:
                values.append(_default(defaults[i], i, record))
            elif dtype is dtypes.string:
                values.append(field)
            else:
                try:
                    values.append(number(field, dtype))
                except ValueError:
                    shown = f"{dtype_text(dtype)}: {field.decode(errors='replace')}"
                    raise invalid(f"Field {i} in record {record} is not a valid {shown}") from None
        return values

    def _careful_split(self, text: bytes) -> list[bytes]:
        """The fields of a record with quotes or line ends, as far as they are wanted."""
        fields: list[bytes] = []
        at, last = 0, self.selected[-1] if self.selected else len(text)
        while at < len(text) and len(fields) <= last:
            if text[at] in b"\r\n":  # before a field they do not count
                at += 1
                continue
            quoted = self.quotes and text[at] == ord('"')
            field, at = self._quoted(text, at + 1) if quoted else self._plain(text, at)
            fields.append(field)
        if text.endswith(self.delim) and len(fields) <= last:
            fields.append(b"")
        return fields

    def _plain(self, text: bytes, start: int) -> tuple[bytes, int]:
        """The field that begins at `start`, and where the next one does."""
        end = text.find(self.delim, start)
        field = text[start : end if end >= 0 else len(text)]
        if b"\n" in field or b"\r" in field or (self.quotes and b'"' in field):
            raise invalid("Unquoted fields cannot have quotes/CRLFs inside")
        return field, start + len(field) + 1

    def _quoted(self, text: bytes, start: int) -> tuple[bytes, int]:
        """The field from an opening quote to one before a delimiter or the end, and where the next field begins."""
        at = start
        while True:
            at = text.find(b'"', at)
            if at < 0:
                raise invalid("Quoted field has to end with quote followed by delim or end")
            after = text[at + 1 : at + 2]
            if after in (self.delim, b""):
                return text[start:at].replace(b'""', b'"'), at + 2
            if after != b'"':
                raise invalid("Quote inside a string has to be escaped by another quote")
            at += 2


def _array(fields: list[bytes], dtype: DType) -> Any:
    return np.array(fields, object) if dtype is dtypes.string else numbers(fields, dtype)


def _unquoted(fields: list[bytes]) -> list[bytes]:
    """The fields without the quotes around them. Raises ValueError if there are others."""
    inner = [field[1:-1] if field[:1] == field[-1:] == b'"' != field else field for field in fields]
    if b'"' in b"".join(inner):
        raise ValueError("quotes inside of fields, or around delimiters")
    return inner


def _default(default: Any, i: int, record: int) -> Any:
    if not default.size:
        raise invalid(f"Field {i} is required but missing in record {record}!")
    return default.ravel()[0]


def _check(defaults: Sequence[Any]) -> None:
    for i, default in enumerate(defaults):
        if default.ndim > 1:
            raise invalid("Each record default should be at most rank 1")
        if default.size > 1:
            raise invalid(f"There should only be 1 default per field but field {i} has {default.size}")
