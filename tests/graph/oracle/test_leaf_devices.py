from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from dtflab.graph import device_spec as ours
from tests.oracle.leaf import outcome

tf = pytest.importorskip("tensorflow").compat.v1
theirs = pytest.importorskip("tensorflow.python.framework.device")

SPECS = (ours.DeviceSpec, tf.DeviceSpec)


def fields(d):
    return d.job, d.replica, d.task, d.device_type, d.device_index, d.to_string()


def same(call):
    """`call` gets one of the two DeviceSpec classes."""
    a, b = (outcome(lambda cls=cls: call(cls)) for cls in SPECS)
    assert a == b


NO_NUMBER = "raises invalid literal for int() with base 10: "


def same_of_text(call):
    """Check `same`; a text that is not a number is reported with its spec here, where TensorFlow lets int() speak."""
    (our_type, our_text), (their_type, their_text) = (outcome(lambda cls=cls: call(cls)) for cls in SPECS)
    assert our_type == their_type
    if their_text.startswith(NO_NUMBER):
        their_text = f"raises {their_text.removeprefix(NO_NUMBER)} is not the number of a "
        our_text = our_text[: len(their_text)]
    assert our_text == their_text


# -- what a user may write --

STRINGS = """
    / /cpu:0 /gpu:1 /GPU:0 /CPU /cpu /cpu:* /device:CPU:0 /device:cpu:0 /device:GPU:* /device:GPU /device:*:*
    /device:*:0 /device:TPU:0 /device:XLA_CPU:0 /device:foo:2 /tpu:0 /foo:0 /job:ps /job:ps/task:0 /replica:2
    /job:x/replica:0/task:1/device:CPU:0 /job:x/cpu:0/task:1 /job:* /task:* /replica:* /job:ps/job:worker
    /cpu:0/gpu:0 /cpu:0/cpu:1 /cpu:0/device:GPU:1 cpu:0 cpu gpu:0 job:ps/task:0 device:CPU:0 /job: /job:a:b
    /task: /task:x /task:-1 /task:1.5 /device:CPU:x /device:CPU:0:1 /device /device: /cpu: /cpu:a /cpu:0:1
    //cpu:0 /cpu:0/ /job:ps//task:0 /JOB:ps /Job:ps /job:PS /Device:CPU:0 /Cpu:0 /xpu /xpu:0 /job:a-b /task:01
    junk /job:ps/junk /task /ps:0 /custom:0 /epu:1 : /: :: /job::a /cpu:+1 /task:1_0 /task:3/task:4
""".split()


@pytest.mark.parametrize("string", [None, "", "/ job:ps", "/job: ps", "/job:ps /task:0", 3, b"/cpu:0", *STRINGS])
def test_from_string(string):
    same_of_text(lambda cls: fields(cls.from_string(string)))
    same_of_text(lambda cls: (ours if cls is ours.DeviceSpec else theirs).canonical_name(string))


PARTS = st.sampled_from(["", "job", "task", "device", "cpu", "GPU", "TPU", ":", ":", "/", "/", "*", "0", "1", "ps"])


@given(st.lists(PARTS, max_size=9).map("".join))
@settings(max_examples=300)
def test_from_any_string(string):
    same_of_text(lambda cls: fields(cls.from_string(string)))


NUMBERS = [0, "1", "a", "*", 1.5, -1, True, None]
ARGUMENTS = [
    *[{"job": v} for v in ("ps", 1, "*", "", "a b", None)],
    *[{name: v} for name in ("replica", "task", "device_index") for v in NUMBERS],
    *[{"device_type": v} for v in ("cpu", "GPU", "Gpu", "tpu", 1, "foo", "", "*", None)],
    *[{"device_type": "CPU", "device_index": i} for i in (0, -1, None)],
    {"job": "ps", "replica": 0, "task": 1, "device_type": "gpu", "device_index": 2},
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
def test_constructor_and_properties(arguments):
    same(lambda cls: fields(cls(**arguments)))
    same(lambda cls: repr(cls(**arguments)))
    same(lambda cls: str(cls(**arguments)))
    same(lambda cls: fields(cls(job="a", task=3).replace(**arguments)))
    same(lambda cls: cls(**arguments) == cls())
    same(lambda cls: cls(**arguments) == cls(**arguments).to_string())
    same(lambda cls: hash(cls(**arguments)) == hash(cls(**arguments)))

    def assign(cls):
        spec = cls(job="x", task=9)
        for name, value in arguments.items():
            setattr(spec, name, value)
        return fields(spec)

    same(assign)


def test_no_other_attribute():
    for cls in SPECS:
        with pytest.raises(AttributeError):
            cls().foo = 1
        with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
            cls(foo=1)


PARTIAL = st.tuples(
    st.sampled_from(["", "/job:a", "/job:b"]),
    st.sampled_from(["", "/task:0", "/task:1"]),
    st.sampled_from(["", "/cpu:0", "/gpu:*", "/gpu:1", "/device:*:1"]),
).map("".join)


@given(PARTIAL, PARTIAL)
def test_merging(a, b):
    def merge_from(cls):
        spec = cls.from_string(a)
        assert spec.merge_from(cls.from_string(b)) is None
        return fields(spec)

    same(merge_from)
    same(lambda cls: fields(cls.from_string(a).make_merged_spec(cls.from_string(b))))
    same(lambda cls: fields(cls.from_string(a).parse_from_string(b)))

    def device_function(cls):
        merge_device = (ours if cls is ours.DeviceSpec else theirs).merge_device
        op = SimpleNamespace(device=b)
        return merge_device(a)(op).to_string(), merge_device(cls.from_string(a))(op).to_string()

    same(device_function)


# -- what the runtime reads in a node --


def placed(a, b=None, soft=False):
    """The placement by TensorFlow of an op that asks for `a`, colocated with one that asks for `b`."""
    with tf.Graph().as_default():
        x = tf.placeholder_with_default(1.0, [], name="x")
        y = tf.identity(x, name="y")
        x.op._set_device_from_string(a)
        if b is not None:
            y.op._set_device_from_string(b)
            value = tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"loc:@x"]))
            y.op._set_attr("_class", value)
        config = tf.ConfigProto(allow_soft_placement=soft, device_count={"CPU": 2})
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(config=config) as session:
            try:
                session.run(y)
            except tf.errors.InvalidArgumentError as error:
                return error.message
    return ""


LOCAL = [ours.full_name("localhost", 0, 0, "CPU", index) for index in (0, 1)]

IN_NODES = """
    / // /cpu:0 /CPU:1 /cpu:* /CPU /Cpu:0 /gpu:0 /GPU:* /tpu:0 cpu:0 /device:CPU /device:CPU:
    /device:CPU:* /device:CPU:01 /device:cpu:0 /device:*:1 /device:*:2 /device::0 /job:localhost
    /job:localhost/ /job:* /job: /job:a-b /job:_a /job:1a /job:A9_ /task:0 /task:00 /task:+1 /task:-1
    /task:* /task:1 /replica:0 /replica:* /device:CPU:0/job:localhost /task:1/task:0 junk
    /job:localhost/junk /job:localhost/replica:0/task:0/cpu:1
""".split()


@pytest.mark.parametrize("name", IN_NODES)
def test_parse_and_matches(name):
    said = placed(name)
    try:
        ours.parse(name)
    except ValueError as error:
        assert str(error) in said
    else:
        found = any(ours.matches(name, full) for full in LOCAL)
        assert found == ("but available devices are" not in said), said
        assert "Malformed" not in said


CLASHING = [("/job:localhost", "/job:b"), ("/task:0", "/task:1"), ("/replica:0", "/replica:1")]
CLASHING += [("/cpu:0", "/gpu:0"), ("/cpu:0", "/cpu:1"), ("/device:CPU:0", "/job:localhost/device:CPU:1")]


@pytest.mark.parametrize("a, b", CLASHING)
def test_colocation_of_contradicting_requests(a, b):
    with pytest.raises(ValueError) as caught:
        ours.merge(b, a)  # TensorFlow names the later node first
    assert str(caught.value) in placed(a, b)
    softly = placed(a, b, soft=True)
    if a.startswith(("/cpu", "/device")):
        assert softly == ""
        assert any(ours.matches(ours.merge(b, a, allow_soft_placement=True), full) for full in LOCAL)
    else:
        assert "Cannot" in softly
        with pytest.raises(ValueError, match="Cannot merge devices"):
            ours.merge(b, a, allow_soft_placement=True)


@pytest.mark.parametrize("a, b", [("/cpu:1", "/device:CPU:*"), ("/task:0", "/cpu:0"), ("/", "/job:*")])
def test_colocation_of_agreeing_requests(a, b):
    assert placed(a, b) == ""
    assert any(ours.matches(ours.merge(b, a), full) for full in LOCAL)
