"""Data sets on TensorFlow and on dtflab: the same pipelines, element for element, and the same errors."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import dtflab
from tests.oracle import answers

Pair = collections.namedtuple("Pair", "first second")


def plain(value: Any) -> Any:
    """A fetched element as what can be compared: dtypes, shapes and values."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in sorted(value.items())}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__.removesuffix("Value"), [plain(item) for item in value]
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value
    return value.dtype.name, value.shape, value.tolist()


def elements(tf: Any, make: Callable[[Any], Any], most: int = 60, one_shot: bool = False) -> list[Any]:
    """The outcome of a program's steps: elements, errors, the end."""
    found: list[Any] = []
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tf.set_random_seed(7)
        dataset = make(tf).with_options(as_written(tf))
        found.append([str(tf.data.get_output_shapes(dataset)), str(tf.data.get_output_types(dataset))])
        iterator = dataset.make_one_shot_iterator() if one_shot else dataset.make_initializable_iterator()
        element = iterator.get_next()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for epoch in range(1 if one_shot else 2):
                try:
                    if not one_shot:
                        session.run(iterator.initializer)
                    for _ in range(most):
                        found.append(outcome(tf, session, element))
                        if found[-1] == "end":
                            break
                except tf.errors.OpError as error:
                    found.append([f"epoch {epoch}", type(error).__name__])
    return found


def as_written(tf: Any) -> Any:
    """TensorFlow would make one operation of a map and a batch, where an error takes a whole batch with it."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return options


def outcome(tf: Any, session: Any, element: Any) -> Any:
    try:
        return plain(session.run(element))
    except tf.errors.OutOfRangeError as error:
        assert "End of sequence" in error.message
        return "end"
    except tf.errors.OpError as error:
        return type(error).__name__


def same(make: Callable[[Any], Any], **options: Any) -> list[Any]:
    """The outcomes, which must be TensorFlow's."""
    theirs, ours = answers.both(lambda tf: elements(tf, make, **options))
    assert ours == theirs
    return ours


# -- pipelines by hand ----------------------------------------------------------------------------------------------

PIPELINES: dict[str, Callable[[Any], Any]] = {}


def pipeline(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PIPELINES[function.__name__] = function
    return function


def numbers(tf: Any, *args: int) -> Any:
    return tf.data.Dataset.range(*args)


@pipeline
def slices_of_a_structure(tf):
    values = (
        np.arange(5),
        {"b": np.ones((5, 2), np.float32), "a": ["v", "w", "x", "y", "z"]},
        Pair([1] * 5, [2.0] * 5),
    )
    return tf.data.Dataset.from_tensor_slices(values).batch(2)


@pipeline
def one_element_of_lists(tf):
    return tf.data.Dataset.from_tensors(([1, 2], (3, [[4.0], [5.0]]), {"k": b"s"}))


@pipeline
def a_range_that_goes_down(tf):
    return numbers(tf, 9, 0, -2).batch(2)


@pipeline
def a_batch_over_epochs(tf):
    return numbers(tf, 5).repeat(3).batch(4)


@pipeline
def batches_without_the_rest(tf):
    return numbers(tf, 5).repeat(2).batch(4, drop_remainder=True)


@pipeline
def batches_of_batches(tf):
    return tf.data.Dataset.from_tensor_slices(np.arange(12).reshape(6, 2)).batch(2).batch(2)


@pipeline
def strings_in_batches(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "bc", "", "def"]).shuffle(2, seed=1).batch(3)


@pipeline
def zips_of_different_lengths(tf):
    return tf.data.Dataset.zip((numbers(tf, 3), {"b": numbers(tf, 5), "a": numbers(tf, 10, 20)}))


@pipeline
def one_after_the_other(tf):
    return numbers(tf, 3).concatenate(numbers(tf, 10, 12)).repeat(2)


@pipeline
def takes_and_skips(tf):
    return numbers(tf, 10).skip(2).take(5).concatenate(numbers(tf, 4).take(-1)).concatenate(numbers(tf, 4).skip(-1))


@pipeline
def shards(tf):
    return numbers(tf, 11).shard(3, 1)


@pipeline
def numbered(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(5)


@pipeline
def cached(tf):
    return numbers(tf, 4).map(lambda x: x * x).cache().repeat(3)


@pipeline
def a_cache_not_filled(tf):
    return numbers(tf, 4).cache().take(2).repeat(2)


@pipeline
def nothing_for_ever(tf):
    return numbers(tf, 0).repeat()


@pipeline
def shuffled_differently_each_time(tf):
    return numbers(tf, 10).shuffle(4, seed=3).repeat(3)


@pipeline
def shuffled_the_same_each_time(tf):
    return numbers(tf, 10).shuffle(4, seed=3, reshuffle_each_iteration=False).repeat(3)


@pipeline
def shuffled_rows(tf):
    rows = (np.arange(14).reshape(7, 2), {"words": list("abcdefg")})
    return tf.data.Dataset.from_tensor_slices(rows).shuffle(4, seed=3).repeat(2).batch(3)


@pipeline
def shuffled_rows_of_some_epochs_one_by_one(tf):
    return tf.data.Dataset.from_tensor_slices((np.eye(3), [b"a", b"b", b"c"])).repeat(2).shuffle(4, seed=3).skip(1)


@pipeline
def shuffled_rows_where_there_are_none(tf):
    return tf.data.Dataset.from_tensor_slices(np.zeros([0, 2])).repeat().shuffle(4, seed=3).batch(2)


@pipeline
def shuffled_over_epochs(tf):
    return numbers(tf, 6).repeat(3).shuffle(100, seed=11).batch(5)


@pipeline
def experimental_map_and_batch(tf):
    double = tf.data.experimental.map_and_batch(lambda x: x * 2, 4, drop_remainder=True)
    return numbers(tf, 10).apply(double).apply(tf.data.experimental.unbatch()).prefetch(tf.data.experimental.AUTOTUNE)


@pipeline
def experimental_shuffle_and_repeat(tf):
    return numbers(tf, 7).apply(tf.data.experimental.shuffle_and_repeat(3, 2, seed=1))


@pipeline
def experimental_ignore_errors(tf):
    return numbers(tf, 6).map(lambda x: 10 // (x - 3)).apply(tf.data.experimental.ignore_errors())


@pipeline
def grouped_by_key(tf):
    def parts(key, elements):
        return elements.batch(2).map(lambda x: (key, x))

    return numbers(tf, 10).apply(tf.data.experimental.group_by_window(lambda x: x % 3, parts, 3))


@pipeline
def grouped_by_key_with_sizes_of_windows(tf):
    by_size = tf.data.experimental.group_by_window(
        lambda x: tf.cast(x % 2, tf.int64), lambda key, x: x.batch(10), window_size_func=lambda key: key + 1
    )
    return numbers(tf, 10).apply(by_size)


@pipeline
def grouped_with_errors(tf):
    of_threes = tf.data.experimental.group_by_window(lambda x: 10 // (x - 3), lambda key, x: x.batch(3), 3)
    return numbers(tf, 6).apply(of_threes)


@pipeline
def bucketed(tf):
    return sentences(tf).apply(tf.data.experimental.bucket_by_sequence_length(tf.size, [3, 5], [2, 2, 3]))


@pipeline
def bucketed_to_the_boundary(tf):
    buckets = tf.data.experimental.bucket_by_sequence_length(
        tf.size, [3, 5, 9], [2, 2, 3, 1], padding_values=-1, pad_to_bucket_boundary=True, drop_remainder=True
    )
    return sentences(tf).apply(buckets)


def sentences(tf):
    return tf.data.Dataset.from_tensor_slices([1, 5, 2, 7, 3, 6, 2, 4]).map(lambda n: tf.fill([n], n))


@pipeline
def experimental_parts(tf):
    few = tf.data.experimental.Counter(3, -2, tf.int32).apply(tf.data.experimental.take_while(lambda x: x > -6))
    return few.apply(tf.data.experimental.enumerate_dataset(start=5))


@pipeline
def experimental_parallel_interleave(tf):
    of = tf.data.experimental.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3), 2, 2)
    return numbers(tf, 3).apply(of)


@pipeline
def mapped_to_a_structure(tf):
    return numbers(tf, 4).map(lambda x: (x, {"square": x * x, "text": tf.as_string(x)}))


@pipeline
def mapped_from_a_structure(tf):
    values = (np.arange(3), {"b": np.ones((3, 2), np.float32)})
    return tf.data.Dataset.from_tensor_slices(values).map(lambda x, d: tf.cast(x, tf.float32) + d["b"])


@pipeline
def mapped_from_a_named_tuple(tf):
    dataset = tf.data.Dataset.from_tensor_slices(Pair([1, 2], [3.0, 4.0]))
    return dataset.map(lambda pair: Pair(pair.first + 1, tf.cast(pair.first, tf.float32) * pair.second))


@pipeline
def mapped_to_lists(tf):
    return numbers(tf, 3).map(lambda x: (x, [1, 2])).map(lambda x, y: [y, x])


@pipeline
def mapped_in_parallel(tf):
    return numbers(tf, 20).map(lambda x: x * 3, num_parallel_calls=3).prefetch(2)


@pipeline
def mapped_with_control_flow(tf):
    def function(x):
        y = tf.cond(tf.equal(x % 2, 0), lambda: x, lambda: -x)
        return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + y), [0, tf.constant(0, tf.int64)])[1]

    return numbers(tf, 4).map(function)


@pipeline
def a_variable_in_a_function(tf):
    v = tf.Variable(5, dtype=tf.int64)
    w = tf.get_variable("w", initializer=tf.constant(100, tf.int64), use_resource=True)
    return numbers(tf, 3).map(lambda x: x * v + w)


@pipeline
def filtered(tf):
    return numbers(tf, 10).filter(lambda x: tf.equal(x % 3, 0))


@pipeline
def until_something_comes(tf):
    return numbers(tf, 10).apply(tf_take_while(tf, lambda x: x < 4))


def tf_take_while(tf: Any, predicate: Any) -> Any:
    return lambda dataset: dataset.take_while(predicate)


@pipeline
def a_data_set_of_each(tf):
    return numbers(tf, 4).flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(x))


@pipeline
def data_sets_in_turns(tf):
    return numbers(tf, 5).interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(x + 1), 2, 2)


@pipeline
def data_sets_in_turns_on_threads(tf):
    inner = tf.data.Dataset
    return numbers(tf, 5).interleave(lambda x: inner.from_tensors(x).repeat(x + 1), 3, 1, num_parallel_calls=2)


@pipeline
def windows(tf):
    return numbers(tf, 10).window(3, 2, 2).flat_map(lambda w: w.batch(3))


@pipeline
def windows_without_the_rest(tf):
    return numbers(tf, 10).window(3, drop_remainder=True).flat_map(lambda w: w.batch(3))


@pipeline
def windows_of_a_structure(tf):
    dataset = tf.data.Dataset.from_tensor_slices({"a": np.arange(5), "b": np.arange(5.0)})
    return dataset.window(2, 1).flat_map(lambda w: tf.data.Dataset.zip((w["a"].batch(2), w["b"].batch(2))))


@pipeline
def rows(tf):
    return tf.data.Dataset.from_tensor_slices((np.arange(12).reshape(3, 4), [["a"] * 4] * 3)).unbatch()


@pipeline
def padded_to_the_largest(tf):
    return numbers(tf, 5).map(lambda x: (tf.fill([x], x), tf.fill([2, x], "s"))).padded_batch(2, ([None], [2, None]))


@pipeline
def padded_to_a_size(tf):
    one = tf.constant(-1, tf.int64)
    return numbers(tf, 5).map(lambda x: tf.fill([x], x)).padded_batch(2, [6], padding_values=one, drop_remainder=True)


@pipeline
def padded_as_declared(tf):
    return numbers(tf, 4).map(lambda x: tf.fill([x], x)).padded_batch(3)


@pipeline
def too_long_to_be_padded(tf):
    return numbers(tf, 4).map(lambda x: tf.fill([x], x)).padded_batch(2, [2])


@pipeline
def errors_in_a_function(tf):
    return numbers(tf, 8).map(lambda x: 10 // (x - 4))


@pipeline
def errors_in_a_batch(tf):
    return numbers(tf, 9).map(lambda x: 10 // (x - 4)).batch(2)


@pipeline
def errors_ahead(tf):
    return numbers(tf, 8).map(lambda x: 10 // (x - 4), num_parallel_calls=2).prefetch(3)


@pipeline
def errors_in_a_zip(tf):
    return tf.data.Dataset.zip((numbers(tf, 8), numbers(tf, 8).map(lambda x: 10 // (x - 4)), numbers(tf, 8)))


@pipeline
def an_error_beside_an_end(tf):
    dataset = numbers(tf, 2).map(lambda x: 10 // (x - 1))
    return tf.data.Dataset.zip((dataset, dataset.skip(1)))


@pipeline
def errors_while_skipping(tf):
    return numbers(tf, 9).map(lambda x: 10 // (x - 1)).skip(3)


@pipeline
def errors_between_shards(tf):
    return numbers(tf, 12).map(lambda x: 10 // (x - 3)).shard(3, 1)


@pipeline
def errors_in_a_shard(tf):
    return numbers(tf, 9).map(lambda x: 10 // (x - 3)).shard(2, 1)


@pipeline
def shapes_that_differ_where_the_rest_is_dropped(tf):
    return numbers(tf, 3).batch(2).batch(3, drop_remainder=True)


@pipeline
def errors_in_a_window(tf):
    return numbers(tf, 9).map(lambda x: 10 // (x - 4)).window(3, 2).flat_map(lambda w: w.batch(3))


@pipeline
def errors_while_shuffling(tf):
    return numbers(tf, 9).map(lambda x: 10 // (x - 4)).shuffle(3, seed=5)


@pipeline
def errors_in_a_predicate(tf):
    return numbers(tf, 8).filter(lambda x: 10 // (x - 4) > 0)


@pipeline
def errors_in_a_data_set_of_each(tf):
    return numbers(tf, 4).flat_map(lambda x: numbers(tf, 2).map(lambda y: 10 // (x - y)))


@pipeline
def different_shapes_in_a_batch(tf):
    return numbers(tf, 5).map(lambda x: tf.fill([x], x)).batch(2)


@pipeline
def sparse_tensors(tf):
    indices = [[0, 0], [1, 2], [2, 1], [2, 3]]
    sparse = tf.SparseTensor(indices, ["a", "b", "c", "d"], [4, 5])
    return tf.data.Dataset.from_tensor_slices((sparse, np.arange(4))).batch(3)


@pipeline
def sparse_tensors_from_a_function(tf):
    return tf.data.Dataset.from_tensor_slices(["a b", "", "c d e"]).map(lambda s: tf.string_split([s]))


@pipeline
def batches_of_size_zero(tf):
    return numbers(tf, 4).batch(0)


@pipeline
def batches_of_negative_size(tf):
    return numbers(tf, 4).batch(-1)


@pipeline
def a_buffer_of_size_zero(tf):
    return numbers(tf, 4).shuffle(0)


@pipeline
def a_shard_that_there_is_not(tf):
    return numbers(tf, 4).shard(3, 5)


@pipeline
def a_window_without_size(tf):
    return numbers(tf, 4).window(0).flat_map(lambda w: w)


@pipeline
def turns_of_none(tf):
    return numbers(tf, 4).interleave(lambda x: numbers(tf, 2), cycle_length=0)


@pipeline
def a_range_without_step(tf):
    return numbers(tf, 0, 4, 0)


@pytest.mark.parametrize("name", PIPELINES)
def test_same_elements(name):
    same(PIPELINES[name])


@pytest.mark.parametrize("name", [name for name in PIPELINES if "variable" not in name and "none" not in name])
def test_same_elements_by_a_one_shot_iterator(name):
    same(PIPELINES[name], one_shot=True)


# -- generated pipelines ----------------------------------------------------------------------------------------------

small = st.integers(1, 6)
STEPS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any, Any, Any], Any]]] = {
    "batch": (st.tuples(small, st.booleans()), lambda tf, d, a: d.batch(a[0], a[1])),
    "repeat": (st.integers(0, 3), lambda tf, d, a: d.repeat(a)),
    "shuffle": (st.tuples(small, st.integers(0, 99), st.booleans()), lambda tf, d, a: d.shuffle(*a)),
    "take": (st.integers(-1, 9), lambda tf, d, a: d.take(a)),
    "skip": (st.integers(0, 9), lambda tf, d, a: d.skip(a)),
    "shard": (small, lambda tf, d, a: d.shard(a, a - 1)),
    "map": (small, lambda tf, d, a: d.map(lambda x, y: (x * a, tf.reduce_sum(y) + tf.cast(x, tf.float32)))),
    "parallel": (small, lambda tf, d, a: d.map(lambda x, y: (x + a, -y), num_parallel_calls=a)),
    "divide": (small, lambda tf, d, a: d.map(lambda x, y: (12 // (x - a), y))),
    "filter": (small, lambda tf, d, a: d.filter(lambda x, y: tf.reduce_all(x % (a + 1) < a))),
    "prefetch": (st.integers(0, 4), lambda tf, d, a: d.prefetch(a)),
    "cache": (st.none(), lambda tf, d, a: d.cache()),
    "unbatch": (small, lambda tf, d, a: d.batch(a).unbatch()),
    "concatenate": (small, lambda tf, d, a: d.concatenate(d.take(a))),
    "zip": (small, lambda tf, d, a: tf.data.Dataset.zip((d, d.skip(a))).map(lambda p, q: (p[0], q[1]))),
    "window": (
        st.tuples(small, small, small),
        lambda tf, d, a: d.window(*a).flat_map(lambda x, y: tf.data.Dataset.zip((x, y))),
    ),
    "interleave": (
        st.tuples(small, small),
        lambda tf, d, a: d.interleave(lambda x, y: tf.data.Dataset.from_tensors((x, y)).repeat(2), a[0], a[1]),
    ),
}
one_step = st.sampled_from(sorted(STEPS)).flatmap(lambda name: st.tuples(st.just(name), STEPS[name][0]))


@pytest.mark.live("random chains")
@settings(max_examples=25)
@given(st.integers(0, 12), st.lists(one_step, min_size=1, max_size=5))
def test_chains_of_transformations(real_tf, count, steps):
    names = [name for name, _ in steps]
    # TensorFlow's zip may give an error and the end at once, and who asks it, such as another zip, sees the end only.
    assume("divide" not in names or "zip" not in names[names.index("divide") :])

    def make(tf):
        dataset = tf.data.Dataset.from_tensor_slices((np.arange(count), np.arange(count, dtype=np.float32) / 4))
        for name, arguments in steps:
            dataset = STEPS[name][1](tf, dataset, arguments)
        return dataset

    # As far as shapes are not known, both may say so at different places: values are compared.
    try:
        theirs = elements(real_tf, make, most=25)
    except (ValueError, TypeError) as error:
        with pytest.raises(type(error)):
            elements(dtflab, make, most=25)
        return
    assert elements(dtflab, make, most=25) == theirs


@pytest.mark.parametrize("transformation", ["map", "filter", "flat_map"])
def test_what_is_no_function_is_refused(transformation, real_tf):
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="Argument `func` must be a callable"):
            getattr(tf.data.Dataset.range(3), transformation)(1)
