"""Strings, bytes and whole files.

`functions` (what programs call), `elementwise_ops` (each string by itself), `part_ops` (strings taken apart and put
together), `number_ops` (from and to numbers), `numerals` (texts that are numbers), `csv_ops` (comma-separated values),
`regex_ops` (match and replace), `backtracking` (bounded time without RE2), `file_ops` (read, write, find).
"""
