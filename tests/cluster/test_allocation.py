"""Which request gets which GPU of a cluster: `dtflab.cluster.allocation` without a cluster, then through one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.timeouts import timeouts
from dtflab.cluster.allocation import Capacity, Request, ResourceManager
from dtflab.machine.clock import REAL

MiB, GiB = 1 << 20, 1 << 30
A0, A1, B0 = (f"/job:worker/replica:0/task:{task}/device:GPU:{i}" for task, i in ((0, 0), (0, 1), (1, 0)))


def manager(**capacities: int) -> ResourceManager:
    sizes = capacities or {A0: 4 * GiB, A1: 4 * GiB, B0: 4 * GiB}
    return ResourceManager(lambda: {name: Capacity(size, name, size) for name, size in sizes.items()}, REAL)


def ask(books: ResourceManager, gpus: int = 1, memory: int | None = None, where: str = "", **how: Any) -> Any:
    holder = how.pop("holder", "somebody")
    return books.allocate(Request(gpus, memory, where, holder), how.get("wait", False), how.get("timeout"))


def test_whole_devices_are_handed_out_once_each():
    books = manager()
    assert [ask(books).device for _ in range(3)] == [A0, A1, B0]
    with pytest.raises(errors.ResourceExhaustedError, match="can't give now 1 GPU with a whole device each"):
        ask(books)


def test_the_fullest_device_that_fits_is_taken():
    books = manager()
    ask(books, memory=3 * GiB, where="/job:worker/task:1")
    assert ask(books, memory=1 * GiB).device == B0  # to the last byte
    assert ask(books, memory=1 * GiB).device == A0


def test_several_gpus_are_on_one_task_if_they_can_be():
    books = manager()
    ask(books, memory=3 * GiB, where="/job:worker/task:1")
    assert ask(books, gpus=2, memory=1 * GiB).devices == [A0, A1]
    assert sorted(ask(books, gpus=3, memory=1 * GiB).devices) == [A0, A1, B0]


def test_what_can_never_be_had_is_refused_even_to_those_who_would_wait():
    with pytest.raises(errors.ResourceExhaustedError, match=r"can never give 1 GPU with 5120 MiB each \(somebody\)"):
        ask(manager(), memory=5 * GiB, wait=True)
    with pytest.raises(errors.ResourceExhaustedError, match="It has no GPU"):
        ask(ResourceManager(dict, REAL), wait=True)


def test_a_refusal_says_who_holds_what():
    books = manager(**{A0: 4 * GiB})
    ask(books, memory=3 * GiB, holder="trial_7")
    with pytest.raises(errors.ResourceExhaustedError, match="1024 of 4096 MiB free; trial_7 holds 3072 MiB"):
        ask(books, memory=2 * GiB)


def test_those_who_wait_are_served_in_order():
    books = manager(**{A0: 4 * GiB})
    first = ask(books, memory=3 * GiB)
    got: list[str] = []

    def wait_for(memory: int, holder: str) -> None:
        with ask(books, memory=memory, holder=holder, wait=True, timeout=60):
            got.append(holder)

    def in_line(memory: int, holder: str) -> threading.Thread:
        thread, before = threading.Thread(target=wait_for, args=(memory, holder)), len(books.waiting())
        thread.start()
        while len(books.waiting()) == before and thread.is_alive():
            pass
        return thread

    threads = [in_line(4 * GiB, "large"), in_line(1 * GiB, "small")]
    assert books.waiting() == ["large waits for 1 GPU with 4096 MiB each", "small waits for 1 GPU with 1024 MiB each"]
    assert got == []  # 1 GiB is free, but "small" came later
    first.release()
    for thread in threads:
        thread.join(60)
    assert got == ["large", "small"]
    assert books.promises() == []


def test_who_waits_too_long_leaves_the_line():
    books = manager(**{A0: 4 * GiB})
    ask(books)
    with pytest.raises(errors.DeadlineExceededError, match=r"Within 0\.01 s"):
        ask(books, wait=True, timeout=0.01)
    assert books.waiting() == []


def test_who_waits_for_long_is_told_for_what(monkeypatch, capsys):
    monkeypatch.setattr(timeouts, "notice", 0.01)
    books = manager(**{A0: 4 * GiB})
    ask(books, holder="trial_7")
    with pytest.raises(errors.DeadlineExceededError):
        ask(books, wait=True, timeout=0.02)
    assert "trial_7 holds 4096 MiB" in capsys.readouterr().err


def test_releasing_twice_frees_once():
    books = manager(**{A0: 4 * GiB})
    with ask(books, memory=1 * GiB) as one:
        two = ask(books, memory=3 * GiB)
        one.release()
    assert [(device, size) for device, _, size in books.promises()] == [(A0, 3 * GiB)]
    assert "released" in repr(one) and "released" not in repr(two)


def test_who_waits_for_what_no_longer_is_there_is_told():
    there = {A0: Capacity(4 * GiB, "card", 4 * GiB)}
    books = ResourceManager(lambda: there, REAL)
    ask(books)
    messages: list[str] = []

    def wait() -> None:
        with pytest.raises(errors.ResourceExhaustedError, match="can no longer give") as info:
            ask(books, wait=True, timeout=60)
        messages.append(str(info.value))

    thread = threading.Thread(target=wait)
    thread.start()
    while not books.waiting():
        pass
    there.clear()
    books.look_again()
    thread.join(60)
    assert len(messages) == 1 and books.waiting() == [] and books.allocations() == []


# ---- through a cluster ----


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)  # tests/conftest.py hides real cards from TensorFlow
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=2, gpus=1, gpu_memory="4GiB") as cluster:
        yield cluster


def test_what_is_allocated_is_a_device_for_tf_device(cluster):
    with cluster.allocate(gpus=1, memory="1GiB", on="/job:worker/task:1") as gpu, tf.device(gpu):
        x = tf.constant([1.0, 2.0]) * 3.0
    assert x.device == "/job:worker/replica:0/task:1/device:GPU:0"
    with tf.Session(cluster.target) as session:
        assert session.run(x).tolist() == [3.0, 6.0]


def test_several_are_a_device_function_that_spreads_variables_and_keeps_pins(cluster):
    with cluster.allocate(gpus=2) as gpus, tf.device(gpus):
        one, large, small, tiny = (tf.Variable(tf.zeros([size])) for size in (100, 400, 200, 50))
        product = small.initialized_value() * 2.0
        with tf.device("/job:ps/task:0/cpu:0"):
            pinned = tf.constant(0.0)
    first, second = gpus.devices
    assert [v.device for v in (one, large, small, tiny)] == [first, second, first, first]
    assert product.device == small.device == small.initializer.device
    assert pinned.device == "/job:ps/task:0/device:CPU:0"


def test_what_was_released_is_no_device_any_more(cluster):
    gpu = cluster.allocate()
    gpu.release()
    refused = pytest.raises(
        errors.FailedPreconditionError, match="released> is not a device for 'Const': allocate again"
    )
    with refused, tf.device(gpu):
        tf.constant(1.0)


def test_who_wants_other_cards_passes_those_who_wait(cluster):
    held = cluster.allocate(on="/job:worker/task:1")
    waiting = threading.Thread(
        target=lambda: cluster.allocate(on="/job:worker/task:1", wait=True, timeout=30, holder="patient").release()
    )
    waiting.start()
    while not cluster.waits():
        pass
    with cluster.allocate(on="/job:worker/task:0") as other:
        assert other.device == "/job:worker/replica:0/task:0/device:GPU:0"
    with pytest.raises(errors.ResourceExhaustedError, match="patient waits for"):
        cluster.allocate(on="/job:worker/task:1")
    held.release()
    waiting.join(60)


def test_a_ps_has_no_card_to_give(cluster):
    with pytest.raises(errors.ResourceExhaustedError, match="can never give 1 GPU with 1024 MiB each on /job:ps"):
        cluster.allocate(memory="1GiB", on="/job:ps")


def test_it_ends_with_its_container(cluster):
    one = cluster.allocate(gpus=2, container="trial_1")
    assert one.holder == "trial_1"
    with pytest.raises(errors.ResourceExhaustedError, match="trial_1 holds"):
        cluster.allocate()
    tf.Session.reset(cluster.target, ["trial_1"])
    with cluster.allocate(gpus=2):
        assert "released" in repr(one)


def test_all_that_a_container_has_ends_with_it_also_what_looks_the_same(cluster):
    both = [cluster.allocate(memory="1GiB", container="trial_1") for _ in range(2)]
    tf.Session.reset(cluster.target, ["trial_1"])
    assert ["released" in repr(one) for one in both] == [True, True] and cluster.allocations() == []


def test_tasks_on_one_host_are_not_promised_the_same_card_twice(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with tf.Cluster({"worker": ["allocated-a:1", "allocated-a:2"]}, gpus=1, gpu_memory="4GiB") as cluster:
        with cluster.allocate(memory="3GiB", on="/job:worker/task:0", holder="first"):
            with pytest.raises(errors.ResourceExhaustedError, match=r"first holds 3072 MiB \(as /job:worker/.*task:0"):
                cluster.allocate(memory="1GiB", on="/job:worker/task:1")
            assert len(cluster.allocations()) == 1
        with pytest.raises(errors.ResourceExhaustedError, match="can never give 2 GPUs"):
            cluster.allocate(gpus=2)


@pytest.mark.parametrize("wrong", [{"gpus": 0}, {"gpus": 1.5}, {"gpus": "1"}, {"memory": 0}, {"timeout": 1}])
def test_what_makes_no_sense_is_said_to_be_so(cluster, wrong):
    with pytest.raises(ValueError, match=r"allocate\("):
        cluster.allocate(**wrong)


def test_gpus_of_a_stopped_task_are_gone(cluster):
    cluster.kill("worker", 1)
    assert cluster.allocate(gpus=1).device == "/job:worker/replica:0/task:0/device:GPU:0"
    with pytest.raises(errors.ResourceExhaustedError, match="can never give"):
        cluster.allocate(gpus=2)


def test_tasks_in_processes_have_gpus_to_give_but_no_containers(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with tf.Cluster(worker=1, gpus=2, gpu_memory="1GiB", engine="process") as cluster:
        with cluster.allocate(gpus=2) as gpus:
            assert len(gpus.devices) == 2
        with pytest.raises(ValueError, match="is in another process"):
            cluster.allocate(container="trial")
        with cluster.allocate(gpus=2):  # nothing was lost by that
            pass
