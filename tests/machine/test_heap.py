"""Memory that a step frees is there for the next one: the heap does not give it back to the system in between."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

# On some machines a fault brings 512 pages at once. PR_SET_THP_DISABLE: not to this process.
SMALL_PAGES = "import ctypes; assert ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0\n"

# Like a training step: arrays of about a megabyte, all of them freed before the next step.
STEPS = """
import resource
import numpy as np

def step():
    return sum(x[0] for x in [np.ones(240_000, "f") for _ in range(5)])

for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(program):
    """How many page faults 20 steps take in a process of their own that begins with `program`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", SMALL_PAGES + program + STEPS]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other heaps have other rules")
def test_memory_that_a_step_frees_is_there_for_the_next():
    pages = 5 * 240_000 * 4 // os.sysconf("SC_PAGE_SIZE")
    assert page_faults("import dtflab") > 10 * pages  # most of the pages, in most of the steps
    assert page_faults("import dtflab; dtflab.Session().run(dtflab.constant(0))") < pages  # not once more
