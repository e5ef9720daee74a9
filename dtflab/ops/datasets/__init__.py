"""Data sets as values, the ops that make and change them, and iterators.

`dataset` (a data set, and the base of its ops), `elements` (its iterators), `sources` (tensors, ranges, files), `order`
(zip, take, repeat, cache), `shuffle` (in random order), `batch` (stacked, padded, apart, windows), `captured`
(functions with what they captured), `calls` (map, filter, interleave), `threads` (prefetch, parallel map),
`iterator_ops` (make, begin, next), `state` (an iterator's place).
"""
