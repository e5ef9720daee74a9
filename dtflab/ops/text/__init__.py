"""Strings, bytes and whole files.

Programs: `functions` (tf.strings, decoding, files).
Ops: `elementwise_ops` (each string by itself), `part_ops` (strings taken apart and put together), `number_ops` (from
and to numbers), `csv_ops` (comma-separated values), `regex_ops` (match and replace), `backtracking` (bounded time
without RE2), `file_ops` (read, write, find).
"""
