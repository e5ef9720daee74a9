"""Steps of the optimizers: the first inputs are variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes, op_registry
from tests.op_examples import Example, Values, Var, examples

# Of the inputs that are neither variables nor the gradient.
_SCALARS: dict[str, float] = {
    "alpha": 0.4, "lr": 0.3, "momentum": 0.8, "rho": 0.9, "epsilon": 0.05, "l1": 0.25, "l2": 0.125, "l2_shrinkage": 0.5,
    "lr_power": -0.5, "beta1_power": 0.7, "beta2_power": 0.8, "beta1": 0.9, "beta2": 0.95, "global_step": 3,
}  # fmt: skip
_CHOICES = ("use_nesterov", "update_slots", "multiply_linear_by_lr", "use_locking")


def _inputs(v: Values, shape: tuple[int, ...], rows: list[int] | None, **scalars: float) -> list[Any]:
    found: list[Any] = []
    for arg in op_registry.get(v.op).op_def.inputs:
        if arg.is_ref or arg.type == dtypes.resource:
            found.append(Var(_state(v, arg.name, shape)))
        elif arg.name in ("grad", "delta"):
            found.append(v.within(-1, 1, *(shape if rows is None else (len(rows), *shape[1:]))))
        elif arg.name == "indices":
            found.append(np.array(rows, np.int32))
        else:
            kind = np.int64 if arg.name == "global_step" else v.dtype.as_numpy_dtype
            found.append(np.array({**_SCALARS, **scalars}[arg.name], kind))
    return found


def _state(v: Values, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A state that an optimizer may find: means of squares are positive, and above the squares of means (`mg`)."""
    if name == "mg":
        return v.within(0.1, 0.5, *shape)
    return v.array(*shape) if name in ("var", "linear") else v.positive(*shape)


_DENSE = [
    f"{where}Apply{name}"
    for name in "GradientDescent Momentum Adagrad AdagradV2 AdagradDA Adadelta RMSProp CenteredRMSProp Adam Ftrl "
    "FtrlV2 ProximalGradientDescent ProximalAdagrad".split()
    for where in ("", "Resource")
]  # fmt: skip
_ROWS = [name.replace("Apply", "SparseApply") for name in _DENSE if not name.endswith(("yGradientDescent", "Adam"))]


@examples(*_DENSE, *_ROWS)
def step(v: Values) -> list[Example]:
    attrs = [a for a in _CHOICES if a in op_registry.get(v.op).op_def.attrs]
    if "Sparse" in v.op:
        cases = [((4, 2), [3, 0]), ((4,), [1, 2]), ((3, 2), [1, 1, 0]), ((3, 2), [])]
    else:
        cases = [((2, 3), None), ((), None)]
    takes = {arg.name for arg in op_registry.get(v.op).op_def.inputs}
    flags = [{attr: flag} for attr in attrs for flag in (False, True)]
    found = [v(*_inputs(v, *case), **flag) for case in cases for flag in flags]
    if "l1" in takes:
        found.append(v(*_inputs(v, *cases[0], l1=0.0)))
    if "lr_power" in takes and v.dtype == dtypes.float64:  # differences of rounded powers say little
        found += [v(*_inputs(v, *cases[0], lr_power=-0.25)), v(*_inputs(v, *cases[0], lr_power=0.0, l2=0.0))]
    return found
