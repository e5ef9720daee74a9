"""The formulas of the optimizers: how a variable and its slots change with one gradient.

Stands for the functors of `core/kernels/training_ops.cc`. Each is there once, for reference and resource variables,
for dense gradients and for rows (`updates.py` makes the ops).

Rule: positional arguments are arrays of one shape, and are written into; the others are scalars, `grad` is an
array; keywords are attributes of the op. All arithmetic is in the variables' own type, in TensorFlow's order, so that
it rounds as there; where that has another order for rows, so has the formula: `…_rows`.
"""

from __future__ import annotations

from operator import iadd, imul, isub, itruediv
from typing import Any

from dtflab.ops.messages import invalid
from dtflab.ops.training.updates import rule


@rule("GradientDescent", sparse=False, gradient="delta")
def gradient_descent(xp: Any, var: Any, /, alpha: Any, grad: Any) -> None:
    """Down the gradient."""
    var -= grad * alpha


@rule("Momentum", cost=4, use_nesterov="bool = false")
def momentum(xp: Any, var: Any, accum: Any, /, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool) -> None:
    """A ball that rolls; with Nesterov it goes by the gradient of where it is about to be."""
    accum *= momentum
    accum += grad
    var -= grad * lr + accum * momentum * lr if use_nesterov else accum * lr


@rule("Adagrad", cost=6, update_slots="bool = true")
def adagrad(xp: Any, var: Any, accum: Any, /, lr: Any, grad: Any, *, update_slots: bool) -> None:
    """Steps get shorter by the gradients there have been: `accum` is the sum of their squares."""
    if update_slots:
        accum += grad * grad
    var -= grad * lr / xp.sqrt(accum)


@rule("AdagradV2", cost=7, update_slots="bool = true")
def adagrad_v2(xp: Any, var: Any, accum: Any, /, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool) -> None:
    """Adagrad that also stands an `accum` of zero."""
    if update_slots:
        accum += grad * grad
    var -= grad * lr / (xp.sqrt(accum) + epsilon)


@rule("AdagradDA", cost=12, global_step="int64")
def adagrad_da(xp: Any, var: Any, gradient_accumulator: Any, gradient_squared_accumulator: Any, /,
               grad: Any, lr: Any, l1: Any, l2: Any, global_step: Any) -> None:  # fmt: skip
    """Dual averaging: the variable follows from all gradients so far, and is zero while they are small."""
    total, squares = gradient_accumulator, gradient_squared_accumulator
    total += grad
    squares += grad * grad
    steps = global_step.astype(var.dtype)
    pull = xp.sign(total) * xp.maximum(xp.abs(total) - steps * l1, 0) if l1 > 0 else total
    var[...] = -lr * pull / (l2 * (steps * lr) + xp.sqrt(squares))


@rule("Adadelta", cost=14)
def adadelta(xp: Any, var: Any, accum: Any, accum_update: Any, /, lr: Any, rho: Any, epsilon: Any, grad: Any) -> None:
    """Steps of the size of the steps before, in the units of the variable."""
    accum[...] = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    var -= update * lr
    accum_update[...] = accum_update * rho + update * update * (1 - rho)


def _rms_prop_rows(xp: Any, var: Any, ms: Any, mom: Any, /,
                   lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any) -> None:  # fmt: skip
    ms[...] = ms * rho + grad * grad * (1 - rho)
    mom[...] = mom * momentum + 1 / xp.sqrt(ms + epsilon) * lr * grad
    var -= mom


@rule("RMSProp", cost=10, rows=_rms_prop_rows)
def rms_prop(xp: Any, var: Any, ms: Any, mom: Any, /,
             lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any) -> None:  # fmt: skip
    """Momentum of gradients in units of their recent size: `ms` is the moving mean of their squares."""
    ms += (grad * grad - ms) * (1 - rho)
    mom[...] = mom * momentum + grad * lr / xp.sqrt(ms + epsilon)
    var -= mom


def _centered_rms_prop_rows(xp: Any, var: Any, mg: Any, ms: Any, mom: Any, /,
                            lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any) -> None:  # fmt: skip
    ms[...] = ms * rho + grad * grad * (1 - rho)
    mg[...] = mg * rho + grad * (1 - rho)
    mom[...] = mom * momentum + 1 / xp.sqrt(ms + epsilon - mg * mg) * lr * grad
    var -= mom


@rule("CenteredRMSProp", cost=15, rows=_centered_rms_prop_rows)
def centered_rms_prop(xp: Any, var: Any, mg: Any, ms: Any, mom: Any, /,
                      lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any) -> None:  # fmt: skip
    """RMSProp by the variance instead of the mean square: `mg` is the moving mean of the gradients."""
    ms += (grad * grad - ms) * (1 - rho)
    mg += (grad - mg) * (1 - rho)
    mom[...] = mom * momentum + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    var -= mom


@rule("Adam", sparse=False, cost=12, use_nesterov="bool = false")
def adam(xp: Any, var: Any, m: Any, v: Any, /, beta1_power: Any, beta2_power: Any, lr: Any,
         beta1: Any, beta2: Any, epsilon: Any, grad: Any, *, use_nesterov: bool) -> None:  # fmt: skip
    """The moving mean of gradients over that of their sizes; `alpha` makes up for both beginning at zero."""
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m += imul(grad - m, 1 - beta1)  # in the difference's own memory
    v += imul(isub(grad * grad, v), 1 - beta2)
    ahead = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    var -= itruediv(ahead * alpha, iadd(xp.sqrt(v), epsilon))


# -- follow the regularized leader ------------------------------------------------------------------------------------


def _check_strengths(lr: Any, l1: Any, l2: Any, lr_power: Any, multiply_linear_by_lr: bool, **others: Any) -> None:
    if not (lr > 0 or (multiply_linear_by_lr and lr == 0)):
        raise invalid(f"lr is not a {'non-negative' if multiply_linear_by_lr else 'positive'} scalar: {lr}")
    for name, strength in (("l1", l1), ("l2", l2), ("l2 shrinkage", others.get("l2_shrinkage", 0))):
        if not strength >= 0:
            raise invalid(f"{name} regularization strength is not a non-negative scalar: {strength}")
    if not lr_power <= 0:
        raise invalid(f"lr_power is not a non-positive scalar: {lr_power}")


@rule("Ftrl", cost=20, check_rows=_check_strengths, multiply_linear_by_lr="bool = false")
def ftrl(xp: Any, var: Any, accum: Any, linear: Any, /, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any,
         *, multiply_linear_by_lr: bool) -> None:  # fmt: skip
    """FTRL-proximal: sparse weights from an L1 penalty on the sum of all gradients."""
    _follow_leader(xp, var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


@rule("FtrlV2", cost=23, check_rows=_check_strengths, multiply_linear_by_lr="bool = false")
def ftrl_v2(xp: Any, var: Any, accum: Any, linear: Any, /, grad: Any, lr: Any, l1: Any, l2: Any,
            l2_shrinkage: Any, lr_power: Any, *, multiply_linear_by_lr: bool) -> None:  # fmt: skip
    """FTRL-proximal with a penalty on the weights' size as if it were part of the loss."""
    shrunk = grad + 2 * l2_shrinkage * var
    _follow_leader(xp, var, accum, linear, grad, shrunk, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _follow_leader(xp: Any, var: Any, accum: Any, linear: Any, grad: Any, shrunk: Any, lr: Any, l1: Any, l2: Any,
                   lr_power: Any, multiply_linear_by_lr: bool) -> None:  # fmt: skip
    squares = accum + grad * grad
    old, new = (xp.sqrt(a) if lr_power == -0.5 else a**-lr_power for a in (accum, squares))
    if multiply_linear_by_lr:  # then `linear` holds `lr` times what it holds otherwise
        linear += shrunk * lr - (new - old) * var
        l1 = l1 * lr
        strength = new + 2 * l2 * lr
    else:
        linear += shrunk - (new - old) / lr * var
        strength = new / lr + 2 * l2
    accum[...] = squares
    var[...] = xp.where(xp.abs(linear) > l1, (l1 * xp.sign(linear) - linear) / strength, xp.zeros_like(var))


# -- proximal steps ---------------------------------------------------------------------------------------------------


@rule("ProximalGradientDescent", gradient="delta", cost=8)
def proximal_gradient_descent(xp: Any, var: Any, /, alpha: Any, l1: Any, l2: Any, grad: Any) -> None:
    """Down the gradient, then towards zero as far as the penalties pull."""
    var -= grad * alpha
    _shrink(xp, var, alpha, l1, l2)


@rule("ProximalAdagrad", cost=12)
def proximal_adagrad(xp: Any, var: Any, accum: Any, /, lr: Any, l1: Any, l2: Any, grad: Any) -> None:
    """Proximal descent with Adagrad's rate for each element."""
    accum += grad * grad
    rate = lr / xp.sqrt(accum)
    var -= grad * rate
    _shrink(xp, var, rate, l1, l2)


def _shrink(xp: Any, var: Any, rate: Any, l1: Any, l2: Any) -> None:
    """The point that is near `var` and has small penalties: FOBOS, forward-backward splitting."""
    if l1 > 0:
        var[...] = xp.sign(var) * xp.maximum(xp.abs(var) - rate * l1, 0)
    var /= 1 + l2 * rate
