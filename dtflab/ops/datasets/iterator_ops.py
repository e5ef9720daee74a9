"""Iterators on a device: the ops that make them, begin, take the next element, and name them.

Stands for `core/kernels/data/iterator_ops.cc` and `reduce_dataset_op.cc`. Left out: optionals, iterators that only a
handle keeps alive, checkpoints of iterators.

Rule: an iterator with a `shared_name` stays in its container until that is reset; one without goes with the session.
Its handle as a string can be fed to another graph or session, which then takes from the same iterator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp, StatefulOp
from dtflab.ops.datasets.captured import Captured
from dtflab.ops.datasets.dataset import METADATA, OUTPUTS, Dataset, Run, check_signature
from dtflab.ops.datasets.state import IteratorResource
from dtflab.ops.handles import ResourceHandle, new_or_shared, resource_of
from dtflab.ops.messages import invalid
from dtflab.protos.resource_handle_pb2 import ResourceHandleProto

ITERATOR_TYPE = "tensorflow::data::IteratorResource"


# -- making iterators -------------------------------------------------------------------------------------------------


_NAMED = f"() -> (handle: resource) where shared_name: string, container: string{OUTPUTS}"


@op(f"Iterator{_NAMED}", f"IteratorV2{_NAMED}")
class NewIterator(StatefulOp):
    """Gives the handle of an iterator. The first op that names an iterator makes it."""

    infer = shapes.scalar

    def make(ctx, node, name):
        return IteratorResource(name, node["output_types"], node["output_shapes"])

    @classmethod
    def bind(cls, node, xp):
        return new_or_shared(node, IteratorResource, ITERATOR_TYPE, lambda ctx, name: cls.make(ctx, node, name))


@op(f"""OneShotIterator() -> (handle: resource)
       dataset_factory: func{OUTPUTS}
       container: string = '', shared_name: string = ''""")
class OneShotIterator(NewIterator):
    """An iterator that begins by itself, once, with the data set that a function makes."""

    def make(ctx, node, name):
        iterator = NewIterator.make(ctx, node, name)
        iterator.begin(ctx.instantiate(node["dataset_factory"])([])[0], ctx)
        return iterator


@op("MakeIterator(dataset: variant, iterator: resource) -> ()")
class MakeIterator(StatefulOp):
    infer = shapes.none

    def bind(node, xp):
        return lambda ctx, dataset, handle: resource_of(ctx, handle, IteratorResource).begin(dataset, ctx)


# -- using them -------------------------------------------------------------------------------------------------------


def _declared_shapes(operation: Any) -> list[TensorShape]:
    found: list[TensorShape] = operation.get_attr("output_shapes")
    return [TensorShape(shape) for shape in found]


_NEXT = f"(iterator: resource) -> (components: output_types){OUTPUTS}"


@op(f"IteratorGetNext{_NEXT}", f"IteratorGetNextSync{_NEXT}")
class IteratorGetNext(FreeOp):
    stateful = is_async = True
    infer = _declared_shapes

    def kernel(node: Node, xp: Any, ctx: Any, handle: Any, done: Any) -> None:
        types = node["output_types"]
        iterator = resource_of(ctx, handle, IteratorResource)
        if iterator.types != types:
            raise invalid(f"{iterator} has elements of types {iterator.types}, but this op expects {types}.")
        iterator.next(ctx, done)


@op("IteratorToStringHandle(resource_handle: resource) -> (string_handle: string)")
class IteratorToStringHandle(FreeOp):
    stateful = True
    infer = shapes.scalar

    def kernel(node, xp, handle):
        proto = ResourceHandleProto(
            device=handle.device, container=handle.container, name=handle.name, maybe_type_name=handle.type_name
        )
        return np.array(proto.SerializeToString(), object)


_FROM_STRING = """(string_handle: string) -> (resource_handle: resource)
       output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []"""


@op(f"IteratorFromStringHandle{_FROM_STRING}", f"IteratorFromStringHandleV2{_FROM_STRING}")
class IteratorFromStringHandle(StatefulOp):
    infer = shapes.scalar

    def kernel(node: Node, xp: Any, ctx: Any, text: Any) -> ResourceHandle:
        types, expected = node["output_types"], node["output_shapes"]
        try:
            proto = ResourceHandleProto.FromString(text.item())
        except Exception:
            raise invalid("Could not parse string_handle as a valid ResourceHandle") from None
        handle = ResourceHandle(proto.device, proto.container, proto.name, ITERATOR_TYPE)
        iterator = resource_of(ctx, handle, IteratorResource)
        if types:
            check_signature(iterator, types, expected or [TensorShape(None)] * len(types))
        return handle


# -- whole data sets --------------------------------------------------------------------------------------------------


class _Whole(FreeOp):
    """Gives a result of all elements of a data set."""

    stateful = is_async = True
    infer = _declared_shapes

    run: Callable[..., Any]  # of (node, ctx, dataset, inputs, run)

    @classmethod
    def kernel(cls, node: Node, xp: Any, ctx: Any, dataset: Dataset, *rest: Any) -> None:
        inputs, done, run = rest[:-1], rest[-1], Run(ctx)
        forget = ctx.on_cancel(lambda error: run.close())

        def task() -> None:
            try:
                value, error = cls.run(node, ctx, dataset, inputs, run), None
            except Exception as problem:
                value, error = None, problem
            forget()
            run.close()
            done(value, error)

        ctx.step.clock.spawn(task, name="dataset")


@op(f"""ReduceDataset(input_dataset: variant, initial_state: Tstate, other_arguments: Targuments) ->
       (components: output_types)
       f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0{OUTPUTS}
       use_inter_op_parallelism: bool = true{METADATA}""")
class ReduceDataset(_Whole):
    grad = no_gradient

    def run(node, ctx, dataset, inputs, run):
        count = len(node["Tstate"])
        function = Captured(ctx, node["f"], inputs[count:]).on(run)
        state = list(inputs[:count])
        for element in dataset.iterate(run):
            state = function([*state, *element])
        return state


@op(f"DatasetToSingleElement(dataset: variant) -> (components: output_types){OUTPUTS}{METADATA}")
class DatasetToSingleElement(_Whole):
    def run(node, ctx, dataset, inputs, run):
        elements = dataset.iterate(run)
        for element in elements:
            for _ in elements:
                raise invalid("Dataset had more than one element.")
            return element
        raise invalid("Dataset was empty.")
