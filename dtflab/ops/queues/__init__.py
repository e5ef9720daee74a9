"""Queues, readers and accumulators: what many steps share and wait for.

`functions` (tf.FIFOQueue, TextLineReader, …), `queue_ops` (make, put, take), `queue_resource` (a queue with its lock),
`queue_state` (its lines), `queue_kinds` (which element is next), `reader_ops` (make and read), `reader_state` (a place
in a file), `accumulator_ops` (add and take gradients), `accumulator_state` (the sum so far).
"""
