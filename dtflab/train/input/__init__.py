"""Queues of examples: producers, batches, and the threads that keep them filled.

Pages: `producers` (the front of a pipeline: file names, numbers, slices), `batching` (examples into batches),
`sparse_batching` (SparseTensors in batches), `queue_runner` (threads that fill a queue), `coordinator` (threads that
stop together, those of sessions, too).
"""
