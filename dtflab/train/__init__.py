"""Training: optimizers, the global step, and where the variables of a replicated model go."""
