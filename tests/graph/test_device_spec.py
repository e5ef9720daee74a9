from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from dtflab.graph import device_spec
from dtflab.graph.device_spec import DeviceName, DeviceSpec, canonical_name, merge_device
from dtflab.graph.graph import Graph
from dtflab.graph.scopes import device

PS = "/job:ps/replica:0/task:1/device:GPU:0"

few = st.none() | st.integers(0, 2)
jobs = st.none() | st.sampled_from(["ps", "worker"])
types = st.none() | st.sampled_from(["CPU", "GPU"])
names = st.builds(DeviceName, jobs, few, few, types, few)


@given(names)
def test_text_both_ways(name):
    assert device_spec.parse(str(name)) == name
    if name.type is not None:
        assert DeviceSpec.from_string(str(name)).to_string() == str(name)


@given(names, names)
def test_merging_is_asking_for_both(a, b):
    full = [DeviceName(job, 0, task, kind, 0) for job in ("ps", "worker") for task in (0, 1) for kind in ("CPU", "GPU")]
    both = [str(f) for f in full if device_spec.matches(str(a), str(f)) and device_spec.matches(str(b), str(f))]
    try:
        merged = device_spec.merge(str(a), str(b))
    except ValueError:
        assert not both
    else:
        assert [str(f) for f in full if device_spec.matches(merged, str(f))] == both


def test_soft_placement_gives_up_type_and_index_only():
    assert device_spec.merge("/job:ps/gpu:0", "/cpu:1", allow_soft_placement=True) == "/job:ps"
    assert device_spec.merge("/gpu:0", "/gpu:1", allow_soft_placement=True) == "/device:GPU:*"
    with pytest.raises(ValueError, match="incompatible tasks: '/task:0' and '/task:1'"):
        device_spec.merge("/task:0", "/task:1", allow_soft_placement=True)


@pytest.mark.parametrize("request_", ["", "/", "/job:ps", "/gpu:*", "/GPU:0", "/device:*:0", "/task:1/device:GPU", PS])
def test_matches(request_):
    assert device_spec.matches(request_, PS)


@pytest.mark.parametrize("request_", ["/job:PS", "/task:0", "/cpu:*", "/device:*:1", "/device:gpu:0"])
def test_does_not_match(request_):
    assert not device_spec.matches(request_, PS)


@pytest.mark.parametrize(
    "name", ["cpu:0", "//", "/job:ps/", "/CPU", "/job:a-b", "/task:-1", "/task:١", "/xpu:0", PS + "\n"]
)
def test_nodes_are_read_strictly(name):
    with pytest.raises(ValueError, match="Malformed device specification"):
        device_spec.parse(name)


def test_full_names():
    assert device_spec.full_name("ps", 0, 1, "GPU", 0) == PS
    assert device_spec.task_name(PS) == "/job:ps/replica:0/task:1"


def test_users_are_read_kindly():
    assert canonical_name("cpu:0") == canonical_name("//CPU:0/") == "/device:CPU:0"
    assert canonical_name(None) == ""
    with pytest.raises(ValueError, match="Unknown attribute 'xpu'") as caught:
        canonical_name("/xpu:0")
    assert caught.value.__notes__ == ["Write a device like /job:worker/task:0/gpu:0. Did you mean gpu?"]


@pytest.mark.parametrize(
    ("spec", "text", "field", "others"),
    [
        ("/job:ps/gpu:x", "x", "device", "* for any"),
        ("/device:GPU:", "", "device", "* for any"),
        ("/job:ps/task:one/cpu:0", "one", "task", "leave the task out"),
        ("/task:*", "*", "task", "leave the task out"),
        ("/replica:1.5", "1.5", "replica", "leave the replica out"),
    ],
)
def test_what_is_no_number_is_told_with_its_spec(spec, text, field, others):
    with pytest.raises(ValueError) as caught, Graph().as_default(), device(spec):
        pass
    expected = f"'{text}' is not the number of a {field}, while parsing the device spec: '{spec}'."
    assert str(caught.value) == f"{expected} Write a whole number, or {others}."


def test_a_spec_can_be_changed():
    spec = DeviceSpec(job="ps")
    spec.task = "3"
    spec.merge_from(DeviceSpec(device_type="gpu"))
    assert spec.to_string() == "/job:ps/task:3/device:GPU:*"
    assert spec.replace(task=None).to_string() == "/job:ps/device:GPU:*"
    assert spec.parse_from_string("/cpu:0") is spec
    assert spec == DeviceSpec(device_type="CPU", device_index=0)


def test_the_inner_request_wins():
    outer = merge_device("/job:ps/gpu:0")
    assert outer(SimpleNamespace(device="/task:1/cpu:*")).to_string() == "/job:ps/task:1/device:CPU:0"
