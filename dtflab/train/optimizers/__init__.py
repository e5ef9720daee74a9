"""Optimizers, learning rates and moving averages.

Pages: `adadelta`, `adagrad`, `adam`, `ftrl`, `gradient_descent`, `learning_rate_decay`, `momentum`,
`moving_averages`, `one_op_optimizer`, `optimizer`, `proximal`, `rmsprop`, `slot_creator`.
"""
