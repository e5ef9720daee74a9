"""Queues of examples: producers, batches, and the threads that keep them filled.

Pages: `batching`, `producers`, `queue_runner`, `sparse_batching`.
"""
