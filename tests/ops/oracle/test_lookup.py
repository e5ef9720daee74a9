"""Lookup tables, side by side with TensorFlow: their graphs, what they hold, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle.answers import both
from tests.oracle.programs import Programs

program = Programs()
REFUSED: list[Any] = []


def refused(kind: type | str, words: str = "") -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        REFUSED.append(pytest.param(function, kind, words, id=function.__name__))
        return function

    return register


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    (tmp_path / "bands.txt").write_bytes(b"emerson 10\r\nlake 20\npalmer 30")
    monkeypatch.chdir(tmp_path)


@program.each()
def test_same_answer(run):
    def answer(tf):
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            found = run(tf, sess)
            nodes = [_node(op) for op in graph.get_operations()]
            files = [t.name for t in tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)]
            return found, nodes, len(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)), files

    for theirs, ours in zip(*both(answer), strict=True):
        assert ours == theirs


def _node(op: Any) -> Any:
    """The parts of a node that are the same in each run; tables have random names."""
    attrs = op.node_def.attr
    shared = attrs["shared_name"].s.partition(b"-")[0][:11] if "shared_name" in attrs else b""
    controls = sorted(c.name for c in op.control_inputs)
    shapes = [None if t.shape.ndims is None else t.shape.as_list() for t in op.outputs]
    return op.name, op.type, [t.name for t in op.inputs], shapes, controls, op.device, shared


@pytest.mark.parametrize(("run", "kind", "words"), REFUSED)
def test_same_refusal(run, kind, words):
    def answer(tf):
        error = getattr(tf.errors, kind) if isinstance(kind, str) else kind
        with tf.Graph().as_default(), tf.Session() as sess, pytest.raises(error) as caught:
            run(tf, sess)
        return words in str(caught.value)

    assert both(answer) == (True, True)


def table(tf: Any, keys: Any = ("a", "b"), values: Any = (1, 2), default: Any = -1, dtype: str = "int64",
          key_dtype: Any = None, **more: Any) -> Any:  # fmt: skip
    key_dtype = key_dtype or tf.string
    pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(keys, key_dtype), tf.constant(values, dtype))
    return tf.lookup.StaticHashTable(pairs, default, **more)


def of_file(tf: Any, **given: Any) -> Any:
    told = {"filename": "bands.txt", "key_dtype": tf.string, "key_index": 0, "value_dtype": tf.int64,
            "value_index": 1, "delimiter": " "} | given  # fmt: skip
    default = "?" if told["value_dtype"] == tf.string else -1
    return tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(**told), default)


# -- static tables ----------------------------------------------------------------------------------------------------


@program
def words_have_numbers(tf, sess):
    words = table(tf)
    found, unknown = words.lookup(tf.constant([["b"], ["z"]])), words[tf.constant("q")]
    before = sess.run(words.size())
    sess.run(tf.tables_initializer())
    sess.run(words.initializer)  # once more, with the same
    return before, sess.run([found, unknown, words.size()])[0].tolist(), words.name, words.default_value.name


@program
def numbers_have_words(tf, sess):
    words = table(tf, [3, 4], ["x", "y"], "?", tf.string, tf.int64, name="names")
    sess.run(words.initializer)
    keys, values = words.export()
    return sess.run(words.lookup(tf.constant([[5, 3]], tf.int64))).tolist(), [
        sorted(v) for v in sess.run([keys, values])
    ]


@program
def sparse_keys_give_sparse_values(tf, sess):
    words = table(tf)
    sess.run(words.initializer)
    keys = tf.SparseTensor([[0, 1], [1, 0]], ["b", "x"], [2, 2])
    return [part.tolist() for part in sess.run(words.lookup(keys))]


@program
def values_of_other_dtypes(tf, sess):
    tables = [table(tf, ["a"], [2.5], -1.0, "float32"), table(tf, ["a"], [True], False, "bool"),
              table(tf, ["a"], [0.1], 0.0, "float64"), table(tf, [1], [2], 0, "int32", tf.int32),
              table(tf, ["a", "a"], [1, 1])]  # fmt: skip
    sess.run(tf.tables_initializer())
    return [sess.run(one.size()) for one in tables], sess.run(tables[0].lookup(tf.constant(["a"]))).tolist()


@program
def inside_of_a_conditional_the_table_is_made_outside(tf, sess):
    found = tf.cond(tf.constant(True), lambda: table(tf).lookup(tf.constant(["a"])), lambda: tf.constant([0], tf.int64))
    sess.run(tf.tables_initializer())
    return sess.run(found).tolist()


@program
def two_sessions_have_two_tables_but_share_what_is_in_a_file(tf, sess):
    found = of_file(tf).size(), of_file(tf, vocab_size=2, value_index_offset=3).size()
    initialize = tf.tables_initializer()
    sess.run(initialize)
    sess.run(initialize)
    return [int(sess.run(size)) for size in found]


@program
def columns_lines_and_their_numbers(tf, sess):
    whole = {"key_index": tf.lookup.TextFileIndex.WHOLE_LINE, "value_index": tf.lookup.TextFileIndex.LINE_NUMBER}
    ids = {"key_dtype": tf.int64, "value_dtype": tf.string, "key_index": -1, "value_index": -2}
    tables = [of_file(tf), of_file(tf, value_dtype=tf.float32, vocab_size=3), of_file(tf, **whole),
              of_file(tf, value_index_offset=5, **whole)]  # fmt: skip
    keys = tf.constant(["lake", "lake 20", "?"])
    found = [one.lookup(keys) for one in tables] + [of_file(tf, **ids).lookup(tf.constant([1, 9], tf.int64))]
    sess.run(tf.tables_initializer())
    return [value.tolist() for value in sess.run(found)]


@program
def a_file_that_is_fed(tf, sess):
    path = tf.placeholder(tf.string, [])
    words = of_file(tf, filename=path)
    sess.run(words.initializer, {path: "bands.txt"})
    return sess.run(words.lookup(tf.constant(["palmer"]))).tolist()


def vocabulary(tf: Any, buckets: int = 3, **more: Any) -> Any:
    pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([0, 1], tf.int64))
    return tf.lookup.StaticVocabularyTable(pairs, buckets, **more)


@program
def unknown_words_have_buckets(tf, sess):
    words, only_buckets = vocabulary(tf), tf.lookup.StaticVocabularyTable(None, 5, name="scope/buckets/")
    sess.run([words.initializer, only_buckets.initializer])
    keys = tf.constant(["a", "b", "c", "dé", ""])
    sparse = tf.SparseTensor([[0]], ["c"], [1])
    found = sess.run([words.lookup(keys), only_buckets.lookup(keys), words.size(), only_buckets.size()])
    return [np.asarray(v).tolist() for v in found], sess.run(words.lookup(sparse)).values.tolist(), words.name


@program
def integers_as_words(tf, sess):
    pairs = tf.lookup.KeyValueTensorInitializer(tf.constant([5, 6], tf.int64), tf.constant([0, 1], tf.int64))
    words = tf.lookup.StaticVocabularyTable(pairs, 2, lookup_key_dtype=tf.int32)
    sess.run(words.initializer)
    return sess.run(words.lookup(tf.constant([5, 6, 7, 8], tf.int32))).tolist()


# -- tables that change -----------------------------------------------------------------------------------------------


def changes(sess: Any, changing: Any, keys: Any, values: Any, asked: Any) -> Any:
    size, find = changing.size(), changing.lookup(asked)
    found = [sess.run(size)]
    sess.run(changing.insert(keys, values))
    found += [sess.run(find).tolist(), sess.run(size)]
    sess.run(changing.remove(asked))
    return [*found, sess.run(find).tolist(), sess.run(size)]


@program
def insert_find_remove(tf, sess):
    mutable = tf.lookup.experimental.MutableHashTable
    words = tf.constant(["b", "z"])
    exported = mutable(tf.string, tf.int64, -1, name="exported")
    sess.run(exported.insert(["a", "b"], [1, 2]))
    return (
        changes(sess, mutable(tf.string, tf.int64, -1), ["a", "b"], [1, 2], words),
        changes(sess, mutable(tf.string, tf.int64, -1), [["b", "b"]], [[1, 2]], words),
        changes(sess, mutable(tf.string, tf.float32, [-1.0, 0.0]), ["a", "b"], [[1, 2], [3, 4]], words),
        changes(sess, mutable(tf.int64, tf.string, "?", checkpoint=False), [[1]], [["x"]], tf.range(4, dtype=tf.int64)),
        [sorted(part.tolist()) for part in sess.run(exported.export())],
    )  # fmt: skip


@program
def defaults_per_key(tf, sess):
    words = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    sess.run(words.insert(["a"], [1]))
    return sess.run(words.lookup(tf.constant(["a", "z"]), tf.constant([7, 8], tf.int64))).tolist()


@program
def dense_tables(tf, sess):
    def dense(*args: Any) -> Any:
        return tf.lookup.experimental.DenseHashTable(*args, initial_num_buckets=8)

    numbers = tf.constant([6, 9], tf.int64)
    return (
        changes(sess, dense(tf.int64, tf.float32, -1.0, 0, -1), [5, 6], [1.0, 2.0], numbers),
        changes(sess, dense(tf.string, tf.float32, -1.0, "", "$"), ["x", "y"], [1.0, 2.0], tf.constant(["y", "z"])),
        changes(sess, dense(tf.int64, tf.float32, [-1.0, 0.0], 0, -1), [5, 6], [[1.0, 2.0], [3.0, 4.0]], numbers),
        changes(sess, dense(tf.int64, tf.float32, -1.0, [0, 0], [-1, -1]), [[5, 6]], [1.0],
                tf.constant([[5, 6], [1, 1]], tf.int64)),
    )  # fmt: skip


@program
def savers_keep_them(tf, sess):
    mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="kept")
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -1, 8, name="dense")
    saver, fill = tf.train.Saver(), [mutable.insert(["a"], [5]), dense.insert_or_assign([3], [4])]
    sess.run(fill)
    path = saver.save(sess, "./tables")
    sess.run([mutable.insert(["a", "q"], [6, 7]), dense.erase(tf.constant([3], tf.int64))])
    saver.restore(sess, path)
    return sess.run([mutable.size(), mutable.lookup(["a"]), dense.size(), dense.lookup([3])])[1].tolist()


# -- refused ----------------------------------------------------------------------------------------------------------


@refused("FailedPreconditionError", "Table not initialized.")
def not_initialized(tf, sess):
    sess.run(table(tf).lookup(tf.constant(["a"])))


@refused("AbortedError", "HashTable is not initialized.")
def exported_before_it_is_filled(tf, sess):
    sess.run(table(tf).export())


def _dense(tf, key):
    return tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, key, np.array(key) - 1)


@refused("InvalidArgumentError", "Expected key shape [1] got [1,2]")
def rows_where_keys_are_numbers(tf, sess):
    sess.run(_dense(tf, 0).insert(tf.constant([[1, 2]], tf.int64), tf.zeros([1, 2], tf.int64)))


@refused("InvalidArgumentError", "Expected key shape [2,2] got [2]")
def one_vector_where_keys_are_vectors(tf, sess):
    sess.run(_dense(tf, [0, 0]).lookup(tf.constant([1, 2], tf.int64)))


@refused("InvalidArgumentError", "Input key shape [1,3] must end with the table's key shape [2]")
def longer_vectors_than_the_keys(tf, sess):
    sess.run(_dense(tf, [0, 0]).erase(tf.constant([[1, 2, 3]], tf.int64)))


@refused("InvalidArgumentError", "Empty and deleted keys must have same shape, got shapes: [2] and [3]")
def reserved_keys_of_two_shapes(tf, sess):
    sess.run(tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, [0, 0], [1, 1, 1]).size())


@refused("FailedPreconditionError", "HashTable has different value for same key. Key a has 1 and trying to add value 2")
def a_key_with_two_values(tf, sess):
    sess.run(table(tf, ["a", "a"]).initializer)


@refused("FailedPreconditionError", "Table was already initialized with different data.")
def filled_with_something_else(tf, sess):
    words = table(tf)
    keys = tf.constant(["c"]), tf.constant([1], tf.int64)
    sess.run(words.initializer)
    sess.run(tf.raw_ops.InitializeTableV2(table_handle=words.resource_handle, keys=keys[0], values=keys[1]))


@refused(ValueError)
def more_keys_than_values(tf, sess):
    table(tf, values=[1])


@refused(ValueError, "must be rank 1 but is rank 2")
def a_matrix_of_keys(tf, sess):
    table(tf, [["a", "b"]], [[1, 2]])


@refused(TypeError, "Dtype of argument `keys` must be")
def keys_of_another_dtype(tf, sess):
    table(tf).lookup(tf.constant([1]))


@refused(ValueError, "not compatible")
def a_default_that_is_no_scalar(tf, sess):
    table(tf, default=[1, 2])


@refused("InvalidArgumentError", "No OpKernel was registered to support Op 'HashTableV2'")
def keys_that_are_no_keys(tf, sess):
    sess.run(table(tf, [1.0], [2], key_dtype=tf.float32).initializer)


@refused("InvalidArgumentError", "Invalid vocab_size in bands.txt: expected 5 but got 3")
def a_file_with_fewer_lines(tf, sess):
    sess.run(of_file(tf, vocab_size=5).initializer)


@refused("NotFoundError", "nowhere.txt; No such file or directory")
def no_file(tf, sess):
    sess.run(of_file(tf, filename="nowhere.txt").initializer)


@refused("InvalidArgumentError", "line 0 (emerson 10) : expected at least 5 got 2")
def too_few_columns(tf, sess):
    sess.run(of_file(tf, value_index=4).initializer)


@refused("InvalidArgumentError", "Field emerson in line 0 is not a valid int64.")
def no_number(tf, sess):
    sess.run(of_file(tf, key_index=1, value_index=0).initializer)


@refused("InvalidArgumentError", "delimiter should be only 1 char")
def a_long_delimiter(tf, sess):
    sess.run(of_file(tf, delimiter="ab").initializer)


@refused(
    "InvalidArgumentError", "Conflicting key/value dtypes string->float with string-int64 for table hash_table_bands"
)
def one_table_of_two_dtypes(tf, sess):
    sess.run(of_file(tf).initializer)
    sess.run(of_file(tf, value_dtype=tf.float32).initializer)


@refused(ValueError, "`filename` argument required")
def no_file_name(tf, sess):
    of_file(tf, filename="")


@refused(ValueError, "`key_index` should be >= -2, received: -3")
def no_column(tf, sess):
    of_file(tf, key_index=-3)


@refused(ValueError, "`value_dtype` must be int64")
def line_numbers_as_floats(tf, sess):
    of_file(tf, value_index=-1, value_dtype=tf.float32)


@refused(ValueError, "`vocab_size` should be > 0")
def an_empty_vocabulary(tf, sess):
    of_file(tf, vocab_size=0)


@refused(ValueError, "`num_oov_buckets` must be > 0; use StaticHashTable.")
def no_buckets(tf, sess):
    vocabulary(tf, 0)


@refused(TypeError, "Invalid `value_dtype`")
def ids_that_are_no_int64(tf, sess):
    tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 2)


@refused("InvalidArgumentError", "Expected shape [2] for value, got [1]")
def fewer_values(tf, sess):
    sess.run(tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1).insert(["a", "b"], [1]))


@refused("InvalidArgumentError", "Expected shape [2,2] for value, got [2,1]")
def rows_too_short(tf, sess):
    sess.run(tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, [0, 0]).insert(["a", "b"], [[1], [2]]))


@refused("InvalidArgumentError", "Using the empty_key as a table key is not allowed")
def the_empty_key(tf, sess):
    sess.run(tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, 0, -1).lookup([0]))


@refused("InvalidArgumentError", "Using the deleted_key as a table key is not allowed")
def the_deleted_key(tf, sess):
    sess.run(tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, 0, -1).insert([-1], [1.0]))


@refused("InvalidArgumentError", "Empty and deleted keys cannot be equal")
def equal_reserved_keys(tf, sess):
    sess.run(tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, 0, 0).size())


@refused("InvalidArgumentError", "Number of buckets must be at least 4 and a power of 2, got: 3")
def an_odd_number_of_buckets(tf, sess):
    sess.run(tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, 0, -1, 3).size())


@refused("InvalidArgumentError", "Trying to access a handle's resource using the wrong type")
def no_table(tf, sess):
    variable = tf.get_variable("v", [], use_resource=True)
    sess.run(tf.raw_ops.LookupTableSizeV2(table_handle=variable.handle))


# -- on a cluster -----------------------------------------------------------------------------------------------------


def test_workers_share_a_table_on_a_parameter_server():
    with dtflab.Cluster(ps=1, worker=2) as cluster:
        found = []
        for index in range(2):
            with dtflab.Graph().as_default(), dtflab.device("/job:ps/task:0"):
                words = dtflab.lookup.experimental.MutableHashTable(dtflab.string, dtflab.int64, -1, name="shared")
                with dtflab.Session(cluster.target_of("worker", index)) as sess:
                    found.append(sess.run(words.lookup(["a"])).tolist())
                    sess.run(words.insert(["a"], [index + 5]))
        assert found == [[-1], [5]]
