"""Iterators, files and generators on TensorFlow and on dtflab: the same programs, what they give and how they fail."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.oracle.test_data import as_written, outcome, plain
from tests.oracle.graph_defs import both
from tests.oracle.input_files import write_records, write_texts
from tests.oracle.programs import Programs

program = Programs()
TEXTS = {"a": b"one\ntwo\r\n\nfour", "b": b"x\n", "empty": b"", "fixed": b"HEAD" + b"abcdefghijkl" + b"FT"}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts(TEXTS)
    Path("a.gz").write_bytes(gzip.compress(TEXTS["a"]))
    Path("a.z").write_bytes(zlib.compress(TEXTS["a"]))
    Path("fixed.gz").write_bytes(gzip.compress(TEXTS["fixed"]))
    write_records()


@program.each()
def test_same_answer(run, files):
    def seeded(tf):
        tf.set_random_seed(7)
        return run(tf)

    theirs, ours = both(seeded)
    assert ours == theirs


def all_of(tf: Any, dataset: Any, most: int = 30) -> list[Any]:
    iterator = dataset.make_initializable_iterator()
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        try:
            session.run(iterator.initializer)
        except tf.errors.OpError as error:
            return [type(error).__name__]
        for _ in range(most):
            found.append(outcome(tf, session, element))
            if found[-1] == "end":
                break
    return found


def failure(call: Callable[[], Any]) -> str:
    """The class of the error of a call, and what it says."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def step_failure(tf: Any, session: Any, fetch: Any) -> list[Any]:
    """The class of a step's error, and the line that says what is wrong."""
    with pytest.raises(tf.errors.OpError) as caught:
        session.run(fetch)
    lines = [line for line in caught.value.message.splitlines() if line and not line.startswith((" ", "\t"))]
    said = [line for line in lines if not line.startswith(("Graph execution error", "Detected at", "Node:"))]
    return [type(caught.value).__name__, said[0]]


# -- kinds of iterators ---------------------------------------------------------------------------------------------


@program
def before_it_is_initialized(tf):
    element = tf.data.Dataset.range(3).make_initializable_iterator().get_next()
    with tf.Session() as session:
        return step_failure(tf, session, element)


@program
def initialized_with_what_is_fed(tf):
    limit = tf.placeholder(tf.int64, [])
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(limit).map(lambda x: x + limit))
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        for n in (2, 3):
            session.run(iterator.initializer, {limit: n})
            found += [outcome(tf, session, element) for _ in range(n + 2)]
    return found


@program
def initialized_in_the_middle(tf):
    iterator = tf.data.Dataset.range(5).make_initializable_iterator()
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        for _ in range(3):
            session.run(iterator.initializer)
            found += [outcome(tf, session, element) for _ in range(2)]
    return found


@program
def two_of_one_step(tf):
    iterator = tf.data.Dataset.range(10).make_one_shot_iterator()
    first, second = iterator.get_next(), iterator.get_next()
    with tf.Session() as session:
        return [sorted(plain(session.run([first, second]))) for _ in range(3)]


@program
def each_session_begins_again(tf):
    element = tf.data.Dataset.range(10).make_one_shot_iterator().get_next()
    found = []
    for _ in range(2):
        with tf.Session() as session:
            found += [outcome(tf, session, element) for _ in range(3)]
    return found


@program
def two_sessions_at_once(tf):
    iterator = tf.data.Dataset.range(10).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as one, tf.Session() as other:
        one.run(iterator.initializer)
        other.run(iterator.initializer)
        return [outcome(tf, session, element) for session in (one, one, other, one, other)]


@program
def training_and_validation(tf):
    training = tf.data.Dataset.range(4).map(lambda x: x * 10)
    validation = tf.data.Dataset.range(2)
    iterator = tf.data.Iterator.from_structure(training.output_types, training.output_shapes)
    element, found = iterator.get_next(), []
    begin_training, begin_validation = iterator.make_initializer(training), iterator.make_initializer(validation)
    with tf.Session() as session:
        for _ in range(2):
            session.run(begin_training)
            found += [outcome(tf, session, element) for _ in range(2)]
            session.run(begin_validation)
            found += [outcome(tf, session, element) for _ in range(3)]
    return found


@program
def one_of_two_by_its_handle(tf):
    training = tf.data.Dataset.range(10, 20).repeat().make_one_shot_iterator()
    validation = tf.data.Dataset.range(2).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    found = []
    with tf.Session() as session:
        one, other = session.run([training.string_handle(), validation.string_handle()])
        session.run(validation.initializer)
        for name in (one, other, one, other, other, one):
            try:
                found.append(plain(session.run(element, {handle: name})))
            except tf.errors.OutOfRangeError:
                found.append("end")
    return found


@program
def a_handle_of_other_types(tf):
    iterator = tf.data.Dataset.range(3).make_initializable_iterator()
    handle = iterator.string_handle()
    with tf.Session() as session:
        session.run(iterator.initializer)
        element = tf.data.Iterator.from_string_handle(session.run(handle), tf.int32, []).get_next()
        other = tf.data.Iterator.from_string_handle(session.run(handle), tf.int64, [2]).get_next()
        return step_failure(tf, session, element), step_failure(tf, session, other)


@program
def structures_that_differ(tf):
    dataset = tf.data.Dataset.range(3)
    types = tf.data.Iterator.from_structure(tf.int32, [])
    shapes = tf.data.Iterator.from_structure(tf.int64, [2])
    nested = tf.data.Iterator.from_structure((tf.int64, tf.int64))
    calls = [lambda i=i: i.make_initializer(dataset) for i in (types, shapes)]
    return [failure(call) for call in calls], failure(lambda: nested.make_initializer(dataset)).split(":")[0]


@program
def no_initializer(tf):
    return failure(lambda: tf.data.Dataset.range(3).make_one_shot_iterator().initializer)


@program
def what_a_one_shot_iterator_can_not_capture(tf):
    v, limit = tf.Variable(3, dtype=tf.int64), tf.placeholder(tf.int64, [])
    datasets = [tf.data.Dataset.range(3).map(lambda x: x + v), tf.data.Dataset.range(limit)]
    return [failure(dataset.make_one_shot_iterator).split(":")[0] for dataset in datasets]


@program
def what_is_known_before(tf):
    dataset = tf.data.Dataset.from_tensor_slices({"a": np.ones((4, 3)), "b": ["s"] * 4}).batch(2, drop_remainder=True)
    iterator = dataset.make_one_shot_iterator()
    element = iterator.get_next()
    known = [tf.data.get_output_shapes(dataset), iterator.output_types, {k: v.shape for k, v in element.items()}]
    return [str(each) for each in known], sorted(tf.data.get_output_classes(dataset))


@program
def a_table_in_a_function(tf):
    keys = tf.constant(["a", "b"])
    init = tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2], tf.int64))
    table = tf.lookup.StaticHashTable(init, -1)
    iterator = tf.data.Dataset.from_tensor_slices(["b", "c", "a"]).map(table.lookup).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run([tf.tables_initializer()])
        session.run(iterator.initializer)
        return [outcome(tf, session, element) for _ in range(4)]


@program
def a_variable_that_changes(tf):
    v = tf.get_variable("v", initializer=tf.constant(1, tf.int64), use_resource=True)
    dataset = tf.data.Dataset.range(4).map(lambda x: x * v).with_options(as_written(tf))
    iterator = dataset.make_initializable_iterator()
    element, more, found = iterator.get_next(), v.assign_add(10), []
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(iterator.initializer)
        for _ in range(4):
            found.append(outcome(tf, session, element))
            session.run(more)
    return found


@program
def in_a_monitored_session(tf):
    step, folder = tf.train.get_or_create_global_step(), f"checkpoints of {tf.__name__}"
    element = tf.data.Dataset.range(5).repeat(2).make_one_shot_iterator().get_next()
    total = tf.Variable(0, dtype=tf.int64)
    train = tf.group(total.assign_add(element), step.assign_add(1))
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, log_step_count_steps=None) as session:
        steps = 0
        while not session.should_stop():
            session.run(train)
            steps += 1
    tf.summary.FileWriterCache.clear()
    return steps, tf.train.load_variable(folder, total.op.name).tolist()


@program
def all_in_one(tf):
    D = tf.data.Dataset
    total = D.range(5).reduce(np.int64(0), lambda a, b: a + b)
    rows = D.range(4).map(lambda x: tf.fill([2], x)).reduce(tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, x], 0))
    pair = D.from_tensor_slices({"a": [1.0, 2.0], "b": [3, 4]}).reduce(
        (0.0, {"n": 0}), lambda s, x: (s[0] + x["a"], {"n": s[1]["n"] + x["b"]})
    )
    with tf.Session() as session:
        return str(rows.shape), plain(session.run([total, rows, pair]))


@program
def wrong_functions(tf):
    D = tf.data.Dataset
    calls: list[Callable[[], Any]] = [
        lambda: D.range(3).filter(lambda x: x),
        lambda: D.range(3).reduce(np.int64(0), lambda a, b: tf.cast(b, tf.int32)),
        lambda: D.range(3).apply(lambda d: 3),
        lambda: D.zip([D.range(3)]),
        lambda: D.range(3).concatenate(D.from_tensors("a")),
        lambda: D.from_tensor_slices(3),
        lambda: D.from_tensor_slices(([1, 2], [1, 2, 3])),
        lambda: D.range(1, 2, 3, 4),
        lambda: D.range(3).padded_batch(2, [2]),
        lambda: D.from_tensors([1, 2]).padded_batch(2, [1]),
        lambda: D.from_generator(3, tf.int32),
        lambda: iter(D.range(3)),
    ]
    return [failure(call).split(":")[0] for call in calls]


# -- files ----------------------------------------------------------------------------------------------------------


@program
def lines(tf):
    return all_of(tf, tf.data.TextLineDataset(["a", "empty", "b"]))


@program
def lines_of_one_file(tf):
    return all_of(tf, tf.data.TextLineDataset("a").batch(3))


@program
def compressed_lines(tf):
    return [all_of(tf, tf.data.TextLineDataset(f"a.{end}", kind)) for end, kind in (("gz", "GZIP"), ("z", "ZLIB"))]


@program
def lines_of_files_in_turns(tf):
    return all_of(tf, tf.data.TextLineDataset(["a", "b", "a"], num_parallel_reads=2))


@program
def lines_of_files_out_of_a_data_set(tf):
    names = tf.data.Dataset.list_files(["a", "b"], shuffle=False)
    return all_of(tf, tf.data.TextLineDataset(names).repeat(2).batch(4))


@program
def lines_of_each_file(tf):
    return all_of(tf, tf.data.Dataset.list_files("[ab]", shuffle=False).interleave(tf.data.TextLineDataset, 2))


@program
def a_file_that_is_missing(tf):
    return all_of(tf, tf.data.TextLineDataset(["b", "nowhere", "a"]), most=4)


@program
def records(tf):
    datasets = [tf.data.TFRecordDataset(["r", "r"]), tf.data.TFRecordDataset("r.gz", "GZIP")]
    return [all_of(tf, dataset) for dataset in (*datasets, tf.data.TFRecordDataset("r.z", "ZLIB").batch(2))]


@program
def damaged_records(tf):
    return all_of(tf, tf.data.TFRecordDataset(["r.bad", "r"])), all_of(tf, tf.data.TFRecordDataset("a"))


@program
def records_of_equal_length(tf):
    kinds = [
        ("fixed", 4, 4, 2, None),
        ("fixed", 3, 4, 2, None),
        ("fixed.gz", 6, 4, 2, "GZIP"),
        ("fixed", 5, 4, 2, None),
    ]
    make = tf.data.FixedLengthRecordDataset
    return [all_of(tf, make(f, n, head, foot, compression_type=c), most=4) for f, n, head, foot, c in kinds]


@program
def examples_out_of_records(tf):
    with tf.python_io.TFRecordWriter("examples") as writer:
        for i in range(4):
            feature = {"x": tf.train.Feature(int64_list=tf.train.Int64List(value=[i, i * i]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    spec = {"x": tf.FixedLenFeature([2], tf.int64)}
    dataset = tf.data.TFRecordDataset("examples").map(lambda s: tf.parse_single_example(s, spec))
    return all_of(tf, dataset.shuffle(10, seed=2).batch(3).prefetch(1))


@program
def files_that_match(tf):
    names = tf.data.Dataset.list_files
    return [all_of(tf, names("[ab]*", shuffle=False)), all_of(tf, names("r*", seed=5)), all_of(tf, names("*.no"))]


# -- generators -----------------------------------------------------------------------------------------------------


def counting(n: Any = 4) -> Any:
    yield from range(n)


@program
def a_generator(tf):
    return all_of(tf, tf.data.Dataset.from_generator(counting, tf.int32, []).repeat(2).batch(3))


@program
def a_generator_with_arguments(tf):
    return all_of(tf, tf.data.Dataset.from_generator(counting, tf.int64, [], args=(3,)))


@program
def a_generator_of_structures(tf):
    def pairs():
        for i in range(3):
            yield [i] * i, {"text": "x" * i}

    types, shapes = (tf.int32, {"text": tf.string}), ([None], {"text": []})
    return all_of(tf, tf.data.Dataset.from_generator(pairs, types, shapes))


@program
def a_generator_that_yields_something_else(tf):
    dataset = tf.data.Dataset.from_generator(lambda: iter([1, "a", 3]), tf.int32)
    return all_of(tf, dataset), all_of(
        tf, tf.data.Dataset.from_generator(lambda: iter([[1, 2], [1], [3, 4]]), tf.int32, [2])
    )


@program
def a_generator_that_fails(tf):
    def one():
        yield 1
        raise ValueError("enough")

    return all_of(tf, tf.data.Dataset.from_generator(one, tf.int32, []))


@program
def generators_of_each_element(tf):
    def make(x):
        return tf.data.Dataset.from_generator(counting, tf.int64, [], args=(x,))

    return all_of(tf, tf.data.Dataset.range(4).flat_map(make))
