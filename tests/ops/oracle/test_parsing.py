"""Parsing text, records and Examples on TensorFlow and on dtflab: values, errors and graphs compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle.programs import Programs

program = Programs()
test_same_answer = program.same_answers()


def seen(value: Any) -> Any:
    """A value with its types, in a form that can be compared."""
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [seen(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.name, value.shape, str(value.tolist())  # NaN is not equal to itself
    return value


KEY_WORDS = [
    r"Field \d+ in record \d+ is not a valid \w+: [^\n]*", r"Field \d+ is required but missing in record \d+",
    r"Expect \d+ fields but have \d+ in record \d+", r"Unquoted fields cannot have quotes/CRLFs inside",
    r"Quoted field has to end with quote", r"Quote inside a string has to be escaped", r"field_delim should be only 1",
    r"select_cols (?:is|contains)[^\n]*", r"Length of select_cols[^\n]*",
    r"There should only be 1 default per field[^\n]*",
    r"Each record default should be at most rank 1", r"Shape must be at most rank 1 but is rank \d",
    r"Shape of a default must be", r"not in list of allowed values", r"less than minimum",
    r"StringToNumberOp could not correctly convert string: [^\n]*", r"Cannot specify both '\w+' and '\w+'",
    r"missing 1 positional argument", r"DecodeRaw requires input strings to all be the same size[^\n]*",
    r"Input to DecodeRaw has length \d+ that is not a multiple of \d+, the size of \w+",
    r"fixed_length \(\d+\) must be[\w ]*", r"must be evenly divisible by \d but is \d", r"must be non-negative",
    r"(?:Name: \S+, )?Feature: \w+ \(data type: \w+\) is required but could not be found",
    r"Data types don't match", r"Could not parse \w+ \w+", r"Name: \S+, Feature list '\w+' is required",
    r"Input serialized must be a scalar", r"Missing (?:type|shape) for feature \w+", r"Unsupported \w+",
    r"First dimension of shape for feature \w+ unknown", r"All dimensions of shape for feature \w+ need to be known",
    r"Value feature_list.dense_defaults\[\w+\] must be None", r"(?:are|features) [cC]annot be \w+[^\n]*",
    r"context_features` and `sequence_features", r"Both context_features", r"Conflicting type",
    r"Dense and sparse keys must not intersect", r"Expected names have the same shape", r"Cannot reshape a tensor",
    r"Type mismatch between parsed tensor \(\w+\) and dtype \(\w+\)", r"Expected `serialized` to be a scalar",
    r"Error while parsing JSON", r"None values not supported",
]  # fmt: skip


def tried(tf: Any, make: Callable[[], Any], feed: Any = None) -> Any:
    """The values of the fetches that `make` builds, or the class and the key words of the error."""
    try:
        fetches = make()
        with tf.Session() as session:
            return seen(session.run(fetches, feed))
    except Exception as error:
        text = str(getattr(error, "message", error))
        words = next((found[0] for pattern in KEY_WORDS if (found := re.search(pattern, text))), "")
        return type(error).__name__, words


# -- numbers ------------------------------------------------------------------------------------------------------

NUMBERS = """1|-1|+1| 1|1 | -1 |1.5|1e5|1E5|1e400|-1e400|1e-400|1e40|inf|-inf|+inf|INF|infinity|Infinity|nan|NaN|-nan|
nan(5)|0x10|0x1p3|-0X1.8P1|1_0|1.|  .5|.|-||  |1e|1 2|1,0|1f|1d|2147483647|2147483648|-2147483648|-2147483649|
9223372036854775807|9223372036854775808|-9223372036854775808|-9223372036854775809|00012|1.0|--1|1-|\xa01|3.4028236e38|
3.4028235677973366e+38|3.40282356779733661637539395458142568448e38|1.17549435e-38|1e-45|7e-46|7.006492321624085e-46|
4294967295|4294967296|18446744073709551615|18446744073709551616|0.1|1.00000005960464477539062500001|
1.000000059604644775390625|1.00000017881393432617187499|\v1|+|1e+5|1e 5|- 1|١|0b1|0o1|1L|infinit|in|e5|+-1|_1|0x|0x1_0|
1__0|nan()|infinity1""".replace("\n", "").split("|")  # fmt: skip


@program
def every_kind_of_number(tf):
    given = tf.placeholder(tf.string, [])
    dtypes = (tf.float32, tf.float64, tf.int32, tf.int64, tf.uint32, tf.uint64)
    ops = [tf.string_to_number(given, dtype) for dtype in dtypes]
    ops += [tf.decode_csv(given, [tf.constant([], dtype)], field_delim=";")[0] for dtype in dtypes[:4]]
    return [[(text, tried(tf, lambda op=op: op, {given: text})) for text in NUMBERS] for op in ops]


@program
def many_numbers_are_read_as_one_is(tf):
    given = tf.placeholder(tf.string, [None])
    good = [text for text in NUMBERS if tried(tf, lambda t=text: tf.string_to_number(t, tf.float64))[0] == "float64"]
    floats = [tried(tf, lambda d=d: tf.string_to_number(given, d), {given: good}) for d in (tf.float32, tf.float64)]
    return floats, tried(tf, lambda: tf.string_to_number(given, tf.int32), {given: ["1", "2147483648"]})


@program
def arguments_of_string_to_number(tf):
    calls = [
        lambda: tf.string_to_number(), lambda: tf.string_to_number("1", input="2"),
        lambda: tf.string_to_number(input="3"),
        lambda: tf.string_to_number("1", tf.int8), lambda: tf.strings.to_number([["1", "2"]], tf.int64),
    ]  # fmt: skip
    return [tried(tf, call) for call in calls]


# -- decode_csv -----------------------------------------------------------------------------------------------------


def csv_cases(tf: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
    must, text = tf.constant([], tf.int32), [[""], [""]]
    return [
        (["1,2", "3,4"], [[0], [0]], {}), ("1,2", [[0], [0.5]], {}), ([["1,2"], ["3,4"]], [[0], [0.5]], {}),
        (["1,"], [[0], [7]], {}), ([","], [[0], [7]], {}), ([""], [[0], [7]], {}), ([""], [[3]], {}),
        (["1"], [[0], [7]], {}), (["1,2,3"], [[0], [7]], {}), (["1,2,"], [[0], [0]], {}), (["1, "], [[0], [7.0]], {}),
        (["1,2", "1,x"], [[0], [7.0]], {}), (["1,2", "1,x", "y,2"], [[0], [7]], {}), (["1,2", "3"], [[0], [0]], {}),
        (["1,2", "3,x", "4"], [[0], [0]], {}), (["", "1"], [[0]], {}), (["1,"], [[0], must], {}),
        (["1,2", ",3"], [must, [0]], {}), (["1,,3", "4,5,6"], [[0], [9], [0]], {}), (["1.5,2"], [[0], [0]], {}),
        (['a,"b,c"'], text, {}), (['a,"b""c"'], text, {}), (['"a"'], [[""]], {}), (['"a"b'], [[""]], {}),
        (['"a'], [[""]], {}), (['"'], [[""]], {}), (['""'], [["d"]], {}), (['"",x'], [["d"], ["e"]], {}),
        (['"a""'], [[""]], {}), (['"a"",b"'], [[""]], {}), (['"a,"'], [[""]], {}), (['"a",'], text, {}),
        (['a"b'], [[""]], {}), (['a"b'], [[""]], {"use_quote_delim": False}), (['"1"," 2 "'], [[0], [0.5]], {}),
        (['"a,b"'], text, {"use_quote_delim": False}), (["a\nb"], [[""]], {}), (["a\n"], [[""]], {}),
        (["\na"], [[""]], {}), (["a,\nb", "c,d"], text, {}), (["a\r"], [[""]], {}), (["\r\n"], [["d"]], {}),
        (['"a\nb"'], [[""]], {}), (['"a"\n'], [[""]], {}), (["a,\n"], [["d"], ["e"]], {}), (["\n"], [["d"]], {}),
        (["a,\r\n,b"], [["d"], ["e"], ["f"]], {}), (["a;b"], text, {"field_delim": ";"}),
        (["a\tb"], text, {"field_delim": "\t"}), (["a b", "c d"], text, {"field_delim": " "}),
        (["a,b"], text, {"field_delim": ";;"}), (["a,b"], text, {"field_delim": ""}),
        (['a"b', 'c"d'], text, {"field_delim": '"'}), (["a\nb", "c\nd"], text, {"field_delim": "\n"}),
        (["1,NA,3"], [[0], [5], [6]], {"na_value": "NA"}), (['1,"NA",3'], [[0], [5], [6]], {"na_value": "NA"}),
        (["1,NA,3"], [[0], must, [6]], {"na_value": "NA"}), (["1,,NA"], [["x"], ["y"], ["z"]], {"na_value": "NA"}),
        (["a,b,c", "d,e,f"], [["x"], ["y"]], {"select_cols": [0, 2]}), (["a,b,c"], [["x"]], {"select_cols": [2]}),
        (["a,b"], [["x"]], {"select_cols": [2]}), (["a,b,"], [["x"]], {"select_cols": [2]}),
        (['a,b,c"d'], [["x"]], {"select_cols": [0]}), (['a,b,c"d'], [["x"]], {"select_cols": [2]}),
        (["a,b,c"], [["x"], ["y"]], {"select_cols": [2, 0]}), (["a,b,c"], [["x"], ["y"]], {"select_cols": [0]}),
        (["a,b,c"], [["x"], ["y"]], {"select_cols": [0, 0]}), (["a,b,c"], [["x"]], {"select_cols": [-1]}),
        (["a,b,c"], [["x"]], {"select_cols": []}), (["1"], [[1, 2]], {}), (["1"], [[[1]]], {}), (["1"], [1], {}),
        (["1"], [np.zeros((1, 0))], {}), (["1"], [tf.constant([], tf.bool)], {}), (["1"], [], {}),
        (np.array([], object), [[0]], {}), (np.zeros((2, 0), object), [["x"], [1]], {}), (["é,ü"], text, {}),
        (["1,2"], [[0], ["é"]], {"field_delim": None, "na_value": None}), (["x"], [tf.constant([0], tf.int64)], {}),
        (["1", "x"], [tf.constant([0.0], tf.float64)], {}),
    ]  # fmt: skip


@program
def csv(tf):
    return [(str(r), tried(tf, lambda r=r, d=d, k=k: tf.decode_csv(r, d, **k))) for r, d, k in csv_cases(tf)]


@program
def csv_without_static_shapes(tf):
    records, default = tf.placeholder(tf.string), tf.placeholder(tf.float32)
    (column,) = tf.decode_csv(records, [default])
    assert column.shape.ndims is None
    cases = [("", 5.0), ("1", [5.0, 6.0]), ("", []), ("", [[1.0]]), (["1", '""'], [2.0]), (["1", '""'], 2.0)]
    return [tried(tf, lambda: column, {records: r, default: d}) for r, d in cases]


@program
def csv_by_chance(tf):
    """Whatever way records go, all at once or one by one, the values and the first error are the same."""
    random = np.random.RandomState(0)
    pieces = ["1", "2.5", "", "x", '"3"', '"a,b"', " 4 ", '"', "\n", "NA", ",", ",", ","]
    records = tf.placeholder(tf.string, [None])
    columns = tf.decode_csv(records, [[0.5], tf.constant([], tf.float32), ["none"]], na_value="NA")
    answers = []
    for _ in range(300):
        rows = ["".join(random.choice(pieces, random.randint(1, 8))) for _ in range(random.randint(1, 4))]
        rows = [row if random.rand() < 0.3 else "1,2,3" for row in rows]
        answers.append((rows, tried(tf, lambda: columns, {records: rows})))
    assert len({str(answer) for _, answer in answers}) > 20
    return answers


# -- decode_raw -----------------------------------------------------------------------------------------------------


@program
def raw_bytes(tf):
    decode = tf.decode_raw
    calls = [
        lambda: decode(["ab", "abc"], tf.uint8), lambda: decode(["abc"], tf.int16),
        lambda: decode(["", "ab"], tf.uint8),
        lambda: decode([["ab"], ["cd"]], tf.int16), lambda: decode(bytes="ab", out_type=tf.uint8), lambda: decode(),
        lambda: decode("a"), lambda: decode("a", tf.uint8, bytes="b"), lambda: decode("a", tf.string),
        lambda: decode("a", tf.uint32), lambda: tf.io.decode_raw("abcd", tf.int32, little_endian=False),
    ]  # fmt: skip
    return [tried(tf, call) for call in calls], str(decode(tf.placeholder(tf.string, [None, 2]), tf.uint8).shape)


# -- Examples -------------------------------------------------------------------------------------------------------


def feature(tf: Any, *values: Any) -> Any:
    kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}
    lists = {"float_list": tf.train.FloatList, "int64_list": tf.train.Int64List, "bytes_list": tf.train.BytesList}
    if not values:
        return tf.train.Feature()
    name = kind[type(values[0])]
    return tf.train.Feature(**{name: lists[name](value=values)})


def example(tf: Any, **features: Any) -> bytes:
    made = {key: feature(tf, *values) for key, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def sequence(tf: Any, context: dict[str, Any], **lists: Any) -> bytes:
    made = {k: tf.train.FeatureList(feature=[feature(tf, *v) for v in steps]) for k, steps in lists.items()}
    once = tf.train.Features(feature={key: feature(tf, *values) for key, values in context.items()})
    listed = tf.train.FeatureLists(feature_list=made)
    return tf.train.SequenceExample(context=once, feature_lists=listed).SerializeToString()


def parsed(tf: Any, messages: list[bytes], features: Any, one: bool = False, **how: Any) -> Any:
    if one:
        return tried(tf, lambda: tf.parse_single_example(messages[0], features, **how))
    return tried(tf, lambda: tf.parse_example(messages, features, **how))


@program
def examples_alone_and_in_batches(tf):
    fixed, ragged, steps, sparse = tf.FixedLenFeature, tf.VarLenFeature, tf.FixedLenSequenceFeature, tf.SparseFeature
    f, i, s = tf.float32, tf.int64, tf.string
    a = example(tf, a=[1.0, 2.0], b=[3], c=[b"x", b"yy"])
    b, none, kindless = example(tf, a=[4.0, 5.0], b=[6], c=[b"z"]), example(tf), example(tf, a=[])
    places = [example(tf, i=[2, 0], j=[1, 1], v=[1.0, 2.0]), none, example(tf, i=[1], j=[2], v=[9.0])]
    full = {"a": fixed([2], f), "b": fixed([], i), "c": ragged(s)}
    cases = [
        ([a, b], full), ([none], full), ([kindless], full), ([b"garbage"], full), ([b""], {"a": ragged(f)}),
        ([none, a], {"a": fixed([2], f, [7, 8]), "b": fixed((), i, -1), "d": fixed([1], s, "d")}),
        ([a], {"a": fixed([2], i)}), ([a], {"a": ragged(i)}), ([a], {"a": fixed([2, 1], f)}),
        ([none], {"a": ragged(f)}), ([a, none, b], {"a": ragged(f), "c": ragged(s)}),
        ([kindless, b], {"a": ragged(f)}), ([a, none, b], {"a": steps([2], f, True), "c": steps([], s, True)}),
        ([b, none, a], {"b": steps([], i, True, -5)}), ([a], {"a": steps([2], f)}), ([a], {"a": steps([2], i, True)}),
        (places, {"s": sparse("i", "v", f, 5)}), (places, {"s": sparse(["i", "j"], "v", f, [5, 3])}),
        (places, {"s": sparse("i", "v", f, 5), "v": ragged(f)}), (places, {"s": sparse("i", "v", i, 5)}),
        (places, {"s": sparse("i", "i", f, 5)}), (places, {"s": sparse("i", "v", f, 5), "i": fixed([1], i)}),
        ([a], {"a": ragged(None)}), ([a], {"a": 5}), ([a], {"a": fixed(None, f)}), ([a], {"a": fixed([None], f)}),
        ([a], {"a": fixed([1, None], f)}), ([a], {"a": fixed([2], tf.int32)}), ([none], {"a": fixed([2], f, 1.0)}),
        ([a], {"a": fixed([2], f, [1.0, 2.0, 3.0])}), ([none], {"a": fixed([2], f, tf.constant([1.0, 2.0]))}),
        ([a], {"a": fixed([2], f), "c": fixed([2], s)}), ([a + example(tf, a=[8.0, 9.0])], full), ([a], {}),
        ([a], None),
    ]  # fmt: skip
    named = [parsed(tf, [a, none], full, example_names=["n1", "n2"]), parsed(tf, [a, b], full, example_names=["n1"])]
    return [parsed(tf, *case, one=one) for case in cases for one in (False, True)], named


@program
def sizes_that_do_not_fit(tf):
    """TensorFlow has several wordings for this."""
    a = example(tf, a=[1.0, 2.0], c=[b"x", b"y"])
    cases = [
        {"a": tf.FixedLenFeature([3], tf.float32)}, {"a": tf.FixedLenFeature([1], tf.float32)},
        {"a": tf.FixedLenFeature([3], tf.float32, [1.0, 2.0, 3.0])}, {"c": tf.FixedLenFeature([1], tf.string)},
        {"a": tf.FixedLenSequenceFeature([3], tf.float32, True)},
    ]  # fmt: skip
    return [parsed(tf, [a], case, one=one)[0] for case in cases for one in (False, True)]


@program
def sequences_alone_and_in_batches(tf):
    f, i, s = tf.float32, tf.int64, tf.string
    fixed, ragged, steps = tf.FixedLenFeature, tf.VarLenFeature, tf.FixedLenSequenceFeature
    long = sequence(tf, {"a": [5]}, f=[[1.0, 2.0], [3.0, 4.0]], g=[[1], [], [2, 3]], h=[[b"x"]])
    short, none = sequence(tf, {"a": [6], "v": [b"q"]}, f=[[7.0, 8.0]], g=[]), sequence(tf, {})
    context, lists = {"a": fixed([], i), "v": ragged(s)}, {"f": steps([2], f), "g": ragged(i)}
    cases = [
        ([long, short], context, lists), ([long], None, None), ([long], context, None), ([long], None, lists),
        ([none], None, lists), ([none, long], None, {"f": steps([2], f, True), "g": ragged(i)}),
        ([none, long], {"a": fixed([], i, 9)}, None), ([long], {"a": fixed([], f)}, None),
        ([long], None, {"f": steps([2], i)}), ([long], None, {"f": ragged(i)}), ([long], None, {"f": steps([2, 1], f)}),
        ([long], None, {"f": steps([2], f, True, 3.0)}), ([long], None, {"f": fixed([2], f)}),
        ([long], {"f": steps([2], f)}, None), ([long, short], None, {"h": ragged(s)}),
        ([sequence(tf, {}, g=[[], [1]])], None, {"g": ragged(i)}),
    ]  # fmt: skip
    seen: list[Any] = []
    for messages, once, listed in cases:
        seen.append(tried(tf, lambda m=messages, o=once, x=listed: tf.parse_single_sequence_example(m[0], o, x)))
        seen.append(tried(tf, lambda m=messages, o=once, x=listed: tf.io.parse_sequence_example(m, o, x)))
    wrong = [
        ([none], context, None), ([b"junk"], context, None), ([long], None, {"f": steps([3], f)}),
        ([long], {"a": fixed([2], i)}, None), ([sequence(tf, {}, f=[[], [1.0, 2.0]])], None, lists),
    ]  # fmt: skip
    for messages, once, listed in wrong:  # TensorFlow's words for these are about its own workings
        seen.append(tried(tf, lambda m=messages, o=once, x=listed: tf.parse_single_sequence_example(m[0], o, x))[0])
        seen.append(tried(tf, lambda m=messages, o=once, x=listed: tf.io.parse_sequence_example(m, o, x))[0])
    return seen


@program
def graphs_of_parsing(tf):
    fixed, ragged, steps = tf.FixedLenFeature, tf.VarLenFeature, tf.FixedLenSequenceFeature
    features = {
        "a": fixed([2], tf.float32, [1, 2]), "b/ c": fixed([], tf.int64), "d": ragged(tf.string),
        "s": tf.SparseFeature("i", "v", tf.float32, 5), "q": steps([2], tf.float32, True, 3.0),
    }  # fmt: skip
    one, many, any_ = (tf.placeholder(tf.string, shape) for shape in ([], [None], None))
    made = [
        tf.parse_example(many, features, name="PE"), tf.parse_example(any_, features), tf.parse_example(one, features),
        tf.parse_single_example(one, features, example_names="n"), tf.parse_single_example(any_, features, name="PS"),
        *tf.parse_single_sequence_example(one, {"a": fixed([], tf.int64)}, {"f": steps([2], tf.float32)}),
        *tf.io.parse_sequence_example(
            many, {"a": fixed([], tf.int64), "v": ragged(tf.string)},
            {"f": steps([2], tf.float32, True), "g": ragged(tf.int64)}, example_names=["x"], name="SE",
        ),
    ]  # fmt: skip
    (csv,) = tf.decode_csv(many, [[1.0]], name="csv", na_value="x", select_cols=[2])
    tf.string_to_number(csv_text := tf.placeholder(tf.string), tf.int32, name="number")
    tf.decode_raw(csv_text, tf.int16, False)
    tf.parse_tensor(tf.serialize_tensor(csv), tf.float32)
    shapes = [{key: shape_of(tf, tensor) for key, tensor in tensors.items()} for tensors in made]
    nodes = tf.get_default_graph().as_graph_def().node
    return shapes, [(n.name, n.op, list(n.input), sorted((k, str(v)) for k, v in n.attr.items())) for n in nodes]


def shape_of(tf: Any, tensor: Any) -> list[str]:
    parts = [tensor] if isinstance(tensor, tf.Tensor) else [tensor.indices, tensor.values, tensor.dense_shape]
    return [str(part.shape) for part in parts] + [str(tensor.shape)]


# -- tensors as strings -----------------------------------------------------------------------------------------------


@program
def tensors_as_strings(tf):
    values = [np.arange(3, dtype=np.int32), np.array([b"a", b"b\0"], object), np.float64(2.5), np.array([[1 + 2j]])]
    whole = [tried(tf, lambda v=v: tf.parse_tensor(tf.serialize_tensor(v), tf.as_dtype(v.dtype))) for v in values]
    wrong = [
        lambda: tf.parse_tensor(tf.serialize_tensor([1]), tf.float32), lambda: tf.parse_tensor("junk", tf.float32),
        lambda: tf.parse_tensor(tf.placeholder_with_default(["x"], None), tf.float32),
        lambda: tf.decode_json_example("{"), lambda: tf.decode_json_example('{"x": 1}'),
    ]  # fmt: skip
    return whole, [tried(tf, call) for call in wrong]


@program
def json_examples(tf):
    texts = [
        '{"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}, "c": {"float_list": {"value": [1.5]}}}}}'
    ]
    with tf.Session() as session:
        found = session.run(tf.decode_json_example(texts))
    return [str(tf.train.Example.FromString(text)) for text in found]


@program
def feature_descriptions(tf):
    kinds = [
        tf.FixedLenFeature([2], tf.float32), tf.VarLenFeature(tf.int64), tf.SparseFeature("i", "v", tf.float32, 5),
        tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    ]  # fmt: skip
    return [(type(k).__name__, k._fields, str(k)) for k in kinds] + [tf.io.VarLenFeature is tf.VarLenFeature]
