"""Optimizer steps and checkpoints as ops.

Pages: `rules` (the optimizers' formulas), `updates` (their ops), `save_restore` (the ops of checkpoints), `saveable`
(what savers save).
"""
