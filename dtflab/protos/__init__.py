"""The messages that travel between tasks, generated from `protos/*.proto` by `protos/generate.py`.

Stands for the `*_pb2` modules of tensorflow/core: `from dtflab.protos import graph_pb2`.
Left out: an import of all of them here, because a program that only builds a graph needs few.

Design: docs/design/protos.md
"""
