"""Optimizer steps and checkpoints as ops.

Pages: `rules` (the optimizers' formulas), `updates` (their ops), `save_restore` (the ops of checkpoints),
`variable_saveables` (what savers save of variables).
"""
