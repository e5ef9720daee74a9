"""Examples: protocol messages with features, to tensors and back.

Pages: `example`, `example_values`, `features`, `parsing`, `sequence_example`, `serializing`.
"""
