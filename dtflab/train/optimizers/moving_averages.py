"""Moving averages: for each variable a slower copy, which often does better on data not yet seen.

Stands for `python/training/moving_averages.py`. Left out: distribution strategies.

Rule: the average stands next to its variable: `average -= (average - value) * (1 - decay)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation
from dtflab.graph.scopes import add_to_collection, colocate_with, device, get_default_graph, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.control.functions import init_scope
from dtflab.ops.math import functions as math
from dtflab.ops.variables import functions as variables
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.initializers import zeros_initializer
from dtflab.ops.variables.variable import Variable
from dtflab.ops.variables.variable_scope import get_variable_scope, variable_scope
from dtflab.train.optimizers import slot_creator

_FLOATS = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Move `variable` towards `value` by the part `1 - decay`; the result holds its new value.

    `zero_debias` is for a variable that began at zero: it then holds `biased / (1 - decay ** updates)`, where
    `biased` and the count of updates are two more variables, `<variable>/biased` and `<variable>/local_step`.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        rest = convert_to_tensor(1.0 - decay, name="decay")
        if rest.dtype != variable.dtype.base_dtype:
            rest = arrays.cast(rest, variable.dtype.base_dtype)
        if zero_debias:
            return _assign_debiased(variable, value, rest)
        return variables.assign_sub(variable, (variable - value) * rest, name=scope)


def _assign_debiased(variable: Any, value: Any, rest: Any) -> Any:
    """A sum from zero misses `decay ** updates` of its weight; divided by what it has, it is an average."""
    with variable_scope(variable.name.removesuffix(":0"), values=[variable, value, rest]):
        zeros = zeros_initializer()
        with colocate_with(variable):
            biased = get_variable(
                _unused("biased"), shape=variable.shape, dtype=variable.dtype, initializer=zeros, trainable=False
            )
            steps = get_variable(
                _unused("local_step"), shape=[], dtype=variable.dtype, initializer=zeros, trainable=False
            )
    total = variables.assign_sub(biased, (biased - value) * rest)
    weight = 1 - math.pow(1.0 - rest, steps.assign_add(1))
    return variables.assign(variable, total / weight, name=f"{get_default_graph().get_name_scope()}/")


def _unused(name: str) -> str:
    """`name`, numbered if the variable scope has one of that name that is not to be reused."""
    scope = get_variable_scope()
    taken = {variable.op.name for variable in scope.global_variables()}
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
    return next(each for each in names if scope.reuse or f"{scope.name}/{each}" not in taken)


def weighted_moving_average(
    value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None, name: str | None = None
) -> Any:
    """The average of `value`, in which each counts by its `weight`: a tensor that first updates two averages.

    They are those of `value * weight` and of `weight`, and their variables go to `collections`. The division is
    `tf.truediv` or `tf.divide`.
    """
    collections = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        zeros = zeros_initializer()
        sums = [
            get_variable(key, shape, dtype, zeros, trainable=False, collections=collections)
            for key, shape, dtype in (
                ("value_x_weight", value.shape, value.dtype), ("weight", weight.shape, weight.dtype),
            )
        ]  # fmt: skip
        above, below = (
            assign_moving_average(average, term, decay, zero_debias=False)
            for average, term in zip(sums, (value * weight, weight), strict=True)
        )
        return (math.truediv if truediv else math.divide)(above, below, name=scope.name)


class ExponentialMovingAverage:
    """Averages of variables, or of tensors, in which what was counts less and less.

    >>> averages = tf.train.ExponentialMovingAverage(decay=0.999)
    >>> with tf.control_dependencies([train]):
    ...     train = averages.apply([w, b])
    >>> saver = tf.train.Saver(averages.variables_to_restore())  # in the program that evaluates

    A decay near 1 averages over many steps; with `num_updates` (a step count) it begins smaller:
    `min(decay, (1 + num_updates) / (10 + num_updates))`. `zero_debias` is for averages of tensors, which begin at 0.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self.name = name  # what follows the name of a variable in the name of its average
        self._averages: dict[Any, Variable] = {}

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that updates the averages of `var_list` (all trainable variables), made if there are none.

        An average of a variable begins at its initial value, one of a tensor at zero. TypeError if one is not of
        floating dtype.
        """
        var_list = variables.trainable_variables() if var_list is None else var_list
        of_tensors = {var for var in var_list if var not in self._averages and not isinstance(var, Variable)}
        for var in var_list:
            if var.dtype.base_dtype not in _FLOATS:
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if var not in self._averages:
                with init_scope():
                    self._averages[var] = self._average_of(var)
        with name_scope(self.name) as scope:
            decay = self._decay_now()
            updates = [
                assign_moving_average(self._averages[var], var, decay, self._zero_debias and var in of_tensors)
                for var in var_list
            ]
            return control.group(*updates, name=scope)

    def _average_of(self, var: Any) -> Variable:
        if isinstance(var, Variable):
            with device(var.device):
                initial = var.initialized_value()
            average = slot_creator.create_slot(var, initial, self.name)
            add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            return average
        is_variable = var.op.type in ("Variable", "VariableV2", "VarHandleOp")
        return slot_creator.create_zeros_slot(var, self.name, colocate_with_primary=is_variable)

    def _decay_now(self) -> Any:
        decay = convert_to_tensor(self._decay, dtype=dtypes.float32, name="decay")
        if self._num_updates is None:
            return decay
        done = arrays.cast(self._num_updates, dtypes.float32, name="num_updates")
        return math.minimum(decay, (1.0 + done) / (10.0 + done))

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of `var`, or None."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the average of `var`, also if it is made by another program."""
        if var in self._averages:
            return self._averages[var].op.name
        name = var.name.removesuffix(":0")
        return get_default_graph().unique_name(f"{name}/{self.name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Iterable[Any] | None = None) -> dict[str, Any]:
        """A Saver's dict that reads averages in place of the variables themselves: name in the checkpoint → variable.

        Averaged are `moving_avg_variables` (by default the trainable ones and those that have averages); all other
        global variables go by their own names.
        """
        if moving_avg_variables is None:
            moving_avg_variables = [*variables.trainable_variables(), *variables.moving_average_variables()]
        averaged = list(dict.fromkeys(moving_avg_variables))
        found = {self.average_name(var): var for var in averaged}
        names = {var.name for var in averaged}
        for var in variables.global_variables():
            if var.name not in names:
                found.setdefault(var.op.name, var)
        return found
