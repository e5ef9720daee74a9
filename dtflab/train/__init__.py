"""The namespace `tf.train`: optimizers, the global step, and where the variables of a replicated model go."""

from __future__ import annotations

from dtflab.train.device_setter import replica_device_setter
from dtflab.train.gradient_descent import GradientDescentOptimizer
from dtflab.train.optimizer import Optimizer
from dtflab.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)

__all__ = [
    "GradientDescentOptimizer",
    "Optimizer",
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "replica_device_setter",
]
