"""Random graphs for the placer: pins of all sorts, variables of many types, groups, sources, shapes, references."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

TASKS = ((0,), (1,), (2,), (3,), (0, 1), (2, 1), (3, 1), (3, 2))  # of job d; they have 3, 2, 1 and no GPUs
PINS = (
    "/cpu:0 /gpu:0 /gpu:0 /gpu:1 /gpu:2 /device:GPU:* /job:d /job:d/gpu:0 /job:t /job:t/cpu:0 /job:d/cpu:0 /task:0 "
    "/job:d/gpu:1 /device:*:1 /replica:0"
).split()
TYPES = ("float32", "float64", "int32", "int64", "float16", "complex64", "string", "bool", "int8")
NUMBERS = ("float32", "float64", "int32", "int64")


def build(seed: int, satisfiable: bool) -> Callable[[Any], None]:
    """A program of some 30 ops; pins that contradict each other are rare if it is to be `satisfiable`."""

    def program(tf: Any) -> None:
        maker = _Maker(tf, random.Random(seed), 0.12 if satisfiable else 0.5)
        for _ in range(12):
            maker.add()
        if not satisfiable:
            maker.colocate()

    return program


class _Maker:
    def __init__(self, tf: Any, rng: random.Random, pinned: float) -> None:
        self.tf, self.rng, self.pinned = tf, rng, pinned
        self.values = [self._source() for _ in range(3)]
        self.variables: list[Any] = []

    def add(self) -> None:
        """One more statement of the program, on its own device, perhaps after something."""
        kinds = [self._source, self._variable, self._variable, self._sum, self._shape, self._identity, self._text,
                 self._matmul, self._update, self._queue, self._branch, self._beside]  # fmt: skip
        after = [self.rng.choice(self.values)] if self.rng.random() < 0.1 else []
        with self.tf.device(self._pin()), self.tf.control_dependencies(after):
            made = self.rng.choice(kinds)()
        if made is not None:
            self.values.append(made)

    def colocate(self) -> None:
        """Write `_class` into some ops, whatever they ask for."""
        operations = self.tf.get_default_graph().get_operations()
        for operation in self.rng.sample(operations, min(3, len(operations))):
            others = [self.rng.choice(operations).name for _ in range(self.rng.choice((1, 1, 2)))]
            groups = [b"loc:@" + other.encode() for other in others]
            operation._set_attr("_class", self.tf.AttrValue(list=self.tf.AttrValue.ListValue(s=groups)))

    def _pin(self) -> str:
        return self.rng.choice(PINS) if self.rng.random() < self.pinned else ""

    def _value(self, *types: str) -> Any:
        found = [v for v in self.values if v.dtype.base_dtype.name in types]
        return self.rng.choice(found) if found else self._constant(self.rng.choice(types))

    def _constant(self, dtype: str) -> Any:
        return self.tf.constant({"string": "a", "bool": True}.get(dtype, 1), dtype)

    def _source(self) -> Any:
        dtype = self.rng.choice(TYPES)
        return self._constant(dtype) if self.rng.random() < 0.7 else self.tf.placeholder(dtype, [])

    def _variable(self) -> Any:
        initial = self._constant(self.rng.choice(TYPES))
        variable = self.tf.Variable(initial, use_resource=self.rng.random() < 0.5)
        self.variables.append(variable)
        return variable.read_value() if self.rng.random() < 0.5 else None

    def _sum(self) -> Any:
        a = self._value(*NUMBERS)
        return self.tf.add(a, self._value(a.dtype.base_dtype.name))

    def _shape(self) -> Any:
        raw, value = self.tf.raw_ops, self.rng.choice(self.values)  # `tf.shape` of a known shape is a constant
        self.tf.negative(raw.Shape(input=value))
        return self.rng.choice((raw.Size, raw.Rank))(input=value)

    def _identity(self) -> Any:
        return self.tf.identity(self.rng.choice(self.values))

    def _text(self) -> Any:
        return self.tf.as_string(self._value(*NUMBERS))

    def _matmul(self) -> Any:
        a = self.tf.fill([1, 1], self._value("float32", "int32", "float64"))
        return self.tf.reshape(self.tf.matmul(a, a), [])

    def _update(self) -> Any:
        if not self.variables:
            return None
        variable = self.rng.choice(self.variables)
        dtype = variable.dtype.base_dtype.name
        if dtype in NUMBERS and self.rng.random() < 0.5:
            return self.tf.identity(variable.assign_add(self._value(dtype)))
        return self.tf.identity(variable.assign(self._value(dtype)))

    def _queue(self) -> Any:
        dtype = self.rng.choice(TYPES)
        queue = self.tf.FIFOQueue(3, [dtype], shapes=[[]])
        with self.tf.device(self._pin()):
            queue.enqueue(self._value(dtype))
        return queue.dequeue()

    def _branch(self) -> Any:
        a = self.rng.choice(self.values)
        no, yes = self.tf.raw_ops.Switch(data=a, pred=self._value("bool"))
        return self.tf.raw_ops.Merge(inputs=[no, self.tf.identity(yes)])[0]

    def _beside(self) -> Any:
        with self.tf.colocate_with(self.rng.choice(self.values)):
            return self.tf.identity(self.rng.choice(self.values))
