"""Optimizers, learning rates and moving averages.

Pages: `adadelta`, `adagrad`, `adagrad_da`, `adam`, `ftrl`, `gradient_descent`, `learning_rate_decay`, `momentum`,
`moving_averages`, `one_op_optimizer`, `optimizer`, `proximal_adagrad`, `proximal_gradient_descent`, `rmsprop`,
`slot_creator`.
"""
