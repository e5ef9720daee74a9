"""The user's side of a program: graphs, tensors, dtypes, shapes, devices, functions, gradients.

Design: docs/design/graph.md
"""
