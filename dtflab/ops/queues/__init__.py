"""Queues, readers and accumulators: what many steps share and wait for.

Programs: `functions` (tf.FIFOQueue, TextLineReader, …).
Queues: `queue_ops` (make, put, take), `shared_queue` (the resource, with its lock), `queue_state` (its two lines of
waiting calls, without a lock), `queue_kinds` (which element is next).
Readers: `reader_ops` (make and read), `shared_reader` (the resource: a place in a file).
Accumulators: `accumulator_ops` (add and take gradients), `shared_accumulator` (the resource: the sum so far).
"""
