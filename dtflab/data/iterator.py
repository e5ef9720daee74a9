"""Iterator: the graph's side of a place in a data set.

Stands for `python/data/ops/iterator_ops.py`. Left out: optionals, iterators in checkpoints, iteration without graphs.

Rule: an iterator is one of four kinds. One-shot: begins by itself. Initializable: begins with the run of its
initializer. Reinitializable (`from_structure`): has an initializer for each of several data sets. Feedable
(`from_string_handle`): is whichever of the others a step names.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from dtflab.base import nest
from dtflab.data import structure as structures
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, name_scope
from dtflab.graph.tracing import trace

if TYPE_CHECKING:
    from dtflab.data.dataset import Dataset

_MANY_CALLS = 32


class Iterator(structures.HasElements):
    """Gives the elements of a data set, one per step that runs what `get_next` returns."""

    def __init__(self, iterator_resource: Tensor, initializer: Operation | None, structure: Any) -> None:
        """The iterator behind a handle. Programs use the methods of Dataset, or those below."""
        self._iterator_resource, self._initializer, self._structure = iterator_resource, initializer, structure
        self._string_handle: Tensor | None = None
        self._get_next_calls = 0

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator without a data set, for any of this structure: see `make_initializer`."""
        structure = structures.from_types(output_types, output_shapes, output_classes)
        handle = apply_op("IteratorV2", container="", shared_name=shared_name or "", **structures.signature(structure))
        return Iterator(handle, None, structure)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator that `string_handle` names in each step: the value of another one's `string_handle()`.

        InvalidArgumentError in a step whose iterator has elements of other types or shapes.
        """
        structure = structures.from_types(output_types, output_shapes, output_classes)
        text = convert_to_tensor(string_handle, dtypes.string)
        handle = apply_op("IteratorFromStringHandleV2", string_handle=text, **structures.signature(structure))
        return Iterator(handle, None, structure)

    @property
    def initializer(self) -> Operation:
        """The operation that makes an initializable iterator begin. ValueError for other kinds."""
        if self._initializer is None:
            raise ValueError(
                "The iterator does not have an initializer. This means it was likely created using "
                "`tf.data.Dataset.make_one_shot_iterator()`. For an initializable iterator, use "
                "`tf.data.Dataset.make_initializable_iterator()` instead."
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """The operation that makes the iterator begin with `dataset`; TypeError if that has another structure."""
        with name_scope(name, "make_initializer"):
            nest.assert_same_structure(self.output_types, dataset.output_types)
            for what, mine, theirs in (
                ("types", self.output_types, dataset.output_types),
                ("classes", self.output_classes, dataset.output_classes),
            ):
                if mine != theirs:
                    raise TypeError(f"Expected output {what} {mine!r} but got dataset with output {what} {theirs!r}.")
            pairs = zip(nest.flatten(self.output_shapes), nest.flatten(dataset.output_shapes), strict=True)
            if not all(mine.is_compatible_with(theirs) for mine, theirs in pairs):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got dataset with output shapes "
                    f"{dataset.output_shapes!r}."
                )
            with colocate_with(self._iterator_resource):
                ends = {"dataset": dataset._variant_tensor, "iterator": self._iterator_resource}
                made: Operation = apply_op("MakeIterator", **ends)
        return made

    def get_next(self, name: str | None = None) -> Any:
        """The next element, nested as those of the data set.

        A run takes one element, however often it is fetched in it; call this once, outside of the training loop.
        OutOfRangeError at the end, FailedPreconditionError before the iterator was initialized.
        """
        self._get_next_calls += 1
        if self._get_next_calls == _MANY_CALLS + 1:
            warnings.warn(
                f"`get_next()` was called more than {_MANY_CALLS} times on one iterator: each call adds operations to "
                "the graph. Call it once, before the loop, and run what it returned.",
                stacklevel=2,
            )
        signature = structures.signature(self._structure)
        with colocate_with(self._iterator_resource):
            tensors = apply_op("IteratorGetNext", name, iterator=self._iterator_resource, **signature)
        return structures.from_components(self._structure, tensors)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string scalar that names this iterator, to be fed to one made by `from_string_handle`."""
        if name is not None or self._string_handle is None:
            with colocate_with(self._iterator_resource):
                made = apply_op("IteratorToStringHandle", name, resource_handle=self._iterator_resource)
            if name is not None:
                return made  # type: ignore[no-any-return]
            self._string_handle = made
        return self._string_handle


def one_shot(dataset: Dataset) -> Iterator:
    """The iterator that makes `dataset` by itself, by a function in its node."""
    try:
        function = trace(lambda: dataset._variant_tensor, [], "_make_dataset", capture_by_value=True).function
    except ValueError as error:
        raise ValueError(
            f"{error} The data set of `make_one_shot_iterator()` can't depend on placeholders, variables or tables. "
            "Use `make_initializable_iterator()`."
        ) from None
    with colocate_with(dataset._variant_tensor):
        handle = apply_op(
            "OneShotIterator", dataset_factory=function.as_attr(), **structures.signature(dataset._structure)
        )
    return Iterator(handle, None, dataset._structure)
