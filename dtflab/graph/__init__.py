"""What a user writes: graphs, tensors, dtypes, shapes, devices, functions, gradients.

Design: docs/design/graph.md
"""
