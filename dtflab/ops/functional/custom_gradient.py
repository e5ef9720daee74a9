"""custom_gradient: a function of tensors that says itself what its gradient is.

Stands for `python/ops/custom_gradient.py`. Left out: gradients of variables that the function reads on its own; give
them as arguments.

Rule: results and arguments go together through one IdentityN, whose gradient is the given function: so that gradients
stop at the function's own operations.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.gradients import RegisterGradient
from dtflab.graph.scopes import get_default_graph
from dtflab.ops.arrays.functions import identity, identity_n

_numbers = itertools.count()


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f(*tensors)` returns (results, grad); `grad(*dys)` gives the gradients of the arguments.

    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        inputs = [convert_to_tensor(x) for x in nest.flatten(args)]
        results, grad = f(*nest.pack_sequence_as(args, inputs), **kwargs)
        flat = [convert_to_tensor(x) for x in nest.flatten(results)]
        for x in flat:
            identity(x)  # of no use; it is in TensorFlow's graph, and later names count it
        name = f"CustomGradient-{next(_numbers)}"
        RegisterGradient(name)(lambda op, *dys: [None] * len(flat) + _gradients(grad, dys[: len(flat)], len(inputs)))
        with get_default_graph().gradient_override_map({"IdentityN": name}):
            handed_on = identity_n(flat + inputs)
        return nest.pack_sequence_as(results, handed_on[: len(flat)])

    return decorated


def _gradients(grad: Callable[..., Any], dys: Any, count: int) -> list[Any]:
    found = nest.flatten(grad(*dys))
    if len(found) != count:
        raise ValueError(
            f"The gradient function of a custom_gradient must return a gradient for each of its {count} arguments; it "
            f"returned {len(found)}."
        )
    return found


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of one tensor, with the gradient of the identity."""

    @custom_gradient
    def passing(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs), lambda *dys: dys

    return passing
