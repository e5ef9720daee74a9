"""The output of dtflab reaches every terminal, also one without its letters."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from dtflab.machine import console
from tests.house import ROOT

MARK = "✓ PASS → 2 × «a» · 中"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", MARK),
        ("ascii", '+ PASS -> 2 x "a" - \\u4e2d'),
        ("cp437", '+ PASS -> 2 x «a» · \\u4e2d'),
        ("cp1252", '+ PASS -> 2 × «a» · \\u4e2d'),
    ],
)  # fmt: skip
def test_letters_that_a_terminal_lacks_are_plain_ones(encoding, shown, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    console.show(MARK)
    console.say(MARK)
    stream.flush()
    assert stream.buffer.getvalue().decode(encoding) == f"{shown}\n" * 2


def test_what_a_stream_of_text_holds_is_as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    console.show(MARK, end="")
    assert sys.stdout.getvalue() == MARK


def ascii_only(*arguments):
    """A program whose terminal has ASCII only."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": "/usr/bin:/bin"}
    return subprocess.run([sys.executable, *arguments], env=plain, capture_output=True, timeout=300, cwd=ROOT)


def test_a_mark_is_shown_in_ascii(tmp_path):
    (tmp_path / "none.py").write_text("# %%\n")
    code = "import dtflab as tf; tf.grade('welcome/q1', lambda w, s: 1); tf.check('welcome/q1', answer=print)"
    for arguments in (["-c", code], ["-m", "dtflab", "grade", str(tmp_path), "--questions", "welcome/q1"]):
        done = ascii_only(*arguments)
        assert done.stderr == b"" and done.stdout.isascii() and done.stdout, done.stderr.decode()
    assert b"It has no code." in done.stdout


@pytest.mark.parametrize("arguments", [["smi", "--period", "0"], ["sim", "--help"], ["--help"], ["grade", "--help"]])
def test_commands_speak_ascii_where_there_is_nothing_else(arguments):
    done = ascii_only("-m", "dtflab", *arguments)
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.isascii() and done.stdout
