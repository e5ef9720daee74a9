"""Which task sees which card, and which program holds how much of it, in one process."""

from __future__ import annotations

import gc
import os

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.machine import cards, hosts
from dtflab.machine.visible import cuda_visible, listed

GIB = 1 << 30


def claims(shown=None, host="localhost", program="a program", **config):
    return hosts.visible_claims(host, program, shown, tf.ConfigProto(**config))


def indices(found):
    return [claim.card.index for claim in found]


# ---- visible devices ----


@pytest.mark.parametrize(
    ("text", "order"),
    [
        (None, [0, 1, 2, 3]),
        ("0,1", [0, 1]),
        ("3,2", [3, 2]),
        (" 2 , 0 ", [2, 0]),
        ("", []),
        ("-1", []),
        ("0,-1,1", [0]),
        ("1,4,2", [1]),
        ("1,x,2", [1]),
        ("NoDevFiles", []),
        ("1,", [1]),
        ("1,1", []),
    ],
)
def test_cuda_hides_a_bad_entry_and_what_follows(text, order):
    assert cuda_visible(text, 4) == order


@pytest.mark.parametrize(("text", "order"), [("", [0, 1, 2]), ("2,0", [2, 0]), ("1", [1]), (" 1, 2", [1, 2])])
def test_tensorflows_list_orders_what_cuda_shows(text, order):
    assert listed(text, 3) == order


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,abc", "Could not parse entry in 'visible_device_list': 'abc'. visible_device_list = 0,abc"),
        ("0,", "Could not parse entry in 'visible_device_list': ''. visible_device_list = 0,"),
        ("100", "'visible_device_list' listed an invalid GPU id '100' but visible device count is 3"),
        ("-1", "'visible_device_list' listed an invalid GPU id '-1' but visible device count is 3"),
        ("1,1", "visible_device_list contained a duplicate entry: 1,1"),
    ],
)
def test_tensorflow_refuses_a_bad_list(text, message):
    with pytest.raises(errors.InvalidArgumentError) as caught:
        listed(text, 3)
    assert caught.value.message == message


def test_three_sieves_one_after_the_other():
    hosts.simulate_gpus(4)
    assert indices(claims()) == [0, 1, 2, 3]
    assert indices(claims("3,2")) == [3, 2]
    assert indices(claims("3,2", device_count={"GPU": 1})) == [3]
    options = tf.GPUOptions(visible_device_list="1,0")
    assert indices(claims("3,2,1", gpu_options=options)) == [2, 3]
    assert indices(claims("3,2,1", gpu_options=options, device_count={"GPU": 1})) == [2]
    assert indices(claims(device_count={"GPU": 9})) == [0, 1, 2, 3], "an upper bound"
    assert indices(claims(device_count={"GPU": 0})) == indices(claims(device_count={"GPU": -1})) == []
    assert indices(claims("")) == []


def test_a_card_is_described_by_the_number_that_cuda_gives_it():
    hosts.simulate_gpus(4)
    (claim,) = claims("3,2", gpu_options=tf.GPUOptions(visible_device_list="1"))
    assert claim.description == "device: 1, name: GRID K520, pci bus id: 0000:00:05.0, compute capability: 3.0"


def test_a_list_of_devices_is_not_looked_at_on_a_host_without_any():
    assert claims(gpu_options=tf.GPUOptions(visible_device_list="7")) == []


def test_a_card_that_is_too_old_is_ignored_and_that_is_said_once(capfd):
    hosts.simulate_gpus(1, "C2075")
    assert claims() == claims() == []
    assert capfd.readouterr().err == (
        "Ignoring visible gpu device (device: 0, name: Tesla C2075, pci bus id: 0000:00:03.0, compute capability: 2.0) "
        "with Cuda compute capability 2.0. The minimum required Cuda capability is 3.0.\n"
    )


# ---- which cards a host has ----


def test_without_a_request_there_are_none(monkeypatch):
    assert claims() == []
    monkeypatch.delenv("DTFLAB_GPUS")
    monkeypatch.setattr(hosts, "_real_cards", list)
    assert claims() == []


def test_device_count_simulates_where_there_are_none():
    first = claims(device_count={"GPU": 2})
    assert [claim.card.model.name for claim in first] == ["GRID K520"] * 2
    assert claims() == [], "only who asks sees them"
    more = claims(device_count={"GPU": 3})
    assert more[:2] == first and len(more) == 3, "the same cards, and one more"
    assert claims("", device_count={"GPU": 2}) == []
    hosts.simulate_gpus(1)
    assert len(claims(device_count={"GPU": 2})) == 1, "now there are some: a bound"


def test_the_environment_simulates(monkeypatch):
    monkeypatch.setenv("DTFLAB_GPUS", "2")
    assert len(claims()) == 2
    monkeypatch.setenv("DTFLAB_GPU", "K40")
    monkeypatch.setenv("DTFLAB_GPU_MEMORY", "4GiB")
    assert [(c.card.model.name, c.card.memory_bytes) for c in claims()] == [("Tesla K40m", 4 * GIB)] * 2
    assert {c.card.model.name for c in claims(device_count={"GPU": 1})} == {"Tesla K40m"}
    hosts.simulate_gpus(1, "P100")
    assert [c.card.model.name for c in claims()] == ["Tesla P100-PCIE-16GB"], "a call counts more"
    assert claims()[0].card.memory_bytes == 4 * GIB, "what it does not say, the environment says"
    hosts.simulate_gpus(0)
    assert claims() == []
    hosts.simulate_gpus(None)
    assert len(claims()) == 2


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"DTFLAB_GPUS": "two"}, "DTFLAB_GPUS='two' is not a number of GPUs"),
        ({"DTFLAB_GPUS": "-1"}, "DTFLAB_GPUS='-1' is not a number of GPUs"),
        ({"DTFLAB_GPUS": "1", "DTFLAB_GPU": "K9"}, "No GPU model 'K9'"),
        ({"DTFLAB_GPUS": "1", "DTFLAB_GPU_MEMORY": "lots"}, "'lots' is not an amount of memory"),
        ({"DTFLAB_GPUS": "1", "DTFLAB_GPU_MEMORY": "1MiB"}, "A GPU needs 64 MiB or more, not '1MiB'"),
    ],
)
def test_a_bad_environment_says_what_is_wrong(monkeypatch, variables, message):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        claims()


@pytest.mark.parametrize("count", [-1, 1.5, "2", True])
def test_a_bad_count_is_refused(count):
    with pytest.raises(ValueError, match="number of GPUs must be 0 or more"):
        hosts.simulate_gpus(count)


def test_real_cards_are_used_if_nothing_is_asked_for(monkeypatch):
    real = hosts.Card("localhost", 0, cards.model("H100"), 80 * GIB, "0000:05:00.0", real=True)
    monkeypatch.setattr(hosts, "_real_cards", lambda: [real])
    assert claims() == [], "DTFLAB_GPUS=0 wants none at all"
    monkeypatch.delenv("DTFLAB_GPUS")
    assert [claim.card for claim in claims()] == [real]
    own = hosts.visible_claims("localhost", hosts.THIS_PROCESS, "3", None)
    assert [claim.card for claim in own] == [real], "CUDA has renumbered already"
    hosts.simulate_gpus(2)
    assert [claim.card.real for claim in claims()] == [False, False]


def test_this_host_has_the_name_that_the_environment_gives(monkeypatch):
    assert hosts.this_home().host == hosts.host_of("127.0.0.1:80") == hosts.host_of("[::1]:80") == "localhost"
    assert hosts.host_of("machine-a.example.com:2222") == "machine-a.example.com"
    monkeypatch.setenv("DTFLAB_HOST", "machine-b")
    assert hosts.this_home().host == hosts.host_of("localhost:80") == "machine-b"


def test_a_ps_of_a_program_sees_nothing_unless_it_is_told_to(monkeypatch):
    assert hosts.this_home("a:1", "ps").visible == "" and hosts.this_home("a:1", "worker").visible is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert hosts.this_home("a:1", "ps").visible == hosts.this_home("a:1", "worker").visible == "1"


# ---- memory ----


def test_the_first_program_takes_all_and_the_second_gets_the_books_line(capfd):
    hosts.simulate_gpus(1)
    (first,), (second,) = claims(program="first"), claims(program="second")
    all_of_it = cards.grab_all_limit(first.card.memory_bytes)
    assert first.grab(all_of_it) and not second.grab(all_of_it)
    assert capfd.readouterr().err == (
        "failed to allocate 3.66G (3928915968 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\n"
    )
    assert second.grabbed == second.held == 0
    assert second.other_holders() == "Of card 0 of localhost, first holds 3785 MiB." and first.other_holders() == ""
    hosts.end_program("first")
    assert first.grabbed == 0 and second.grab(all_of_it)


def test_two_programs_at_0_4_fit_and_a_third_does_not(capfd):
    hosts.simulate_gpus(1)
    share = int(0.4 * cards.DEFAULT.memory_bytes) // 256 * 256
    found = [claims(program=name)[0] for name in "abc"]
    assert [claim.grab(share) for claim in found] == [True, True, False]
    assert "failed to allocate 1.60G (1717908224 bytes)" in capfd.readouterr().err
    hosts.end_program("b")
    assert found[2].grab(share)


def test_a_card_can_be_taken_to_the_last_byte():
    hosts.simulate_gpus(1, memory="1GiB")
    (claim,), (other,) = claims(), claims(program="other")
    free = hosts.free_bytes(claim.card)
    assert free == GIB - cards.IDLE_BYTES
    assert not claim.grab(free - cards.CONTEXT_BYTES + 1)
    assert claim.grab(free - cards.CONTEXT_BYTES) and hosts.free_bytes(claim.card) == 0
    assert not claim.grab(1) and not other.grab(1)


def test_sessions_of_a_program_share_its_claims_and_cards_are_apart():
    hosts.simulate_gpus(2)
    first, again = claims(), claims("1")
    assert again == [first[1]]
    assert first[0].grab(GIB) and hosts.free_bytes(first[1].card) == cards.DEFAULT.memory_bytes - cards.IDLE_BYTES
    other_host = claims(host="machine-b")
    assert hosts.free_bytes(other_host[0].card) == cards.DEFAULT.memory_bytes - cards.IDLE_BYTES


def test_new_cards_are_free_and_old_claims_keep_theirs():
    hosts.simulate_gpus(1, memory="1GiB")
    (old,) = claims()
    assert old.grab(GIB // 2)
    hosts.simulate_gpus(1, memory="1GiB")
    (new,) = claims()
    assert new is not old and new.grab(GIB // 2), "they are other cards"
    assert old.grabbed == GIB // 2 and not old.grab(GIB // 2), "which is as full as it was"
    old.busy(1.0)
    hosts.end_program("a program")
    assert old.grabbed == new.grabbed == 0


def test_a_claim_of_nobody_holds_nothing():
    hosts.simulate_gpus(1)
    (claim,) = claims()
    card = claim.card
    assert claim.grab(GIB)
    hosts.simulate_gpus(None)
    del claim
    gc.collect()
    assert hosts.free_bytes(card) == card.memory_bytes - cards.IDLE_BYTES


# ---- discovery ----


def test_discovery_reads_as_in_the_book():
    assert tf.discovery() == ""
    hosts.simulate_gpus(2)
    assert tf.discovery(tf.ConfigProto(device_count={"GPU": 1})).splitlines() == [
        "Found device 0 with properties:",
        "name: GRID K520",
        "major: 3 minor: 0 memoryClockRate (GHz) 0.797",
        "pciBusID 0000:00:03.0",
        "Total memory: 4.00GiB",
        "Free memory: 3.95GiB",
        "DMA: 0",
        "0:   Y",
        "Creating TensorFlow device (/gpu:0) -> (device: 0, name: GRID K520, pci bus id: 0000:00:03.0)",
    ]
    both = tf.discovery().splitlines()
    assert both[12:15] == ["DMA: 0 1", "0:   Y Y", "1:   Y Y"] and "0000:00:04.0" in both[-1]


def test_free_memory_is_what_is_left_now():
    hosts.simulate_gpus(1)
    (claim,) = claims(program=hosts.THIS_PROCESS)
    assert claim.grab(GIB)
    assert "Free memory: 2.95GiB" in tf.discovery()


def open_session(**config):
    with tf.Session(config=tf.ConfigProto(**config)) as sess:
        sess.list_devices()


def test_lines_come_when_they_are_asked_for(capfd, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    hosts.simulate_gpus(1)
    line = "Creating TensorFlow device (/gpu:0) -> (device: 0, name: GRID K520, pci bus id: 0000:00:03.0)\n"
    open_session()
    assert capfd.readouterr().err == ""
    open_session(log_device_placement=True)
    assert capfd.readouterr().err == line
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    open_session()
    text = capfd.readouterr().err
    assert text.startswith("Found device 0 with properties:\nname: GRID K520\n") and text.endswith(line)


def test_a_size_that_the_card_refuses_is_told_once(capfd):
    hosts.simulate_gpus(1, memory="128MiB")
    (claim,) = claims()
    assert not any(claim.grab(nbytes) for nbytes in (1 * GIB, 2 * GIB, 1 * GIB, 2 * GIB))
    assert capfd.readouterr().err.count("CUDA_ERROR_OUT_OF_MEMORY") == 2
    assert claim.grab(16 << 20) and not claim.grab(1 * GIB)
    assert capfd.readouterr().err.count("CUDA_ERROR_OUT_OF_MEMORY") == 1


def test_a_notebook_is_a_host_of_its_own_unless_one_is_named(monkeypatch):
    monkeypatch.setenv("DTFLAB_HOST", "lab-7")
    monkeypatch.setattr(hosts, "in_notebook", lambda: True)
    hosts.simulate_gpus(1)
    assert hosts.this_host() == "lab-7"
    monkeypatch.delenv("DTFLAB_HOST")
    hosts.simulate_gpus(1)
    assert hosts.this_host() == os.environ["DTFLAB_HOST"] == f"notebook-{os.getpid()}"


def test_what_programs_ask_about_devices(monkeypatch):
    from dtflab.python.client import device_lib

    assert not tf.test.is_gpu_available() and tf.test.gpu_device_name() == ""
    hosts.simulate_gpus(2)
    _, first, second = device_lib.list_local_devices()
    assert (first.name, first.device_type, first.memory_limit) == ("/device:GPU:0", "GPU", 3928915968)
    assert second.physical_device_desc == (
        "device: 1, name: GRID K520, pci bus id: 0000:00:04.0, compute capability: 3.0"
    )
    assert first.locality.bus_id == 1
    assert tf.test.is_gpu_available() and tf.test.gpu_device_name() == "/device:GPU:0"
    assert tf.test.is_gpu_available(min_cuda_compute_capability=(3, 0))
    assert not tf.test.is_gpu_available(True, (3, 5))
    with tf.Session() as sess:
        assert [device.device_type for device in sess.list_devices()] == ["CPU", "GPU", "GPU"]
