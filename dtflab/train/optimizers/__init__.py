"""Optimizers, learning rates and moving averages.

Pages: `optimizer` (from a loss to an update), `slot_creator` (variables next to those trained), `one_op_optimizer` (the
base of what follows), `gradient_descent` (against the gradient), `momentum` (past gradients push on), `adagrad` (a rate
for each element), `adadelta` (steps in the units of the variable), `rmsprop` (divides by a running RMS of gradients),
`adam` (means of gradients and of their squares), `ftrl` (for sparse weights), `proximal` (penalties after each step),
`learning_rate_decay` (rates that change), `moving_averages` (a slower copy of each variable).
"""
