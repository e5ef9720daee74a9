"""Queues, readers and accumulators: what many steps share and wait for.

Pages: `accumulator`, `accumulator_state`, `accumulators`, `queue_kinds`, `queue_ops`, `queue_resource`,
`queue_state`, `queues`, `reader`, `reader_state`, `readers`.
"""
