"""Input pipelines: the same nodes as TensorFlow's, and the same examples out of their ends."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle import answers
from tests.oracle.answers import module_of
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

graph = Programs()
program = Programs()  # `function(tf)` builds a pipeline and returns what is to be fetched until it ends


@graph.each("build")
def test_same_graph(build):
    assert_same_graph(build)


NAMES = (
    "input_producer limit_epochs match_filenames_once range_input_producer slice_input_producer string_input_producer "
    "batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join shuffle_batch "
    "shuffle_batch_join add_queue_runner start_queue_runners basic_train_loop QueueRunner LooperThread"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_same_signature(name):
    def signature(tf):
        return [(p.name, repr(p.default)) for p in inspect.signature(getattr(tf.train, name)).parameters.values()]

    theirs, ours = answers.both(signature)
    assert ours == theirs


def test_tf_io_has_the_matching_files_too():
    assert dtflab.io.match_filenames_once is dtflab.train.match_filenames_once


# -- graphs -----------------------------------------------------------------------------------------------------


@graph
def producers_of_strings(tf):
    tf.train.string_input_producer(["a", "b"])
    tf.train.string_input_producer(["a"], num_epochs=2, shuffle=False, capacity=7, name="named", shared_name="shared")
    tf.train.string_input_producer(tf.constant(["a", "b"]), seed=5, cancel_op=tf.no_op())


@graph
def producers_of_numbers_and_rows(tf):
    tf.train.range_input_producer(10, seed=3)
    tf.train.range_input_producer(tf.constant(3), num_epochs=1, shuffle=False, capacity=2, shared_name="s", name="n")
    tf.train.input_producer([[1.0, 2.0], [3.0, 4.0]], num_epochs=1, shuffle=False)
    tf.train.input_producer(tf.placeholder(tf.float32, [None, None]), [3], summary_name="full", name="rows")


@graph
def producers_of_slices(tf):
    tf.train.slice_input_producer([tf.constant([1, 2, 3]), ["a", "b", "c"]], num_epochs=3)
    tf.train.slice_input_producer([np.ones([4, 2])], shuffle=False, capacity=9, shared_name="s", name="n")


@graph
def epochs(tf):
    tf.train.limit_epochs(tf.constant(1.0), 3)
    tf.train.limit_epochs([1.0], 3, name="named")
    tf.train.limit_epochs(tf.constant(1.0))


@graph
def file_names(tf):
    tf.train.match_filenames_once("nowhere/*")
    tf.train.match_filenames_once(["nowhere/*", "else"], name="named")


@graph
def batches(tf):
    tf.train.batch([tf.constant(1), tf.constant([2.0, 3.0])], 4, num_threads=2)
    tf.train.batch([tf.constant([[1], [2]])], tf.constant(4), enqueue_many=True, capacity=9)
    tf.train.batch([tf.placeholder(tf.int32)], 4, shapes=[[2]])
    tf.train.batch(
        {"b": tf.constant(1), "a": tf.placeholder(tf.float32, [None])}, 4, capacity=5, dynamic_pad=True,
        allow_smaller_final_batch=True, shared_name="shared", name="named",
    )  # fmt: skip


@graph
def shuffled_batches(tf):
    tf.train.shuffle_batch([tf.constant([1, 2, 3])], 4, 10, 3, enqueue_many=True, seed=5)
    tf.train.shuffle_batch([tf.constant(1), tf.constant("a")], 4, 10, 3, num_threads=3, allow_smaller_final_batch=True)


@graph
def joined_batches(tf):
    sets = [[tf.constant(1), tf.constant("a")], [tf.constant(2), tf.constant("b")]]
    tf.train.batch_join(sets, 4)
    tf.train.batch_join([{"x": a, "y": b} for a, b in sets], 4, dynamic_pad=True, name="named")
    tf.train.shuffle_batch_join(sets, 4, 10, 3, seed=1)
    tf.train.shuffle_batch_join([[tf.constant([1])], [tf.constant([2, 3])]], 4, 10, 3, enqueue_many=True)


@graph
def batches_of_what_is_kept(tf):
    keep, one = tf.placeholder(tf.bool, []), tf.constant(1)
    which, many = tf.placeholder(tf.bool, [2]), tf.constant([1, 2])
    tf.train.maybe_batch([one], keep, 3)
    tf.train.maybe_batch([one], True, 3)
    tf.train.maybe_batch([one], False, 3)
    tf.train.maybe_batch([many, many], keep, 3, enqueue_many=True, num_threads=2)
    tf.train.maybe_batch([many, many], which, 3, enqueue_many=True)
    tf.train.maybe_batch_join([[one], [one]], keep, 4)
    tf.train.maybe_batch_join([[many], [many]], which, 4, enqueue_many=True)
    tf.train.maybe_shuffle_batch([one], 2, 10, 3, keep)
    tf.train.maybe_shuffle_batch_join([[many], [many]], 2, 10, 3, which, enqueue_many=True)


@graph
def batches_of_sparse_tensors(tf):
    one, many = tf.SparseTensor([[0], [1]], [1.0, 2.0], [3]), tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
    keep, number = tf.placeholder(tf.bool, []), tf.constant(1)
    tf.train.batch([one, number], 3)
    tf.train.batch({"a": one, "b": one}, 3, allow_smaller_final_batch=True)
    tf.train.batch([many], 3, enqueue_many=True)
    tf.train.batch_join([[one, number]] * 2, 3)
    tf.train.shuffle_batch_join([[many]] * 2, 3, 10, 1, enqueue_many=True)
    tf.train.maybe_batch([one], keep, 3)
    tf.train.maybe_batch([many], keep, 3, enqueue_many=True)
    tf.train.maybe_batch_join([[one]] * 2, keep, 3)


@graph
def batches_of_sparse_tensors_by_row(tf):
    many, which = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3]), tf.placeholder(tf.bool, [2])
    tf.train.maybe_batch([many], which, 3, enqueue_many=True)


# -- values -----------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def drained(tf: Any, fetched: Any, most: int = 12) -> list[Any]:
    """All that comes out of the pipeline, at most `most` pieces, and how it ended."""
    coord, found = tf.train.Coordinator(), []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        tf.train.start_queue_runners(session, coord)
        try:
            for _ in range(most):
                found.append(plain(session.run(fetched)))
        except tf.errors.OutOfRangeError:
            found.append("the end")
        coord.request_stop()
        coord.join(stop_grace_period_secs=60)
    return found


@program.each("build")
def test_same_examples(build):
    def seeded(tf):
        tf.set_random_seed(1)
        return drained(tf, build(tf))

    theirs, ours = both(seeded)
    assert ours == theirs


@program.each("build")
def test_same_static_shapes(build):
    def answer(tf):
        tensors = tf.nest.flatten(build(tf), expand_composites=True)
        return [(t.dtype.name, t.shape.as_list()) for t in tensors]

    theirs, ours = both(answer)
    assert ours == theirs


def test_static_shapes_of_sparse_tensors_of_unknown_rank():
    def answer(tf):
        unknown = tf.SparseTensor(tf.placeholder(tf.int64), tf.placeholder(tf.float32), tf.placeholder(tf.int64))
        known = tf.SparseTensor([[0, 0]], [1.0], [1, 1])
        keep = tf.placeholder(tf.bool, [])
        batches = [
            tf.train.batch([sparse], 2, enqueue_many=many) for sparse in (unknown, known) for many in (False, True)
        ]
        batches += [tf.train.batch({"x": tf.constant([1, 2])}, 2, enqueue_many=True)["x"]]
        batches += [tf.train.maybe_batch([known], keep, 2, enqueue_many=True)]
        batches += [tf.train.shuffle_batch_join([[unknown], [known]], 2, 5, 1)]
        tensors = tf.nest.flatten(batches, expand_composites=True)
        return [(t.dtype.name, t.shape.as_list()) for t in tensors]

    theirs, ours = both(answer)
    assert ours == theirs


@program
def strings_in_order(tf):
    return tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False).dequeue()


@program
def strings_shuffled(tf):
    return tf.train.string_input_producer([str(i) for i in range(5)], num_epochs=2, seed=7).dequeue()


@program
def strings_without_end(tf):
    return tf.train.string_input_producer(["a", "b"], shuffle=False, capacity=3).dequeue()


@program
def numbers(tf):
    return tf.train.range_input_producer(4, num_epochs=2, shuffle=False).dequeue()


@program
def rows(tf):
    return tf.train.input_producer([[1.0, 2.0], [3.0, 4.0]], num_epochs=2, shuffle=False).dequeue_many(2)


@program
def slices(tf):
    return tf.train.slice_input_producer([[1, 2, 3], ["a", "b", "c"]], num_epochs=2, seed=3)


@program
def slices_as_structure(tf):
    labels = tf.constant([[1, 1], [2, 2], [3, 3]])
    return tf.train.slice_input_producer([labels, tf.constant([1.0, 2.0, 3.0])], num_epochs=1, shuffle=False)


@program
def limited(tf):
    return tf.train.limit_epochs(tf.constant([1, 2]), 3)


def counted(tf: Any, limit: int = 10) -> Any:
    """0, 1, 2, … up to the limit, then the end."""
    return tf.train.range_input_producer(limit, num_epochs=1, shuffle=False).dequeue()


@program
def batches_in_order(tf):
    number = counted(tf)
    return tf.train.batch([number, tf.fill([2], number)], 4)


@program
def batches_with_a_smaller_one(tf):
    number = counted(tf)
    return tf.train.batch({"n": number, "twice": number * 2}, 4, allow_smaller_final_batch=True)


@program
def one_tensor(tf):
    return tf.train.batch([counted(tf)], 5)


@program
def a_dict_of_one(tf):
    return tf.train.batch({"only": counted(tf)}, 5)


@program
def examples_in_batches(tf):
    number = counted(tf, 6)
    return tf.train.batch([tf.stack([number, number + 100, number + 200])], 4, enqueue_many=True)


@program
def padded(tf):
    number = counted(tf, 7)
    return tf.train.batch([tf.range(number), number], 3, dynamic_pad=True, allow_smaller_final_batch=True)


@program
def padded_strings(tf):
    number = counted(tf, 5)
    return tf.train.batch([tf.fill([number], "x")], 3, dynamic_pad=True)


@program
def given_shapes(tf):
    return tf.train.batch([tf.placeholder_with_default([1, 2], None)], 2, shapes=[[2]])


@program
def only_even_ones(tf):
    number = counted(tf)
    return tf.train.maybe_batch([number], tf.equal(number % 2, 0), 2)


@program
def only_even_ones_of_many(tf):
    numbers = tf.stack([counted(tf, 6), tf.constant(2), tf.constant(5)])
    return tf.train.maybe_batch([numbers, numbers * 10], tf.equal(numbers % 2, 0), 2, enqueue_many=True)


@program
def sparse_ones(tf):
    number = counted(tf, 5)
    wide = tf.cast(number, tf.int64)
    sparse = tf.SparseTensor(tf.reshape(tf.stack([wide]), [1, 1]), tf.reshape(number, [1]), tf.stack([wide + 1]))
    return tf.train.batch([sparse, number], 2, allow_smaller_final_batch=True)


@program
def sparse_ones_by_name(tf):
    number = counted(tf, 4)
    sparse = tf.SparseTensor([[0], [2]], tf.stack([number, number + 1]), [4])
    return tf.train.batch({"s": sparse, "n": number}, 2)


@program
def sparse_batches(tf):
    number = counted(tf, 4)
    sparse = tf.SparseTensor([[0, 1], [2, 0], [2, 1]], tf.stack([number, number + 10, number + 20]), [3, 2])
    return tf.train.batch([sparse], 4, enqueue_many=True)


@program
def sparse_ones_kept(tf):
    number = counted(tf)
    sparse = tf.SparseTensor([[0]], tf.stack([number]), [2])
    return tf.train.maybe_batch([sparse, number], tf.equal(number % 3, 0), 2)


@program
def sparse_rows_kept(tf):
    number = counted(tf, 4)
    sparse = tf.SparseTensor([[0, 1], [2, 0], [2, 1]], tf.stack([number, number + 10, number + 20]), [3, 2])
    return tf.train.maybe_batch([sparse], tf.stack([True, False, True]), 2, enqueue_many=True)


# -- values in any order ----------------------------------------------------------------------------------------


def flat(found: list[Any]) -> list[Any]:
    """All numbers that came out, sorted, and how many pieces there were."""
    numbers = [n for piece in found if piece != "the end" for n in np.ravel([p[1] for p in piece])]
    return [sorted(numbers), len(found), found[-1] == "the end"]


def mixed(tf: Any, kind: str) -> Any:
    sets = [[counted(tf, 6)], [counted(tf, 6) + 100]]
    ends = {"allow_smaller_final_batch": True}
    return {
        "threads": lambda: tf.train.batch([counted(tf)] * 2, 5, num_threads=4),
        "shuffle": lambda: tf.train.shuffle_batch([counted(tf)] * 2, 5, 8, 3, seed=2),
        "smaller": lambda: tf.train.shuffle_batch([counted(tf)] * 2, 4, 8, 3, num_threads=2, **ends),
        "join": lambda: tf.train.batch_join([s * 2 for s in sets], 5, **ends),
        "shuffle join": lambda: tf.train.shuffle_batch_join([s * 2 for s in sets], 3, 8, 2, **ends),
        "maybe": lambda: tf.train.maybe_shuffle_batch([sets[0][0]] * 2, 3, 8, 2, tf.less(sets[0][0], 4), **ends),
        "maybe join": lambda: tf.train.maybe_batch_join([s * 2 for s in sets], True, 4),
    }[kind]()


@pytest.mark.parametrize("kind", ["threads", "shuffle", "smaller", "join", "shuffle join", "maybe", "maybe join"])
def test_same_examples_in_any_order(kind):
    theirs, ours = both(lambda tf: flat(drained(tf, mixed(tf, kind))))
    assert ours == theirs


def test_names_of_files_are_found_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text(name)

    def answer(tf):
        names = tf.train.match_filenames_once("*.txt")
        of_two = tf.train.match_filenames_once(["c*", "a*"])
        queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
        _, text = tf.WholeFileReader().read(queue)
        assert tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES)[:2] == [names, of_two]
        return drained(tf, [names, of_two, text])

    theirs, ours = both(answer)
    assert ours == theirs


# -- errors -----------------------------------------------------------------------------------------------------


def raised(call: Callable[[], Any]) -> Any:
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0].partition("Tensor(")[0].partition(" for '{{node")[0]
    return "nothing"


def test_what_is_refused():
    def tried(tf):
        one, many, unknown = tf.constant(1), tf.constant([1, 2]), tf.placeholder(tf.int32)
        sparse = tf.SparseTensor([[0]], [1.0], [2])
        train, keep = tf.train, tf.placeholder(tf.bool, [2])
        return [
            raised(call)
            for call in [
                lambda: train.limit_epochs(one, 0),
                lambda: train.limit_epochs(one, -1),
                lambda: train.string_input_producer([]),
                lambda: train.string_input_producer([1]),
                lambda: train.input_producer(tf.placeholder(tf.float32, [None, None])),
                lambda: train.input_producer(tf.placeholder(tf.float32, [None, 2]), [3]),
                lambda: train.input_producer(1),
                lambda: train.slice_input_producer([]),
                lambda: train.slice_input_producer([one]),
                lambda: train.batch([], 2),
                lambda: train.batch({}, 2),
                lambda: train.batch([unknown], 2),
                lambda: train.batch([unknown], 2, dynamic_pad=True),
                lambda: train.batch([tf.placeholder(tf.int32, [None])], 2),
                lambda: train.batch([one], 2, enqueue_many=True),
                lambda: train.batch([many], 2, shapes=[[3]]),
                lambda: train.batch([one], 2, shapes=[[], []]),
                lambda: train.batch_join([], 2),
                lambda: train.batch_join([[one], [tf.constant(1.0)]], 2),
                lambda: train.batch_join([[one], [many]], 2),
                lambda: train.batch_join([{"a": one}, {"b": one}], 2),
                lambda: train.batch_join([[sparse], [tf.constant(1.0)]], 2),
                lambda: train.shuffle_batch([one], 2, 3, 3),
                lambda: train.maybe_batch([one], keep, 2),
                lambda: train.maybe_batch([many], tf.placeholder(tf.bool), 2, enqueue_many=True),
                lambda: train.maybe_batch([many], tf.placeholder(tf.bool, [2, 2]), 2, enqueue_many=True),
            ]
        ]

    theirs, ours = both(tried)
    assert ours == theirs


def test_a_capacity_that_is_too_small_is_said_at_once():
    """TensorFlow's join divides by the difference and fails later."""
    with dtflab.Graph().as_default(), pytest.raises(ValueError, match="capacity 3 must be bigger than min_after_dequ"):
        dtflab.train.shuffle_batch_join([[dtflab.constant(1)]], 2, 3, 3)


def test_an_empty_list_of_names_is_an_error_of_the_step():
    def answer(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            names = tf.placeholder_with_default(np.array([], object), [None])
            queue = tf.train.string_input_producer(names, num_epochs=1)
            session.run(tf.local_variables_initializer())
            (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
            with pytest.raises(tf.errors.InvalidArgumentError, match="requires a non-null input tensor"):
                session.run(runner.enqueue_ops[0])
            assert queue.name == runner.name
            return dict(collections.Counter(type(op).__name__ for op in runner.enqueue_ops))

    theirs, ours = answers.both(answer)
    assert ours == theirs


def test_a_failing_example_is_raised_by_join(real_tf):
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default(), tf.Session() as session:
            number = counted(tf)
            with tf.control_dependencies([tf.Assert(number < 5, ["too much"])]):
                number = tf.identity(number)
            batch = tf.train.batch([number], 2)
            coord = tf.train.Coordinator()
            session.run(tf.local_variables_initializer())
            tf.train.start_queue_runners(session, coord)
            with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError)):
                while True:
                    session.run(batch)
            with pytest.raises(tf.errors.InvalidArgumentError, match="too much"):
                coord.join(stop_grace_period_secs=60)


# -- SparseTensors by number ------------------------------------------------------------------------------------


def op_of(tf: Any, op_type: str) -> Callable[..., Any]:
    """The op itself, as TensorFlow's generated functions and dtflab's `apply_op` make it."""
    if tf is dtflab:
        from dtflab.graph.apply_op import apply_op

        return lambda **arguments: apply_op(op_type, **arguments)
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in op_type).lstrip("_")
    return getattr(module_of(tf, "python.ops.gen_sparse_ops", None), name)


def stored_and_taken(tf: Any, parts: list[Any], many: bool = False, dtype: Any = None, handles: Any = None) -> Any:
    """The SparseTensors that come back, given as (indices, values, shape), or the kernels' errors."""
    with tf.Graph().as_default(), tf.Session() as session:
        feeds: dict[Any, Any] = {}

        def hidden(value: Any) -> Any:
            tensor = tf.placeholder(np.asarray(value).dtype)
            feeds[tensor] = value
            return tensor

        add = op_of(tf, "AddManySparseToTensorsMap" if many else "AddSparseToTensorsMap")
        numbers = [
            add(
                sparse_indices=hidden(np.array(indices, np.int64)),
                sparse_values=hidden(np.array(values, np.float32)),
                sparse_shape=hidden(np.array(shape, np.int64)),
                shared_name="waiting",
            )
            for indices, values, shape in parts
        ]
        taken = tf.concat(numbers, 0) if many else tf.stack(numbers)
        if handles is not None:
            with tf.control_dependencies([taken]):
                taken = tf.constant(handles, tf.int64)
        take = op_of(tf, "TakeManySparseFromTensorsMap")
        found = take(sparse_handles=taken, dtype=dtype or tf.float32, shared_name="waiting")
        try:
            return plain(list(session.run(list(found), feeds)))
        except tf.errors.OpError as error:
            return type(error).__name__, error.message


ONE = ([[0], [2]], [1.0, 2.0], [3])
ROWS = ([[0, 1], [2, 0], [2, 1]], [1.0, 2.0, 3.0], [3, 2])


@pytest.mark.parametrize(
    ("parts", "options"),
    [
        ([ONE], {}),
        ([ONE, ([], np.zeros([0]), [5]), ([[4]], [9.0], [5])], {}),
        ([ONE, ROWS], {}),
        ([ROWS, ROWS], {}),
        ([ROWS], {"many": True}),
        ([ROWS, ([[1, 4]], [5.0], [2, 7])], {"many": True}),
        ([ONE], {"many": True}),
        ([([[0, 1], [3, 0]], [1.0, 2.0], [3, 2])], {"many": True}),
        ([([[0, 5]], [1.0], [3, 2])], {"many": True}),
        ([([[1, 1], [0, 0]], [1.0, 2.0], [3, 2])], {"many": True}),
        ([([[0, 1], [0, 1]], [1.0, 2.0], [3, 2])], {"many": True}),
        ([([[-1, 1]], [1.0], [3, 2])], {"many": True}),
        ([([0], [1.0], [3])], {}),
        ([([[0]], [[1.0]], [3])], {}),
        ([([[0]], [1.0], [[3]])], {}),
        ([([[0, 1]], [1.0], [3])], {}),
        ([([[0], [1]], [1.0], [3])], {}),
        ([ONE], {"handles": [7]}),
        ([ONE], {"handles": []}),
    ],
)  # fmt: skip
def test_sparse_tensors_by_number(parts, options):
    parts = [(np.zeros([0, 1]) if indices == [] else indices, values, shape) for indices, values, shape in parts]
    theirs, ours = answers.both(lambda tf: stored_and_taken(tf, parts, **options))
    if isinstance(ours, tuple):
        assert ours[0] == theirs[0]
        assert ours[1].partition("\n")[0] in theirs[1]
    else:
        assert ours == theirs


def test_a_sparse_tensor_is_taken_once_and_by_its_type():
    twice = answers.both(lambda tf: stored_and_taken(tf, [ONE], handles=[0, 0]))
    typed = answers.both(lambda tf: stored_and_taken(tf, [ONE], dtype=tf.int32))
    for theirs, ours in (twice, typed):
        assert isinstance(ours, tuple) and ours[0] == theirs[0] == "InvalidArgumentError"
