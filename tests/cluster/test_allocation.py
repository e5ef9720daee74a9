"""Who gets which GPU of a cluster: `dtflab.cluster.allocation` without a cluster, then through one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dtflab.cluster.allocation import Request, ResourceManager
from dtflab.graph import errors
from dtflab.machine.clock import REAL

MiB, GiB = 1 << 20, 1 << 30
A0, A1, B0 = (f"/job:worker/replica:0/task:{task}/device:GPU:{i}" for task, i in ((0, 0), (0, 1), (1, 0)))


def manager(**capacities: int) -> ResourceManager:
    return ResourceManager(lambda: capacities or {A0: 4 * GiB, A1: 4 * GiB, B0: 4 * GiB}, REAL)


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
        with ask(books, memory=memory, holder=holder, wait=True, timeout=30):
            got.append(holder)

    def in_line(memory: int, holder: str) -> threading.Thread:
        thread, before = threading.Thread(target=wait_for, args=(memory, holder)), len(books.waiting())
        thread.start()
        while len(books.waiting()) == before and thread.is_alive():
            pass
        return thread

    threads = [in_line(4 * GiB, "large"), in_line(1 * GiB, "small")]
    assert books.waiting() == ["large waits for 1 GPU with 4096 MiB each", "small waits for 1 GPU with 1024 MiB each"]
    assert got == []  # 1 GiB is free, but «small» came later
    first.release()
    for thread in threads:
        thread.join(30)
    assert got == ["large", "small"]
    assert books.promises() == []


def test_who_waits_too_long_leaves_the_line():
    books = manager(**{A0: 4 * GiB})
    ask(books)
    with pytest.raises(errors.DeadlineExceededError, match="Within 0.01 s"):
        ask(books, wait=True, timeout=0.01)
    assert books.waiting() == []


def test_releasing_twice_frees_once():
    books = manager(**{A0: 4 * GiB})
    with ask(books, memory=1 * GiB) as one:
        two = ask(books, memory=3 * GiB)
        one.release()
    assert [(device, size) for device, _, size in books.promises()] == [(A0, 3 * GiB)]
    assert "released" in repr(one) and "released" not in repr(two)
