"""The functions of strings: `tf.strings`, decoding, whole files.

Stands for `python/ops/string_ops.py`, `ragged_string_ops.py` and parts of `parsing_ops.py` and `io_ops.py`. Left out:
results that are RaggedTensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import expand_dims, range
from dtflab.ops.messages import renamed
from dtflab.ops.sparse.sparse_tensor import SparseTensor

# -- numbers ------------------------------------------------------------------------------------------


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Each number as text: with `precision` digits after the point, as 1e+05 if `scientific`, as %g if `shortest`.

    `width` is the least number of characters; `fill` is one of the flags of C's printf: ' ', '+', '-', '0' and '#'.
    """
    layout = {"scientific": scientific, "shortest": shortest, "width": width, "fill": fill}
    return apply_op("AsString", name, input=input, precision=precision, **layout)


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The bytes of each string as numbers of `out_type`, in one more dimension; all strings have the same length.

    InvalidArgumentError where the lengths differ or are not whole numbers. `bytes` is the old name of `input_bytes`.
    """
    input_bytes = renamed("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    return apply_op("DecodeRaw", name, bytes=input_bytes, out_type=out_type, little_endian=little_endian)


def decode_raw_v2(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: Any = None, name: str | None = None
) -> Tensor:
    """Numbers from the bytes of strings; each is first padded or cut to `fixed_length` bytes, if that is given."""
    how = {"out_type": out_type, "little_endian": little_endian}
    if fixed_length is None:
        return apply_op("DecodeRaw", name, bytes=input_bytes, **how)
    return apply_op("DecodePaddedRaw", name, input_bytes=input_bytes, fixed_length=fixed_length, **how)


def string_to_number(
    string_tensor: Any = None, out_type: Any = dtypes.float32, name: str | None = None, input: Any = None
) -> Tensor:
    """Each string as a number of `out_type`; InvalidArgumentError names the first that is not a number.

    `input` is the name of `string_tensor` in TensorFlow 2.
    """
    string_tensor = renamed("input", input, "string_tensor", string_tensor)
    return apply_op("StringToNumber", name, string_tensor=string_tensor, out_type=out_type)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """One tensor per column, each of the shape of `records` and the dtype of its default.

    `records` holds strings, one record each. A default is a scalar or a list of one value, used where a field is empty
    or is `na_value`; an empty tensor of the column's dtype means that the field must be there. `select_cols` are the
    columns to keep, in rising order. A field may stand in double quotes, a quote in it written twice, unless
    `use_quote_delim` is False. InvalidArgumentError names the field and the record that are wrong.
    """
    if select_cols is not None:
        _check_columns(list(select_cols), len(record_defaults))
    how = {"field_delim": field_delim, "use_quote_delim": use_quote_delim, "na_value": na_value}
    return apply_op("DecodeCSV", name, records=records, record_defaults=record_defaults, select_cols=select_cols, **how)


def _check_columns(selected: list[int], count: int) -> None:
    if any(b <= a for a, b in itertools.pairwise(selected)):
        raise ValueError("select_cols is not strictly increasing.")
    if selected[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if len(selected) != count:
        raise ValueError("Length of select_cols and record_defaults do not match.")


# -- each string --------------------------------------------------------------------------------------


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Each string in base 64 with letters for URLs; `pad` fills it up by `=` to a multiple of four letters."""
    return apply_op("EncodeBase64", name, input=input, pad=pad)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Decode results of `encode_base64`, with or without padding. Malformed ones raise InvalidArgumentError."""
    return apply_op("DecodeBase64", name, input=input)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Each string inflated; `compression_type` is 'ZLIB', 'GZIP' or '' for none. Damaged data raises DataLossError."""
    return apply_op("DecodeCompressed", name, bytes=bytes, compression_type=compression_type)


def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """The bucket, below `num_buckets`, of each string: int64. Use `string_to_hash_bucket_fast` in new programs."""
    string_tensor = renamed("input", input, "string_tensor", string_tensor)
    return apply_op("StringToHashBucket", name, string_tensor=string_tensor, num_buckets=num_buckets)


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The bucket, below `num_buckets`, of each string: int64, the same in every release."""
    return apply_op("StringToHashBucketFast", name, input=input, num_buckets=num_buckets)


def string_to_hash_bucket_strong(input: Any, num_buckets: int, key: Sequence[int], name: str | None = None) -> Tensor:
    """The bucket of each string, by a hash that is unpredictable without `key`, two numbers."""
    return apply_op("StringToHashBucketStrong", name, input=input, num_buckets=num_buckets, key=key)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The number of bytes (or, if `unit` is 'UTF8_CHAR', characters) of each string: int32."""
    return apply_op("StringLength", name, input=input, unit=unit)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """In lower case: ASCII letters only, all letters if `encoding` is 'utf-8'."""
    return apply_op("StringLower", name, input=input, encoding=encoding)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """In upper case: ASCII letters only, all letters if `encoding` is 'utf-8'."""
    return apply_op("StringUpper", name, input=input, encoding=encoding)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """The strings without white space at their ends."""
    return apply_op("StringStrip", name, input=input)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """True where all of a string matches `pattern`."""
    op_type = "StaticRegexFullMatch" if isinstance(pattern, str | bytes) else "RegexFullMatch"
    return apply_op(op_type, name, input=input, pattern=pattern)


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Each string with `rewrite` for all that matches `pattern`, or for the first match only.

    In `rewrite`, `\\1` to `\\9` are the groups of the pattern and `\\0` is the match. A run raises
    InvalidArgumentError for a malformed pattern and, unlike TensorFlow, for a rewrite that refers to a missing group.
    """
    static = isinstance(pattern, str | bytes) and isinstance(rewrite, str | bytes)
    op_type = "StaticRegexReplace" if static else "RegexReplace"
    return apply_op(op_type, name, input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global)


# -- parts --------------------------------------------------------------------------------------------


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """From each string `len` bytes (or, if `unit` is 'UTF8_CHAR', characters) from `pos` on; shapes are broadcast.

    A negative `pos` counts from the end. A run raises InvalidArgumentError if it lies outside the string.
    """
    return apply_op("Substr", name, input=input, pos=pos, len=len, unit=unit)


def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """Split a vector of strings at each character of `sep` (a space if None): a SparseTensor with a row for each.

    Where `sep` is empty, each byte is a part. `delimiter` is the old name of `sep`.
    """
    with name_scope(name, "StringSplit", [source]):
        sep = renamed("sep", sep, "delimiter", delimiter)
        at = convert_to_tensor(" " if sep is None else sep, dtypes.string)
        _check_sparse(result_type)
        strings = convert_to_tensor(source, dtypes.string)
        return SparseTensor(*apply_op("StringSplit", None, input=strings, delimiter=at, skip_empty=skip_empty))


def _check_sparse(result_type: str) -> None:
    if result_type != "SparseTensor":
        raise ValueError(
            f"result_type must be 'SparseTensor' here, as dtflab has no RaggedTensors; got {result_type!r}."
        )


def strings_split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> SparseTensor:
    """Split a vector of strings, or one, as Python's `split` does: a SparseTensor with a row for each."""
    input = renamed("input", input, "source", source)
    with name_scope(name, "StringSplit", [input]):
        _check_sparse(result_type)
        strings = convert_to_tensor(input, dtypes.string, name="input")
        if strings.shape.ndims == 0:
            strings = expand_dims(strings, 0)
        sep = convert_to_tensor("" if sep is None else sep, dtypes.string)
        return SparseTensor(*apply_op("StringSplitV2", None, input=strings, sep=sep, maxsplit=maxsplit))


# -- joined -------------------------------------------------------------------------------------------


def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """The strings of `inputs` put together, with `separator` between; scalars count for every element."""
    return apply_op("StringJoin", name, inputs=list(inputs), separator=separator)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The strings along the dimensions `axis` (all of them if None) put together, with `separator` between.

    The dimensions are joined in the order of `axis`; None joins all elements in row-major order. `keepdims` leaves
    dimensions of size 1.
    """
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(None, "ReduceJoin", [inputs, axis]):
        inputs = convert_to_tensor(inputs)
        if axis is None:
            ndims = inputs.shape.ndims
            last_first = range(arrays.rank(inputs) - 1, -1, -1) if ndims is None else np.arange(ndims)[::-1]
            axis = convert_to_tensor(last_first, dtypes.int32, name="Const")
        how = {"keep_dims": bool(keep), "separator": separator}
        return apply_op("ReduceJoin", name, inputs=inputs, reduction_indices=axis, **how)


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """For each of `num_segments` segments, the strings of `inputs` with its id, joined by `separator`."""
    segments = {"segment_ids": segment_ids, "num_segments": num_segments}
    return apply_op("UnsortedSegmentJoin", name, inputs=inputs, **segments, separator=separator)


# -- files --------------------------------------------------------------------------------------------


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The contents of the file, a string scalar. A run raises NotFoundError if the file does not exist."""
    return apply_op("ReadFile", name, filename=filename)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Write a string scalar as a file, and create missing folders."""
    return apply_op("WriteFile", name, filename=filename, contents=contents)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The existing files that match a pattern or one of several (see `tf.gfile.Glob`), sorted: a vector of strings."""
    return apply_op("MatchingFiles", name, pattern=pattern)
