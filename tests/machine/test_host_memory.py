"""Memory that a step of a server has freed is there for the next one, and goes back to the system with the session."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dtflab.machine import host_memory
from tests.house import ROOT

pytestmark = pytest.mark.processes

RESIDENT = """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
"""
ON_THREADS = f"""
import os, threading
import numpy as np
from dtflab.machine import host_memory
{RESIDENT}
found = [resident()]
def step():
    x = np.ones(60 << 17)  # MiB
    del x
    found.append(resident())
if {{keep}}:
    host_memory.keep()
step()
thread = threading.Thread(target=step)
thread.start()
thread.join()
host_memory.give_back()
print(*found, resident())
"""
BY_A_SERVER = f"""
import os
import dtflab as tf
{RESIDENT}
server = tf.train.Server.create_local_server()
by_wire = server.target.replace("localhost", "127.0.0.1")  # not recognized as this process
found = [resident()]
with tf.Session(by_wire) as session:
    session.run((tf.random_uniform([60 << 18]) + 1.0).op)
    found.append(resident())
print(*found, resident())
"""

needs_glibc = pytest.mark.skipif(host_memory._glibc() is None, reason="the C library is not glibc")


def measured(code: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@needs_glibc
@pytest.mark.parametrize("keep", [False, True])
def test_large_blocks_stay_until_they_are_given_back(keep):
    before, kept, kept_on_a_thread, after = measured(ON_THREADS.format(keep=keep))
    assert (kept - before > 50) is keep
    assert kept_on_a_thread - kept < 20, "the thread took the same block"
    assert after - before < 20


@needs_glibc
def test_a_server_keeps_them_until_its_session_is_closed():
    before, kept, after = measured(BY_A_SERVER)
    assert kept - before > 50 and kept - after > 50


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(host_memory, "_glibc", lambda: None)
    host_memory.keep.__wrapped__()
    host_memory.give_back()
