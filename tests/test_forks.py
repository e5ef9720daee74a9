"""A program that is forked is to those who start it what one in a Python of its own is."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.forks import imported

PROGRAM = """
import os, sys
print("decimal" in sys.modules, sys.argv[1:], os.getcwd(), os.environ["MINE"], input(), __name__)
print("oh", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture(scope="module")
def python():
    with imported("decimal") as python:
        yield python


def test_arguments_folder_environment_streams_and_status(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for command in ("program.py",), ("-m", "program"):
        done = subprocess.run(
            [*python, *command, "a b", "c"],
            cwd=tmp_path, env={**os.environ, "MINE": "yes"}, input="given\n", capture_output=True, text=True,
        )  # fmt: skip
        assert done.stdout == f"True ['a b', 'c'] {tmp_path} yes given __main__\n", done.stderr
        assert (done.stderr, done.returncode) == ("oh\n", 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_the_program_too(python, tmp_path, number):
    (tmp_path / "program.py").write_text("import sys\nprint('up', flush=True)\nsys.stdin.read()\n")
    with subprocess.Popen(
        [*python, "program.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        assert process.stdout.read() == b"", "the program has ended: nobody has this stream any more"
        assert process.wait() == -number


def test_what_cant_be_imported_is_an_error():
    with pytest.raises(RuntimeError, match="nowhere"), imported("nowhere_to_be_found"):
        pass


def test_programs_end_with_the_block(tmp_path):
    (tmp_path / "program.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    with imported() as python:
        process = subprocess.Popen([*python, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"up\n"
    assert process.stdout.read() == b"" and process.wait() != 0
    process.stdout.close()
