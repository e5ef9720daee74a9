"""Examples and SequenceExamples: records with named features.

Programs: `functions` (parsing, descriptions of features).
Ops: `example_ops` (parse Examples), `sequence_ops` (parse SequenceExamples), `columns` (one feature of a batch),
`serialize_ops` (tensors as strings, JSON).
"""
