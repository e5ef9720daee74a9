"""Examples and SequenceExamples: records with named features.

`functions` (what programs call, descriptions of features), `example_ops` (parse Examples), `sequence_ops` (parse
SequenceExamples), `columns` (one feature of a batch), `serialize_ops` (tensors as strings, JSON).
"""
