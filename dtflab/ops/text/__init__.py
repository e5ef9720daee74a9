"""Strings, bytes and whole files.

Pages: `as_string`, `backtracking`, `csv_ops`, `decoding`, `encoding`, `file_ops`, `numerals`, `regex`,
`string_hash`, `strings`, `substrings`.
"""
