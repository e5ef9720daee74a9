"""Every listing of this folder prints the same on dtflab and on real TensorFlow. README.md says where each comes from.

A listing is a program as a reader would type it. It begins with `import dtflab as tf`; for TensorFlow the imports are
exchanged, and machines that are not here (`machine-a.example.com:2222`) become addresses of this one: dtflab takes
them for names in the process, as printed. `Processes: ps worker worker` in a docstring means that the program is
started once as each of these tasks, with the flags `--ps_hosts=… --worker_hosts=… --job_name=… --task_index=…`. Each
listing runs in a folder of its own, where it finds nothing and may leave what it likes.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtflab.cluster.addresses import free_addresses
from tests.forks import imported

pytest.importorskip("tensorflow")
pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

HERE = Path(__file__).parent
NOT_LISTINGS = {"tensorflow_1.py", "test_listings.py"}
LISTINGS = sorted(path for path in HERE.glob("*.py") if path.name not in NOT_LISTINGS)
IMPORT = "import dtflab as tf\n"
ON_TENSORFLOW = "import tensorflow.compat.v1 as tf\n"
MACHINE = re.compile(r"[\w-]+\.example\.com:\d+")
SECONDS = 400  # the machine may be busy


def test_readme_names_every_listing():
    named = re.findall(r"\| `(\w+\.py)` \|$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) == {path.name for path in LISTINGS}


def test_readmes_commands_start_all_processes(tmp_path):
    script = re.search(r"```bash\n(.*?)```", (HERE / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    stated = sorted(set(re.findall(r"localhost:\d+", script)))
    for address, free in zip(stated, free_addresses(len(stated))):
        script = script.replace(address, free)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        ["bash", "-ec", script],
        cwd=HERE.parent.parent,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            printed = shell.communicate(timeout=SECONDS)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):  # all have ended
                os.killpg(shell.pid, signal.SIGKILL)
    assert "ps: done are [0, 1]\n" in printed and printed.count("300 steps\n") == 2
    assert [path.name for path in tmp_path.glob("*/*")] == ["log"]


@pytest.fixture(scope="module")
def with_tensorflow():
    with imported("tests.listings.tensorflow_1") as python:
        yield python


@pytest.fixture(scope="module")
def with_dtflab():
    with imported("dtflab") as python:
        yield python


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda path: path.stem)
def test_prints_the_same(listing, tmp_path, with_tensorflow, with_dtflab):
    source = listing.read_text(encoding="utf-8")
    assert source.count(IMPORT) == 1
    machines = sorted(set(MACHINE.findall(source)))
    address_of = dict(zip(machines, free_addresses(len(machines))))
    with (
        running(with_tensorflow, for_tensorflow(source, address_of), tmp_path / "tensorflow", listing.name) as theirs,
        running(with_dtflab, source, tmp_path / "dtflab", listing.name) as ours,
    ):
        expected = all_printed(theirs, tmp_path / "tensorflow")
        found = all_printed(ours, tmp_path / "dtflab")
    for machine, address in address_of.items():
        expected = [text.replace(address, machine) for text in expected]
    assert found == expected
    assert "".join(found).strip(), "a listing that prints nothing shows nothing"


def for_tensorflow(source: str, address_of: dict[str, str]) -> str:
    """The listing on TensorFlow, with real addresses."""
    source = MACHINE.sub(lambda machine: address_of[machine[0]], source)
    return source.replace(IMPORT, ON_TENSORFLOW).replace("from dtflab.python", "from tensorflow.python")


@contextlib.contextmanager
def running(python: list[str], source: str, folder: Path, name: str) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of a listing, which end with the block."""
    path = write(source, folder, name)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    with contextlib.ExitStack() as stack:
        started = []
        for number, arguments in enumerate(flags(source)):
            errors = stack.enter_context(open(folder / f"stderr-{number}", "w", encoding="utf-8"))
            command = [*python, path.name, *arguments]
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                text=True,
            )  # fmt: skip
            stack.callback(end, process)
            started.append(process)
        yield started


def all_printed(processes: list[subprocess.Popen[str]], folder: Path) -> list[str]:
    """The output of each process; all end with status 0."""
    printed = []
    for process in processes:
        try:
            printed.append(process.communicate(timeout=SECONDS)[0])
        except subprocess.TimeoutExpired:
            pytest.fail(f"{process.args} did not end:\n{all_errors(folder)}")
        assert process.returncode == 0, f"{process.args}\n{all_errors(folder)}"
    return printed


def write(source: str, folder: Path, name: str) -> Path:
    folder.mkdir()
    (folder / name).write_text(source, encoding="utf-8")
    return folder / name


def flags(source: str) -> list[list[str]]:
    """The arguments of each process that a listing is made of: none for a program that is one process."""
    stated = re.search(r"^Processes: (.*)$", source, re.MULTILINE)
    if not stated:
        return [[]]
    jobs = stated[1].split()
    addresses = free_addresses(len(jobs))
    hosts = [f"--{job}_hosts={','.join(a for a, j in zip(addresses, jobs) if j == job)}" for job in dict.fromkeys(jobs)]
    indices = [jobs[:i].count(job) for i, job in enumerate(jobs)]
    return [[*hosts, f"--job_name={job}", f"--task_index={index}"] for job, index in zip(jobs, indices)]


def all_errors(folder: Path) -> str:
    """The ends of what the processes wrote to their standard errors."""
    return "\n".join(f"{path.name}: {path.read_text()[-4000:]}" for path in sorted(folder.glob("stderr-*")))


def end(process: subprocess.Popen[str]) -> None:
    """Nothing is left of a process, however its test went."""
    process.kill()
    process.communicate()
