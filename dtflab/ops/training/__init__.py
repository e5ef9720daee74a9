"""Optimizer steps and checkpoints as ops.

Pages: `rules`, `save_restore`, `saveable`, `updates`.
"""
