"""Data sets as values, their ops, and iterators.

Pages: `batch`, `calls`, `dataset`, `files`, `groups`, `iterator`, `order`, `shuffle`, `sources`, `state`,
`threads`.
"""
