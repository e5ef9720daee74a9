"""Processes on one simulated host share its cards. Real processes, ended in every way."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import tempfile

import pytest

import dtflab as tf
from dtflab.machine import cards, hosts, registry
from dtflab.machine.file_lock import FileLock

GIB = 1 << 30
ENOUGH = 60  # seconds: only a hanging test waits that long

# What another process does: one line in, one line out.
PROGRAM = """
import sys
from dtflab.machine import hosts
host = "{host}"
claims = []
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}", flush=True)
"""


class Program:
    """Another process, which evaluates a test's expressions."""

    def __init__(self, **environment):
        env = {**os.environ, **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(host="localhost")], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def says(self, expression):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def grab(self, nbytes, card=0):
        return self.says(f"hosts.visible_claims(host, '', None)[{card}].grab({nbytes})") == "True"

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(ENOUGH) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(ENOUGH)


@pytest.fixture
def program():
    made = []

    def start(**environment):
        made.append(Program(DTFLAB_GPUS="2", **environment))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait(ENOUGH)
        each.process.stdin.close()
        each.process.stdout.close()


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DTFLAB_REGISTRY", str(tmp_path / "registry"))
    yield tmp_path / "registry"
    hosts.simulate_gpus(None)
    registry.registry().leave()


def mine(card=0):
    return hosts.visible_claims("localhost", "", None)[card]


ALL = cards.grab_all_limit(cards.DEFAULT.memory_bytes)


def test_two_processes_share_a_card_and_a_killed_one_frees_it_at_once(program):
    other = program()
    hosts.simulate_gpus(2)
    assert other.grab(ALL)
    assert not mine(0).grab(ALL) and mine(1).grab(ALL)
    assert not other.grab(ALL, card=1)
    assert f"process {other.process.pid} (python" in mine(0).other_holders()
    other.kill()
    assert mine(0).grab(ALL) and mine(0).other_holders() == ""


def test_an_ended_process_leaves_no_files(program, own_folder):
    other = program()
    assert other.grab(GIB)
    shared = {"journal", "registry.lock"}
    assert sorted(path.suffix for path in own_folder.iterdir() if path.name not in shared) == [".json", ".live"]
    other.end()
    assert {path.name for path in own_folder.iterdir()} == shared
    other = program()
    assert other.grab(GIB)
    other.kill()
    assert len(list(own_folder.iterdir())) == 4, "nobody could clean up"
    assert registry.registry().others() == [] and {path.name for path in own_folder.iterdir()} == shared


def test_the_book_two_programs_at_0_4_fit_and_a_third_does_not(program):
    share = int(0.4 * cards.DEFAULT.memory_bytes)
    three = [program() for _ in range(3)]
    assert [each.grab(share) for each in three] == [True, True, False]
    three[0].kill()
    assert three[2].grab(share)


def test_programs_on_other_hosts_have_other_cards(program):
    other = program(DTFLAB_HOST="machine-b")
    hosts.simulate_gpus(2)
    assert other.says("len(hosts.visible_claims('machine-b', '', None))") == "2"
    assert other.says("hosts.visible_claims('machine-b', '', None)[0].grab(1 << 30)") == "True"
    assert mine().grab(ALL)


def test_other_cards_on_a_host_that_lives_are_refused(program):
    other = program()
    assert other.grab(GIB)
    with pytest.raises(ValueError, match=rf"Host 'localhost' can't have 1 x Tesla K40m .*: it has 2 x GRID K520 "
                       rf"\(4095 MiB\) while process {other.process.pid} \(python"):  # fmt: skip
        hosts.simulate_gpus(1, "K40")
    with pytest.raises(ValueError, match="can't have 3 x GRID K520"):
        hosts.simulate_gpus(3)
    hosts.simulate_gpus(2)
    kept = mine(1)
    with pytest.raises(ValueError, match="can't have 1 x GRID K520"):
        hosts.simulate_gpus(1)
    assert mine(1) is kept, "a refusal changes nothing"
    hosts.simulate_gpus(0)
    hosts.simulate_gpus(None)
    other.kill()
    hosts.simulate_gpus(1, "K40")
    late = program()
    assert "ValueError: Host 'localhost' can't have 2 x GRID K520" in late.says("hosts.cards_of(host)")


def test_cards_on_demand_agree_with_more_of_them(program):
    other = program()
    assert other.grab(ALL, card=1)
    found = hosts.visible_claims("localhost", "", None, tf.ConfigProto(device_count={"GPU": 3}))
    assert [claim.grab(ALL) for claim in found] == [True, False, True]


def test_counters_are_seen_by_others_without_a_word(program):
    other = program()
    assert other.grab(GIB)
    (record,) = registry.registry().others()
    assert record.pid == other.process.pid and record.counters(record.holdings[0]) == (0, 0, 0)
    other.says("[hosts.visible_claims(host, '', None)[0].busy(0.25) for _ in range(3)]")
    assert record.counters(record.holdings[0]) == (750_000_000, 0, 0)
    other.kill()
    assert registry.registry().others() == [] and record.counters(record.holdings[0]) == (0, 0, 0)


def test_a_slot_is_used_again_from_zero():
    hosts.simulate_gpus(1)
    claim = mine()
    assert claim.grab(GIB)
    claim.busy(1.0)
    (record,) = registry.registry().everyone()
    assert record.counters(record.holdings[0])[0] == 10**9
    hosts.end_program(hosts.THIS_PROCESS)
    assert record.holdings != [], "it is of that moment"
    assert registry.registry().everyone()[0].holdings == []
    assert mine().grab(GIB)
    (record,) = registry.registry().everyone()
    assert record.holdings[0].slot == 0 and record.counters(record.holdings[0]) == (0, 0, 0)


def test_processes_that_grab_at_once_never_get_more_than_there_is(program):
    """Four processes take 1 MiB pieces of what is left, all at the same time, until nothing is left."""
    four = [program(DTFLAB_GPU_MEMORY="256MiB") for _ in range(4)]
    piece = 1 << 20
    ready = "len(hosts.visible_claims(host, '', None))"
    assert [each.says(ready) for each in four] == ["2"] * 4
    each_piece = f"iter(lambda: hosts.visible_claims(host, '', None)[0].grab({piece}), False)"
    loop = f"sum(1 for _ in {each_piece})"
    for each in four:
        each.process.stdin.write(loop + "\n")
        each.process.stdin.flush()
    pieces = [int(each.process.stdout.readline()) for each in four]
    programs = sum(1 for count in pieces if count)
    held = sum(pieces) * piece + programs * cards.CONTEXT_BYTES + cards.IDLE_BYTES
    assert held <= 256 << 20
    assert (256 << 20) - held < piece or programs < 4, "nothing is left for a piece, or for another context"


# ---- the folder ----


def test_the_folder_and_its_files_are_the_users_alone(own_folder):
    hosts.simulate_gpus(1)
    assert mine().grab(GIB)
    assert stat.S_IMODE(own_folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in own_folder.glob("*.live")} == {0}


def test_a_folder_that_cannot_be_made_is_named(own_folder, monkeypatch):
    own_folder.write_text("a file")
    with pytest.raises(OSError, match=r"can't be created \(File exists\). Set DTFLAB_REGISTRY"):
        hosts.simulate_gpus(1)


def test_a_folder_of_somebody_else_is_refused(own_folder, monkeypatch):
    own_folder.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: own_folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match=r"is not yours. Set DTFLAB_REGISTRY"):
        hosts.simulate_gpus(1)


def test_a_link_in_place_of_the_folder_is_refused(own_folder):
    """In /tmp, another user of the machine can make one that leads to any folder of yours."""
    (mine := own_folder.with_name("mine")).mkdir()
    own_folder.symlink_to(mine)
    with pytest.raises(PermissionError, match=r"is a link. Remove it, or set DTFLAB_REGISTRY to the folder itself"):
        hosts.simulate_gpus(1)
    assert list(mine.iterdir()) == []
    own_folder.unlink()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_may_write_is_refused(own_folder, mode):
    own_folder.mkdir()
    own_folder.chmod(mode)
    with pytest.raises(PermissionError, match=rf"Other users may write in .* \(mode {mode:o}\)\. Take .*chmod 700"):
        hosts.simulate_gpus(1)
    assert list(own_folder.iterdir()) == []
    own_folder.chmod(0o755)
    hosts.simulate_gpus(1)


def test_by_default_it_is_in_the_folder_for_temporary_files(monkeypatch):
    monkeypatch.delenv("DTFLAB_REGISTRY")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "somewhere")
    found = registry.registry().folder
    assert found.parent.name == "somewhere" and found.name == f"dtflab-{os.getuid()}"


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "17", '{"pid": 1}', '{"pid": "1", "command": "x", "hosts": {}, "holdings": []}',
        '{"pid": -1, "command": "x", "hosts": {}, "holdings": []}',
        '{"pid": 1, "command": "x", "hosts": [], "holdings": []}',
        '{"pid": 1, "command": "x", "hosts": {"h": {"model": "m", "memory_bytes": 1, "count": 1.5}}, "holdings": []}',
        '{"pid": 1, "command": "x", "hosts": {}, "holdings": [{"host": "h"}]}',
        "__import__('os').system('true')",
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(text):
    with pytest.raises(ValueError, match="it is not a record of a process"):
        registry.parse(text)


def test_a_spoilt_record_of_a_living_process_is_told_once_and_heals(program, own_folder, capfd):
    other = program()
    assert other.grab(GIB)
    (path,) = own_folder.glob("*.json")
    path.write_text('{"pid": ', encoding="utf-8")
    hosts.simulate_gpus(2)
    assert mine(0).grab(1) and mine(1).grab(1)
    said = capfd.readouterr().err
    assert said.count("is left out of the registry of simulated GPUs") == 1 and str(path) in said
    assert other.grab(1, card=1)
    assert [holding.held for record in registry.registry().others() for holding in record.holdings] == [
        GIB + cards.CONTEXT_BYTES, 1 + cards.CONTEXT_BYTES
    ]  # fmt: skip


def test_a_spoilt_record_of_a_dead_process_goes(program, own_folder, capfd):
    other = program()
    assert other.grab(GIB)
    other.kill()
    (path,) = own_folder.glob("*.json")
    path.write_bytes(b"\xff\xfe")
    assert registry.registry().others() == [] and not path.exists()
    assert capfd.readouterr().err == ""


def test_a_record_is_what_parse_reads(own_folder):
    hosts.simulate_gpus(1)
    assert mine().grab(GIB)
    (path,) = own_folder.glob("*.json")
    (record,) = registry.registry().everyone()
    read = registry.parse(path.read_text())
    assert (read.pid, read.command, read.hosts, read.holdings) == (
        os.getpid(), record.command, record.hosts, record.holdings
    )  # fmt: skip
    assert set(json.loads(path.read_text())) == {"pid", "command", "hosts", "holdings"}


def test_a_registry_that_stays_locked_says_so(own_folder, monkeypatch):
    own_folder.mkdir()
    door = FileLock(own_folder / "registry.lock")
    assert door.acquire()
    monkeypatch.setattr(registry, "_PATIENCE", 0.0)
    with pytest.raises(TimeoutError, match=r"stays locked. Is one of your processes suspended"):
        hosts.simulate_gpus(1)
    door.close()
    hosts.simulate_gpus(1)


def test_ctrl_c_leaves_nothing_locked(own_folder, monkeypatch):
    acquire = FileLock.acquire

    def interrupted(lock):
        acquire(lock)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileLock, "acquire", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hosts.simulate_gpus(1)
    other = FileLock(own_folder / "registry.lock")
    assert other.acquire()
    other.close()


def test_a_lock_is_held_by_one_and_goes_with_its_file(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire() and not second.acquire()
    first.release()
    assert second.acquire() and not first.acquire()
    second.close()
    assert first.acquire()
    first.close()


# ---- processes that are not started afresh ----


def child(pipe):
    pipe.send((mine().grab(GIB), [record.pid for record in registry.registry().others()], os.getpid()))
    pipe.recv()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_a_process_of_its_own():
    hosts.simulate_gpus(1)
    assert mine().grab(GIB)
    here, there = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    there.close()  # so that a child that fails is heard
    try:
        grabbed, others, pid = here.recv()
        assert grabbed and others == [os.getpid()]
        (record,) = registry.registry().others()
        assert record.pid == pid and [holding.held for holding in record.holdings] == [GIB + cards.CONTEXT_BYTES]
        assert hosts.free_bytes(mine().card) == mine().card.memory_bytes - 2 * mine().held - cards.IDLE_BYTES
        here.send(None)
    finally:
        here.close()
        process.join(ENOUGH)
    assert process.exitcode == 0 and registry.registry().others() == []
    assert [record.pid for record in registry.registry().everyone()] == [os.getpid()]


KILLED_WITH_A_CHILD = """
import os
from dtflab.machine import hosts
hosts.simulate_gpus(1)
(claim,) = hosts.visible_claims("localhost", hosts.THIS_PROCESS, None)
assert claim.grab(1 << 30)
ready, tell = os.pipe()
if os.fork() == 0:
    os.write(tell, b".")  # it runs: what a fork has to let go of has gone
    os.read(0, 1)
    os._exit(0)
os.read(ready, 1)
print("holds", flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_that_outlives_its_killed_parent_holds_nothing_of_it(own_folder):
    parent = subprocess.Popen(
        [sys.executable, "-c", KILLED_WITH_A_CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout.readline() == "holds\n"
        parent.wait(ENOUGH)
        assert registry.registry().others() == [] and not [*own_folder.glob("*.json")]
        parent.stdin.write("\n")  # now the child may go


def test_counters_of_a_process_that_has_just_ended_are_zero(tmp_path):
    record = registry.Record(1, "python", life=tmp_path / "gone.live")
    assert record.counters(registry.Holding("h", 0, "", 1, 0.0, 0)) == (0, 0, 0)
    record.life.touch()  # by who looks just then whether it lives
    assert record.counters(registry.Holding("h", 0, "", 1, 0.0, 0)) == (0, 0, 0)


def test_a_process_that_ends_while_others_look_is_left_out_without_a_word(program, own_folder, monkeypatch, capfd):
    other = program()
    assert other.grab(GIB)
    read = type(own_folder).read_text

    def first_it_ends(path, **how):
        other.end()
        return read(path, **how)

    monkeypatch.setattr(type(own_folder), "read_text", first_it_ends)
    assert registry.registry().others() == [] and capfd.readouterr().err == ""
