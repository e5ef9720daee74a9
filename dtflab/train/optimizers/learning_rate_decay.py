"""Learning rates that change with the global step.

Stands for `python/training/learning_rate_decay.py` (and the schedules of Keras behind it).

Rule: a rate is a tensor of the initial rate's dtype, computed in every step; all other arguments, numbers or
tensors, are cast to that dtype. Steps are counted by `global_step`, a number, tensor or variable.
"""

from __future__ import annotations

import math as pi_of
from collections.abc import Sequence
from typing import Any

from dtflab.base.nest import flatten
from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.case import case
from dtflab.ops.control.cond import cond
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.sampling import functions as sampling


def _initial(learning_rate: Any) -> Tensor:
    return convert_to_tensor(learning_rate, name="initial_learning_rate")


def _cast(dtype: Any, *values: Any) -> list[Tensor]:
    return [arrays.cast(value, dtype) for value in values]


def _half_cosine(fraction: Tensor, height: Any = 0.5) -> Tensor:
    """From 1 down to 0 as `fraction` goes from 0 to 1 (times twice the `height`)."""
    return height * (1.0 + math.cos(constant(pi_of.pi) * fraction))


def _quotient(step: Tensor, decay_steps: Tensor, staircase: bool) -> Tensor:
    """How often `decay_steps` have passed; in whole numbers with `staircase`."""
    quotient: Tensor = step / decay_steps
    return math.floor(quotient) if staircase else quotient


def _periods(count: Tensor, fraction: Tensor) -> Tensor:
    """`count` whole cosines as `fraction` goes from 0 to 1."""
    return _half_cosine(2.0 * count * fraction)


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * decay_rate ** (global_step / decay_steps)`; with `staircase`, of the whole quotient."""
    with name_scope(name or "ExponentialDecay") as scope:
        rate = _initial(learning_rate)
        decay_steps, decay_rate, step = _cast(rate.dtype, decay_steps, decay_rate, global_step)
        p = _quotient(step, decay_steps, staircase)
        return math.multiply(rate, math.pow(decay_rate, p), name=scope)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`."""
    natural = math.exp(math.negative(decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps, natural, staircase, name)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`."""
    with name_scope(name or "InverseTimeDecay") as scope:
        rate = _initial(learning_rate)
        decay_steps, decay_rate, step = _cast(rate.dtype, decay_steps, decay_rate, global_step)
        p = _quotient(step, decay_steps, staircase)
        one = arrays.cast(constant(1), rate.dtype)
        return math.divide(rate, math.add(one, math.multiply(decay_rate, p)), name=scope)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From `learning_rate` to `end_learning_rate` in `decay_steps`, as `(1 - step / decay_steps) ** power`.

    Afterwards the rate stays; with `cycle` it begins again, each time over a multiple of the steps.
    """
    with name_scope(name or "PolynomialDecay") as scope:
        rate = _initial(learning_rate)
        end, power, step, steps = _cast(rate.dtype, end_learning_rate, power, global_step, decay_steps)
        if cycle:
            first = math.equal(step, 0)
            steps = math.multiply(steps, indexing.where_v2(first, 1.0, math.ceil(step / decay_steps)))
        else:
            step = math.minimum(step, steps)
        p = math.divide(step, steps)
        return math.add(math.multiply(rate - end, math.pow(1 - p, power)), end, name=scope)


def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Tensor:
    """`values[0]` up to and with `boundaries[0]`, `values[1]` up to and with `boundaries[1]`, …, then the last.

    >>> rate = tf.train.piecewise_constant(global_step, [100000, 110000], [1.0, 0.5, 0.1])

    Boundaries are of the dtype of `x` (int32 is cast to int64), values of one dtype.
    """
    limits = [convert_to_tensor(b) for b in flatten(boundaries)]
    rates = [convert_to_tensor(v) for v in flatten(values)]
    dtype = convert_to_tensor(x).dtype.base_dtype
    limits = [_checked_boundary(limit, dtype) for limit in limits]
    for rate in rates[1:]:
        if rate.dtype.base_dtype != rates[0].dtype.base_dtype:
            raise ValueError(
                "Values must have elements all with the same dtype "
                f"({rates[0].dtype.base_dtype} vs {rate.dtype.base_dtype})."
            )
    if len(limits) != len(rates) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name or "PiecewiseConstant"):
        step = convert_to_tensor(x)
        pieces = [(step <= limits[0], rates[0]), (step > limits[-1], rates[-1])]
        between = zip(limits[:-1], limits[1:], rates[1:-1])
        pieces += [((step > low) & (step <= high), rate) for low, high, rate in between]
        constant_rates = [(here, lambda rate=rate: rate) for here, rate in pieces]
        return case(constant_rates, lambda: rates[0], exclusive=True)


def _checked_boundary(boundary: Tensor, wanted: dtypes.DType) -> Tensor:
    kind = boundary.dtype.base_dtype
    if kind == wanted:
        return boundary
    if kind == dtypes.int32 and wanted == dtypes.int64:
        return arrays.cast(boundary, wanted)
    raise ValueError(f"Boundaries ({kind}) must have the same dtype as x ({wanted}).")


piecewise_constant_decay = piecewise_constant


# -- cosines ----------------------------------------------------------------------------------------------------------


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine, from `learning_rate` down to `alpha * learning_rate` in `decay_steps`."""
    with name_scope(name or "CosineDecay"):
        rate = _initial(learning_rate)
        decay_steps, step = _cast(rate.dtype, decay_steps, global_step)
        wave = _half_cosine(math.minimum(step, decay_steps) / decay_steps)
        return math.multiply(rate, (1 - alpha) * wave + alpha)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half cosines one after the other, each `t_mul` times as long and `m_mul` times as high as the one before."""
    with name_scope(name or "SGDRDecay") as scope:
        rate = _initial(learning_rate)
        first, alpha, t_mul, m_mul, step = _cast(rate.dtype, first_decay_steps, alpha, t_mul, m_mul, global_step)
        done = step / first

        def equal_periods() -> tuple[Tensor, Tensor]:
            restarts = math.floor(done)
            return restarts, done - restarts

        def growing_periods() -> tuple[Tensor, Tensor]:
            restarts = math.floor(math.log(1.0 - done * (1.0 - t_mul)) / math.log(t_mul))
            before = (1.0 - t_mul**restarts) / (1.0 - t_mul)
            return restarts, (done - before) / t_mul**restarts

        restarts, fraction = cond(math.equal(t_mul, 1.0), equal_periods, growing_periods)
        wave = _half_cosine(fraction, 0.5 * m_mul**restarts)
        return math.multiply(rate, (1 - alpha) * wave + alpha, name=scope)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """`(alpha + what is left of a straight line) * cosine of num_periods + beta`, times the rate."""
    with name_scope(name or "LinearCosineDecay") as scope:
        rate = _initial(learning_rate)
        steps, periods, alpha, beta, step = _cast(rate.dtype, decay_steps, num_periods, alpha, beta, global_step)
        step = math.minimum(step, steps)
        left = (steps - step) / steps
        wave = _periods(periods, step / steps)
        return math.multiply(rate, (alpha + left) * wave + beta, name=scope)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """linear_cosine_decay with noise on the straight line, of variance `initial_variance / (1 + step) ** decay`."""
    with name_scope(name or "NoisyLinearCosineDecay") as scope:
        rate = _initial(learning_rate)
        steps, variance, decay, periods, alpha, beta, step = _cast(
            rate.dtype, decay_steps, initial_variance, variance_decay, num_periods, alpha, beta, global_step
        )
        step = math.minimum(step, steps)
        left = (steps - step) / steps
        spread = math.sqrt(variance / math.pow(1.0 + step, decay))
        noisy = left + sampling.random_normal(left.shape, stddev=spread)
        wave = _periods(periods, step / steps)
        return math.multiply(rate, (alpha + noisy) * wave + beta, name=scope)
