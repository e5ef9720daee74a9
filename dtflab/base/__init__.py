"""The ground floor: what knows nothing of graphs, and what every other room may use.

- errors: `errors` (TensorFlow's classes), `error_report` (what a notebook shows of one), `missing` (names of TF1 that
  dtflab does not have).
- seeing: `watch` (calls, queues and uses of variables, told to whoever looks), `tf_logging`, `text_table`.
- data: `nest` (structures), `hashing` and `fingerprint` (TensorFlow's hashes), `varint`.
- Python: `garbage` (pauses of the collector, frames of threads), `redirect` (modules with names of their own).
"""
