"""Dataset: a sequence of elements, as a graph of transformations that an iterator runs through.

Stands for `python/data/ops/dataset_ops.py` and the files next to it. Left out: what works only without graphs
(`for x in dataset`), caches in files, options that change how a pipeline is run, ragged tensors.

Rules: a Dataset is the graph's side, a variant tensor and the structure of an element; each method adds one operation
and gives a new Dataset. The elements are made where that operation runs (ops/datasets/dataset.py). Those out of
files are in `files.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.data import structure as structures
from dtflab.data.iterator import Iterator, one_shot
from dtflab.data.options import Options
from dtflab.data.padding import padded_shape_tensors, padding_value_tensors
from dtflab.data.structure import DatasetStructure, TensorStructure
from dtflab.data.traced import TracedFunction, generator_dataset
from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import Dimension, TensorShape
from dtflab.ops.arrays.functions import identity, shape
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.math.functions import greater, maximum
from dtflab.ops.sparse.sparse_tensor import SparseTensor
from dtflab.ops.text.functions import matching_files

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
_INT64_MAX = 2**63 - 1


class Dataset(structures.HasElements):
    """A sequence of elements: nested tuples and dicts of tensors.

    Iterators of four kinds give the elements, one per step: see `make_one_shot_iterator`,
    `make_initializable_iterator`, `Iterator.from_structure` and `Iterator.from_string_handle`.
    """

    def __init__(self, variant_tensor: Tensor, element_structure: Any, options: Options | None = None) -> None:
        """The data set behind a variant tensor, whose elements have this structure. Programs use the methods."""
        self._variant_tensor = variant_tensor
        self._structure = element_structure
        self._options = options or Options()

    def __repr__(self) -> str:
        return f"<{self._variant_tensor.op.type} shapes: {self.output_shapes}, types: {self.output_types}>"

    def __iter__(self) -> Any:
        raise RuntimeError(
            "`tf.data.Dataset` only supports Python-style iteration in eager mode, which dtflab does not have. "
            "Make an iterator: `dataset.make_one_shot_iterator().get_next()`, and run that in a session."
        )

    def _with(self, op_type: str, structure: Any = None, /, **inputs: Any) -> Dataset:
        """The data set of another op on this one; its elements have this structure unless another is given."""
        structure = self._structure if structure is None else structure
        return _made(op_type, structure, self._options, input_dataset=self._variant_tensor, **inputs)

    def _calling(self, op_type: str, function: TracedFunction, structure: Any, /, **inputs: Any) -> Dataset:
        """A data set made by an op that calls `function` on elements of this one."""
        attr = "predicate" if "predicate" in inputs else "f"
        inputs.pop("predicate", None)
        return self._with(op_type, structure, other_arguments=function.captures, **{attr: function.attr}, **inputs)

    # -- where elements come from -------------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: `tensors`."""
        structure, element = _element(tensors)
        return _of_components("TensorDataset", structure, structures.to_components(structure, element))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """One element per slice of `tensors` along their first dimension, which is the same for all (ValueError)."""
        structure, element = _element(tensors)
        batch = Dimension(None)
        for leaf in nest.flatten(structure):
            if leaf.shape.ndims == 0:
                raise ValueError("Unbatching a tensor is only supported for rank >= 1")
            batch = batch.merge_with(leaf.shape.with_rank_at_least(1)[0])
        slices = [leaf.to_slices(v) for leaf, v in zip(nest.flatten(structure), nest.flatten(element), strict=True)]
        return _of_components("TensorSliceDataset", structures.reshaped(structure, lambda s: s[1:]), slices)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: SparseTensor) -> Dataset:
        """One element per row of a sparse tensor, as a sparse tensor."""
        if not isinstance(sparse_tensor, SparseTensor):
            raise TypeError(f"`sparse_tensor` must be a `tf.sparse.SparseTensor` object, not {sparse_tensor!r}.")
        return Dataset.from_tensor_slices(sparse_tensor)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Sequence[Any] | None = None
    ) -> Dataset:
        """The elements that `generator(*args)` yields, of these dtypes and shapes (InvalidArgumentError in `get_next`).

        It is called again whenever an iteration begins, in the process that made the data set.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        structure = structures.from_types(output_types, output_shapes)
        inputs = [convert_to_tensor(arg) for arg in (args or ())]
        return Dataset(generator_dataset(generator, structure, inputs), structure)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """The int64 scalars of `range(stop)`, `range(start, stop)` or `range(start, stop, step)`."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        start, stop, step = {1: (0, *args, 1), 2: (*args, 1), 3: args}[len(args)]
        numbers = {"start": _int64(start, "start"), "stop": _int64(stop, "stop"), "step": _int64(step, "step")}
        return _made("RangeDataset", TensorStructure(dtypes.int64, TensorShape([])), None, **numbers)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several data sets side by side, nested as `datasets` is, until the shortest ends."""
        structures.map_leaves(_check_input, datasets)
        variants = [dataset._variant_tensor for dataset in nest.flatten(datasets)]
        structure = nest.map_structure(lambda dataset: dataset._structure, datasets)
        return _made("ZipDataset", structure, None, input_datasets=variants)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Dataset:
        """The names of the files that match a pattern, or one of several; shuffled unless `shuffle` is False.

        InvalidArgumentError when an iterator begins and there are none.
        """
        with name_scope("list_files"):
            pattern = convert_to_tensor(file_pattern, dtypes.string, name="file_pattern")
            found = matching_files(pattern)
            message = ["No files matched pattern: ", pattern]
            with control_dependencies([Assert(greater(shape(found)[0], 0), message, name="assert_not_empty")]):
                found = identity(found)
            dataset = Dataset.from_tensor_slices(found)
            if shuffle is not False:
                size = maximum(shape(found, out_type=dtypes.int64)[0], 1)
                dataset = dataset.shuffle(size, seed=seed)
        return dataset

    # -- functions ----------------------------------------------------------------------------------------------------

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: bool | None = None
    ) -> Dataset:
        """`map_func` of each element; with `num_parallel_calls` that many at a time, in order, on other threads."""
        function = TracedFunction(map_func, self._structure, "map")
        if num_parallel_calls is None:
            return self._calling("MapDataset", function, function.structure)
        calls = _int64(num_parallel_calls, "num_parallel_calls")
        return self._calling("ParallelMapDatasetV2", function, function.structure, num_parallel_calls=calls)

    map_with_legacy_function = map

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the data set that `map_func` makes of each element, one data set after the other."""
        function, structure = self._of_datasets(map_func, "flat_map")
        return self._calling("FlatMapDataset", function, structure)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Take turns: `block_length` elements of each of `cycle_length` data sets at a time, made from elements.

        With `num_parallel_calls`, threads make elements of each of them ahead; the order is the same.
        """
        function, structure = self._of_datasets(map_func, "interleave")
        cycle, block = AUTOTUNE if cycle_length is None else cycle_length, 1 if block_length is None else block_length
        turns = {"cycle_length": _int64(cycle, "cycle_length"), "block_length": _int64(block, "block_length")}
        if num_parallel_calls is None:
            return self._calling("InterleaveDataset", function, structure, **turns)
        turns["num_parallel_calls"] = _int64(num_parallel_calls, "num_parallel_calls")
        return self._calling("ParallelInterleaveDatasetV2", function, structure, **turns)

    def _of_datasets(self, map_func: Callable[..., Any], what: str) -> tuple[TracedFunction, Any]:
        """The function, and the structure of the elements of the data sets that it makes."""
        function = TracedFunction(map_func, self._structure, what)
        if not isinstance(function.structure, DatasetStructure):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {function.structure!r}.")
        return function, function.structure.element

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements of which `predicate` is true."""
        function = self._predicate(predicate, "filter")
        return self._calling("FilterDataset", function, None, predicate=True)

    filter_with_legacy_function = filter

    def take_while(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements before the first of which `predicate` is false."""
        function = self._predicate(predicate, "take_while")
        return self._calling("TakeWhileDataset", function, None, predicate=True)

    def _predicate(self, predicate: Callable[..., Any], what: str) -> TracedFunction:
        function = TracedFunction(predicate, self._structure, what)
        if function.structure != TensorStructure(dtypes.bool, TensorShape([])):
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
                f"{function.structure}."
            )
        return function

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """`reduce_func(state, element)` of all elements in order, as a tensor: the last state."""
        structure, state = _element(initial_state, "initial_state")
        while True:  # until the state keeps the shape that it is declared with
            function = TracedFunction(reduce_func, (structure, self._structure), "reduce")
            if structures.types_of(structure) != structures.types_of(function.structure):
                raise TypeError(
                    "The element types for the new state must match the initial state. Expected "
                    f"{structures.types_of(structure)} but got {structures.types_of(function.structure)}."
                )
            common = nest.map_structure(_common, structure, function.structure)
            if common == structure:
                break
            structure = common
        inputs = {"input_dataset": self._variant_tensor, "initial_state": structures.to_components(structure, state)}
        called = {"other_arguments": function.captures, "f": function.attr}
        tensors = apply_op("ReduceDataset", **inputs, **called, **structures.signature(structure))
        return structures.from_components(structure, tensors)

    # -- order and number ---------------------------------------------------------------------------------------------

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this data set, then those of `dataset`, which must be of the same types (TypeError)."""
        if self.output_types != dataset.output_types or self.output_classes != dataset.output_classes:
            raise TypeError(
                f"Two datasets to concatenate have different types {self.output_types} and {dataset.output_types}."
            )
        structure = nest.map_structure(_common, self._structure, dataset._structure)
        return self._with("ConcatenateDataset", structure, another_dataset=dataset._variant_tensor)

    def shuffle(self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """The elements in random order, each drawn from a buffer of the next `buffer_size`.

        Equal seeds, of graph and data set, give TensorFlow's order. Each iteration has another one unless
        `reshuffle_each_iteration` is False.
        """
        size = _int64(buffer_size, "buffer_size")
        seeds = [_int64(s or 0, n) for s, n in zip(random_seed.get_seed(seed), ("seed", "seed2"), strict=True)]
        how = {"seed": seeds[0], "seed2": seeds[1], "reshuffle_each_iteration": reshuffle_each_iteration is not False}
        return self._with("ShuffleDataset", buffer_size=size, **how)

    def repeat(self, count: Any = None) -> Dataset:
        """The elements `count` times; without end if it is None or -1."""
        return self._with("RepeatDataset", count=_int64(-1 if count is None else count, "count"))

    def take(self, count: Any) -> Dataset:
        """The first `count` elements; all, if it is -1."""
        return self._with("TakeDataset", count=_int64(count, "count"))

    def skip(self, count: Any) -> Dataset:
        """All but the first `count` elements; none, if it is -1."""
        return self._with("SkipDataset", count=_int64(count, "count"))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every `num_shards`-th element, beginning with number `index`: a worker's part of the data."""
        return self._with("ShardDataset", num_shards=_int64(num_shards, "num_shards"), index=_int64(index, "index"))

    def enumerate(self, start: Any = 0) -> Dataset:
        """Pairs of a number, counted from `start`, and an element."""
        return Dataset.zip((Dataset.range(start, _INT64_MAX), self))

    def cache(self, filename: Any = "") -> Dataset:
        """Keeps the elements in memory once an iteration has seen them all; the next ones take them from there."""
        return self._with("CacheDataset", filename=convert_to_tensor(filename, dtypes.string, name="filename"))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The same elements; a thread makes up to `buffer_size` of them ahead."""
        return self._with("PrefetchDataset", buffer_size=_int64(buffer_size, "buffer_size"))

    # -- together and apart -------------------------------------------------------------------------------------------

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """`batch_size` elements stacked into one. The last may be smaller, or is dropped."""
        size, drops = _int64(batch_size, "batch_size"), _bool(drop_remainder)
        first = TensorShape([_static_batch(size, drops)])
        structure = structures.reshaped(self._structure, first.concatenate)
        return self._with("BatchDatasetV2", structure, batch_size=size, drop_remainder=drops)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False
    ) -> Dataset:
        """Batches of elements that are filled up to a common shape.

        A size in `padded_shapes` that is None or -1 is the largest in the batch; without `padded_shapes` all are.
        `padding_values` are zeros or empty strings where nothing else is said.
        """
        leaves = nest.flatten(self._structure)
        if any(type(leaf) is not TensorStructure for leaf in leaves):
            raise TypeError("`padded_batch` is only supported for datasets that produce tensor elements.")
        size, drops = _int64(batch_size, "batch_size"), _bool(drop_remainder)
        padded, static = padded_shape_tensors(self.output_shapes, padded_shapes)
        first = TensorShape([_static_batch(size, drops)])
        batches = [leaf.with_shape(first.concatenate(s)) for leaf, s in zip(leaves, static, strict=True)]
        structure = nest.pack_sequence_as(self._structure, batches)
        inputs = {"input_dataset": self._variant_tensor, "batch_size": size, "drop_remainder": drops}
        padding = {"padded_shapes": padded, "padding_values": padding_value_tensors(self.output_types, padding_values)}
        output_shapes = [shape for _, shape in structures.components(structure)]
        variant = apply_op("PaddedBatchDatasetV2", **inputs, **padding, output_shapes=output_shapes)
        return Dataset(variant, structure, self._options)

    def unbatch(self) -> Dataset:
        """The rows of the elements."""
        return self._with("UnbatchDataset", structures.reshaped(self._structure, lambda s: s[1:]))

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False) -> Dataset:
        """Each element is a data set, per component, of `size` elements `stride` apart.

        A window begins `shift` elements (`size`, if None) after the one before.
        """
        structure = nest.map_structure(DatasetStructure, self._structure)
        size = _int64(size, "size")
        steps = {"shift": size if shift is None else _int64(shift, "shift"), "stride": _int64(stride, "stride")}
        return self._with("WindowDataset", structure, size=size, **steps, drop_remainder=_bool(drop_remainder))

    # -- the whole ----------------------------------------------------------------------------------------------------

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Dataset:
        """`transformation_func` of this data set, which must give a data set (TypeError)."""
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(dataset)}.")
        return dataset

    def options(self) -> Options:
        """The options of this data set and of those that it is made from."""
        return self._options

    def with_options(self, options: Options) -> Dataset:
        """The same data set with more options; they change nothing here."""
        return Dataset(self._variant_tensor, self._structure, self._options.merge(options))

    # -- iterators ----------------------------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that begins by itself, once per session.

        ValueError if the data set depends on placeholders, variables or tables: use `make_initializable_iterator`.
        """
        return one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that starts over each time `iterator.initializer` is run.

        With a `shared_name` it is one iterator for all sessions of the cluster, else each session has its own.
        """
        with colocate_with(self._variant_tensor):
            iterator = Iterator.from_structure(self.output_types, self.output_shapes, shared_name, self.output_classes)
        iterator._initializer = iterator.make_initializer(self)
        return iterator


# -- making operations ------------------------------------------------------------------------------------------------


def _element(tensors: Any, scope: str = "tensors") -> tuple[Any, Any]:
    """The structure of an element that a program gives, and the element with tensors as its leaves."""
    with name_scope(scope):
        element = structures.normalized(tensors)
    return structures.structure_of(element), element


def _made(op_type: str, structure: Any, options: Options | None, /, **inputs: Any) -> Dataset:
    return Dataset(apply_op(op_type, **inputs, **structures.signature(structure)), structure, options)


def _check_input(leaf: Any) -> None:
    """TypeError unless what stands in a structure for `zip` is a data set."""
    if isinstance(leaf, list):
        raise TypeError(
            "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects. "
            "Python `list` is not supported and you should use `tuple` instead."
        )
    if not isinstance(leaf, Dataset):
        raise TypeError(f"Each input of `zip` should be a `tf.data.Dataset` but encountered {type(leaf)}.")


def _of_components(op_type: str, structure: Any, tensors: Sequence[Tensor]) -> Dataset:
    output_shapes = [shape for _, shape in structures.components(structure)]
    return Dataset(apply_op(op_type, components=tensors, output_shapes=output_shapes), structure)


def _int64(value: Any, name: str) -> Tensor:
    return convert_to_tensor(value, dtypes.int64, name=name)


def _bool(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.bool, name="drop_remainder")


def _static_batch(batch_size: Tensor, drop_remainder: Tensor) -> Any:
    """The number of elements in each batch, if it is known before."""
    return constant_value(batch_size) if constant_value(drop_remainder) else None


def _common(first: Any, second: Any) -> Any:
    """The leaf of which both are, with the sizes that they share."""
    return first if isinstance(first, DatasetStructure) else first.with_shape(_common_shape(first.shape, second.shape))


def _common_shape(first: TensorShape, second: TensorShape) -> TensorShape:
    if first.ndims is None or second.ndims != first.ndims:
        return TensorShape(None)
    return TensorShape([a if a == b else None for a, b in zip(first.as_list(), second.as_list(), strict=True)])


DatasetStructure.dataset = Dataset
