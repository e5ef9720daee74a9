"""The journal of cards: who took memory, who was refused, who ended; from programs of this process and of others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.base.events import CardEvent
from dtflab.machine import cards, hosts, journal, registry
from dtflab.machine.journal import CardJournal

MIB = 1 << 20
CONTEXT = cards.CONTEXT_BYTES


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DTFLAB_REGISTRY", str(tmp_path / "registry"))
    yield tmp_path / "registry"
    hosts.simulate_gpus(None)
    registry.registry().leave()


def claim(program="", card=0):
    return hosts.visible_claims("localhost", program, None)[card]


def recorded():
    """Card, program, what, MiB before and after, asked and free."""
    return [
        (e.card, e.program, e.what, *(n // MIB for n in (e.before, e.held, e.asked, e.free))) for e in tf.smi().events
    ]


def test_takes_refusals_and_ends_are_told_in_order():
    hosts.simulate_gpus(2, memory="256MiB")
    a, b = claim("a"), claim("b")
    assert a.grab(100 * MIB - CONTEXT)
    assert not b.grab(200 * MIB - CONTEXT)
    assert a.grab(20 * MIB) and claim("b", 1).grab(50 * MIB - CONTEXT)
    hosts.end_program("a")
    assert recorded() == [
        (0, "a", "takes", 0, 100, 0, 0),
        (0, "b", "refused", 0, 0, 200, 256 - 100 - 11),
        (0, "a", "takes", 100, 120, 0, 0),
        (1, "b", "takes", 0, 50, 0, 0),
        (0, "a", "ends", 120, 0, 0, 0),
    ]
    events = tf.smi().events
    assert {event.pid for event in events} == {os.getpid()} and {event.host for event in events} == {"localhost"}
    assert [event.at for event in events] == sorted(event.at for event in events)


def test_a_listener_hears_what_the_journal_keeps():
    heard = []

    class Cards:
        on_card = staticmethod(heard.append)

    hosts.simulate_gpus(1, memory="256MiB")
    with tf.watch(Cards()):
        a, b = claim("a"), claim("b")
        assert a.grab(100 * MIB - CONTEXT) and not b.grab(200 * MIB - CONTEXT)
        hosts.end_program("a")
    assert [event.what for event in heard] == ["takes", "refused", "ends"] and heard == tf.smi().events


def test_a_refusal_is_told_once():
    hosts.simulate_gpus(1, memory="64MiB")
    a = claim("a")
    for _ in range(3):
        assert not a.grab(100 * MIB)
    assert [what for _, _, what, *_ in recorded()] == ["refused"]
    assert a.grab(MIB) and not a.grab(100 * MIB)
    assert [what for _, _, what, *_ in recorded()] == ["refused", "takes", "refused"]


def test_new_cards_have_no_past():
    hosts.simulate_gpus(1)
    assert claim("a").grab(MIB)
    hosts.simulate_gpus(1)
    assert recorded() == []


CHILD = """
import sys
from dtflab.machine import hosts
claim = hosts.visible_claims("localhost", "", None)[0]
print(claim.grab(int(sys.argv[1]) << 20), flush=True)
sys.stdin.read()
"""


def child(mebibytes, folder):
    env = {**os.environ, "DTFLAB_REGISTRY": str(folder), "DTFLAB_GPUS": "1", "DTFLAB_GPU_MEMORY": "256MiB"}
    command = [sys.executable, "-c", CHILD, str(mebibytes)]
    process = subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return process, process.stdout.readline() == "True\n"


def test_processes_that_are_gone_are_told_of(own_folder):
    """One ends as it should, one is refused and ends, one is killed."""
    hosts.simulate_gpus(1, memory="256MiB")
    children = []
    try:
        for mebibytes, granted in ((100, True), (200, False), (50, True)):
            process, answer = child(mebibytes, own_folder)
            children.append(process)
            assert answer is granted
        children[1].communicate("", timeout=60)
        children[0].communicate("", timeout=60)
        children[2].kill()
        children[2].communicate(timeout=60)
        first, second, third = (process.pid for process in children)
        assert [(e.pid, e.what) for e in tf.smi().events] == [
            (first, "takes"), (second, "refused"), (third, "takes"), (first, "ends"), (third, "ends"),
        ]  # fmt: skip
    finally:
        for process in children:
            process.kill()
            process.communicate(timeout=60)


def event(number, host="h"):
    return CardEvent(float(number), host, 0, 1, "p", "takes", 0, number)


def test_a_long_journal_keeps_its_younger_half(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_MOST_BYTES", 1000)
    own = CardJournal(tmp_path / "journal")
    for number in range(100):
        own.on_card(event(number))
    kept = own.read()
    assert kept[-1] == event(99) and 5 < len(kept) < 30
    assert kept == [event(number) for number in range(100 - len(kept), 100)]


def test_a_host_is_forgotten_and_the_others_stay(tmp_path):
    own = CardJournal(tmp_path / "journal")
    assert own.read() == []
    for one in (event(1), event(2, "other"), event(3)):
        own.on_card(one)
    own.forget("h")
    assert own.read() == [event(2, "other")]


@pytest.mark.parametrize("line", ["", "[", "{}", "[1, 2]", '[1.0, "h", 0, 1, "p", "takes", 0, -1, 0, 0]', "\udcff"])
def test_what_is_no_event_is_left_out(tmp_path, line):
    own = CardJournal(tmp_path / "journal")
    own.on_card(event(1))
    with (tmp_path / "journal").open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")
    own.on_card(event(2))
    assert own.read() == [event(1), event(2)]
