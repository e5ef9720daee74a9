"""A program in a process of its own: its limits, the report of its end, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dtflab.grading import isolation, meter, watchdog
from tests.cluster.two_tasks import until
from tests.grading.classroom import need_namespaces, own_seconds, sleepers
from tests.house import ROOT

pytestmark = pytest.mark.processes

SLEEPER = own_seconds(1)  # what processes that stay behind are known by
LONG = isolation.Limits(seconds=20)


def run(code, tmp_path, limits=LONG, **options):
    return isolation.run([sys.executable, "-c", code], limits, tmp_path, **options)


def test_a_program_ends_by_itself(tmp_path):
    heard = []
    code = (
        "import os, sys; print(input()); os.write(int(sys.argv[1]), b'one\\ntw'); os.write(int(sys.argv[1]), b'o\\n')"
    )
    ended = run(code, tmp_path, given="hello\n", heard=heard.append)
    assert (ended.error, ended.output, heard) == ("", "hello\n", ["one", "two"])


def test_its_caller_may_say_lines_to_it_until_it_has_ended(tmp_path):
    lines = []
    code = "import os, sys; print(open(int(sys.argv[2])).readline())"
    ended = run(code, tmp_path, heard=print, talk=lambda say: (lines.append(say), say("hello")))
    assert (ended.error, ended.output) == ("", "hello\n\n")
    lines[0]("nobody reads this, and nothing happens")


EATER = "import time; x = b'x' * 200_000_000; time.sleep(99)"

LIMITS = {
    "time": ("import time; time.sleep(99)", isolation.Limits(seconds=0.3), "Stopped after 0.3 s: it did not"),
    "memory": (
        EATER,
        isolation.Limits(20, memory=100 * 2**20),
        "Stopped: it held more than 100",
    ),
    "memory of a child": (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {EATER!r}], env={{}})",
        isolation.Limits(20, memory=100 * 2**20),
        "Stopped: it held more than 100",
    ),
    "status": ("import sys; sys.exit(7)", isolation.Limits(20), "It ended with exit status 7."),
    "signal": ("import os; os.abort()", isolation.Limits(20), "It crashed: signal SIGABRT."),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_a_sentence(name, tmp_path):
    code, limits, message = LIMITS[name]
    assert run(code, tmp_path, limits).error.startswith(message)


@pytest.mark.parametrize("name", ["time", "status", "signal"])
def test_without_proc_these_limits_hold_too(name, tmp_path, monkeypatch):
    """Limits hold where nothing is known of memory and processors, as on macOS."""
    monkeypatch.setattr(meter, "PROC", tmp_path / "proc")
    code, limits, message = LIMITS[name]
    assert run(code, tmp_path, limits).error.startswith(message)
    assert meter.processes() == {}


# -- in namespaces of its own ---------------------------------------------------------------------------------


@pytest.fixture
def secluded(tmp_path):
    """Runs a program in a folder, from which a file and a folder are hidden."""
    place, secret = tmp_path / "place", tmp_path / "secret"
    for folder in (place, secret):
        folder.mkdir()
    (secret / "checks.py").write_text("hidden")
    (tmp_path / "marks.csv").write_text("hidden")
    hidden = [secret, tmp_path / "marks.csv", tmp_path / "gone"]
    need_namespaces()
    assert isolation.can_seclude(place, hidden)

    def run_there(code, limits=LONG, **options):
        return isolation.run([sys.executable, "-c", code], limits, place, hidden=hidden, **options)

    return run_there


def test_it_sees_its_own_processes_only(secluded):
    code = "import os; print(os.getpid(), os.getppid(), [name for name in os.listdir('/proc') if name.isdigit()])"
    assert secluded(code).output == "2 1 ['1', '2']\n"


def test_what_is_hidden_is_not_there_and_the_rest_is_read_only(secluded, tmp_path):
    code = f"""
import os
for path in ({str(tmp_path / "secret/checks.py")!r}, {str(tmp_path / "marks.csv")!r}):
    print(os.path.exists(path) and open(path).read())
for path in ("here", "/tmp/own", "/dev/shm/own", "/etc/own", "/usr/own", {str(ROOT / "own")!r}):
    try:
        open(path, "w").close()
        print(path, "written")
    except OSError as error:
        print(error.strerror)
"""
    told = secluded(code).output.splitlines()
    assert [line or "False" for line in told[:2]] == ["False", "False"]
    assert told[2:5] == ["here written", "/tmp/own written", "/dev/shm/own written"]
    assert set(told[5:]) <= {"Read-only file system", "Permission denied", "No such file or directory"}
    assert not (ROOT / "own").exists()


def test_no_table_of_mounts_names_what_is_hidden(tmp_path, monkeypatch):
    """Outside of the folders that are covered as a whole. What lies next to it is there as before, and read-only."""
    need_namespaces()
    monkeypatch.setattr(isolation, "_own_places", lambda: ["/dev/shm"])
    place, course = tmp_path / "work/place", tmp_path / "course"
    for folder in (place, course / "secret", course / "data/more"):
        folder.mkdir(parents=True)
    for name in ("secret/checks.py", "marks.csv", "notes.txt", "data/more/images.txt"):
        (course / name).write_text(name)
    (course / "link").symlink_to("notes.txt")
    code = f"""
import os
for name in ("mountinfo", "mounts", "mountstats"):
    text = open(f"/proc/self/{{name}}").read()
    print("course" in text, "secret" in text, "marks.csv" in text)
os.chdir({str(course)!r})
print(sorted(os.listdir()), os.readlink("link"), open("link").read(), open("data/more/images.txt").read())
for path in ("new", "notes.txt", "data/new"):
    try:
        open(path, "w")
    except OSError as error:
        print(error.strerror)
"""
    hidden = [course / "secret", course / "marks.csv"]
    ended = isolation.run([sys.executable, "-c", code], LONG, place, hidden=hidden)
    assert ended.output.splitlines() == [
        *["True False False"] * 3,
        "['data', 'link', 'notes.txt'] notes.txt notes.txt data/more/images.txt",
        *["Read-only file system"] * 3,
    ]


def test_its_home_is_empty_but_for_what_it_needs(secluded):
    home = os.path.realpath(os.path.expanduser("~"))
    code = f"import os; print(*os.listdir({home!r}), sep='/')"
    needed = {one.removeprefix(f"{home}/").split("/")[0] for one in isolation._needed() if one.startswith(f"{home}/")}
    assert set(secluded(code).output.strip().split("/")) - {""} <= needed


@pytest.mark.skipif(not os.path.isdir("/run"), reason="this system has no such folder")
def test_no_socket_of_another_program_is_where_programs_listen(secluded):
    """A network namespace is not about files: a program that can open a socket's file talks to what listens there."""
    needed = {one.split("/")[2] for one in isolation._needed() if one.startswith("/run/")}
    assert {*secluded("import os; print(*os.listdir('/run'), sep='/')").output.strip().split("/")} - {""} <= needed


def test_it_has_a_loopback_and_no_other_network(secluded):
    code = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print(socket.if_nameindex())
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    print(error.strerror)
"""
    assert secluded(code).output == "[(1, 'lo')]\nNetwork is unreachable\n"


def test_nothing_that_is_hidden_can_be_uncovered(secluded, tmp_path):
    """Neither by the rights that root would have, nor in a namespace of the program's own."""
    secret = str(tmp_path / "secret")
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
tried = [libc.umount2(path, flags) for path in ({secret!r}.encode(), b"/tmp", b"/proc") for flags in (0, 2)]
tried.append(libc.mount(b"none", b"/", None, ctypes.c_ulong(0x1000 | 0x20), None))
print(set(tried), [line for line in open("/proc/self/status") if line.startswith(("CapEff", "CapBnd"))])
if libc.unshare(0x10020000) == 0:
    print({{libc.umount2(path, 2) for path in ({secret!r}.encode(), b"/tmp", b"/proc")}})
print(os.path.exists({secret!r} + "/checks.py"))
"""
    told = secluded(code).output.splitlines()
    assert told[0] == "{-1} ['CapEff:\\t0000000000000000\\n', 'CapBnd:\\t0000000000000000\\n']"
    assert set(told[1:-1]) <= {"{-1}"} and told[-1] == "False"


def test_what_leaves_its_session_and_clears_its_environment_ends_with_it(secluded):
    code = f"import os, subprocess; subprocess.Popen(['sleep', '{SLEEPER}'], env={{}}, start_new_session=True)"
    assert secluded(code).error == "" and sleepers(SLEEPER) == []


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_the_same_sentences_there(name, secluded):
    code, limits, message = LIMITS[name]
    assert secluded(code, limits).error.startswith(message)


def test_a_program_that_cannot_be_started_there_is_an_error(tmp_path, secluded):
    with pytest.raises(OSError, match=r"it was not started: .*No such file"):
        isolation.run([str(tmp_path / "gone")], LONG, tmp_path / "place", hidden=[])


def test_it_is_heard_there(secluded):
    heard = []
    code = "import os, sys; os.write(int(sys.argv[1]), b'one\\n'); print(input())"
    assert secluded(code, heard=heard.append, given="given\n").output == "given\n" and heard == ["one"]


def test_a_folder_with_the_program_in_it_is_not_hidden(tmp_path):
    assert isolation.can_hide(tmp_path) and not isolation.can_hide(ROOT) and not isolation.can_hide(ROOT.parent)


# -- its caller -----------------------------------------------------------------------------------------------


def test_a_caller_can_stop_it(tmp_path):
    assert run("import time; time.sleep(99)", tmp_path, stopped=lambda: True).error == "Stopped by its caller."


def test_a_program_may_kill_its_parent_which_is_not_its_caller(tmp_path):
    ended = run("import os, time; os.kill(os.getppid(), 9); time.sleep(99)", tmp_path)
    assert ended.error == "It killed the process that watches it." and ended.unwatched


def test_a_program_may_kill_its_own_group(tmp_path):
    ended = run("import os, time; os.killpg(0, 9); time.sleep(99)", tmp_path)
    assert ended.error == "It crashed: signal SIGKILL." and not ended.unwatched


def test_a_program_that_cannot_be_started_is_an_error(tmp_path):
    with pytest.raises(OSError, match=r"it was not started: .*No such file"):
        isolation.run([str(tmp_path / "gone")], LONG, tmp_path)


def test_a_program_ends_with_its_caller_however_that_ends(tmp_path):
    """The caller is killed: it can do nothing itself."""
    program = f"import subprocess, time; subprocess.Popen(['sleep', '{SLEEPER}']); time.sleep({SLEEPER})"
    code = (
        "import sys; from pathlib import Path; from dtflab.grading import isolation; "
        f"isolation.run([sys.executable, '-c', {program!r}], isolation.Limits(), Path({str(tmp_path)!r}))"
    )
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        until(lambda: len(sleepers(SLEEPER)) >= 4, "the caller, the supervisor, the program and its child run")
    finally:
        caller.kill()
        caller.wait()
    try:
        until(lambda: sleepers(SLEEPER) == [], "all of it has ended")
    finally:
        for left in sleepers(SLEEPER):
            os.kill(int(left), signal.SIGKILL)


def test_nothing_stays_when_the_caller_is_interrupted(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(f"import time; time.sleep({SLEEPER})", tmp_path, stopped=interrupted)
    assert sleepers(SLEEPER) == []


def test_nothing_stays_when_the_caller_is_interrupted_once_more(tmp_path, monkeypatch):
    """On a busy machine the watchdog comes again while the program is being ended."""
    members = isolation.members

    def again(session, mark):
        monkeypatch.setattr(isolation, "members", members)
        raise KeyboardInterrupt

    def interrupted():
        monkeypatch.setattr(isolation, "members", again)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(f"import time; time.sleep({SLEEPER})", tmp_path, stopped=interrupted)
    assert sleepers(SLEEPER) == []


# The exception may come between a file's opening and the code that would close it.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning")
def test_a_check_may_start_programs_and_is_stopped_with_them(tmp_path, monkeypatch):
    """The watchdog's exception arrives between two looks, and takes the program along."""
    looks = []
    monkeypatch.setattr(watchdog, "_wait", lambda *_: (until(lambda: looks, "the program runs"), False))
    outcome = watchdog.call(
        lambda: run(f"import time; time.sleep({SLEEPER})", tmp_path, stopped=lambda: looks.append(1)), 60
    )
    assert outcome.stopped and not outcome.left_running
    assert sleepers(SLEEPER) == []
