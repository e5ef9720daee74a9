"""Memory next to TensorFlow's: which ops allocate how much, what is freed within the step, and the peak."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dtflab
from dtflab.machine.hosts import simulate_gpus
from tests.machine.oracle.memory_graphs import GRAPHS, facts

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tensorflows():
    command = [sys.executable, str(HERE / "memory_in_tensorflow.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout)


def traced(name):
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        op = GRAPHS[name](dtflab)
        session.run(op)
        return facts(session.trace(op))


@pytest.mark.parametrize("name", GRAPHS)
def test_a_cpu_allocates_and_frees_what_tensorflow_does(name, tensorflows):
    assert traced(name) == tensorflows[name]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_simulated_gpu_allocates_and_frees_what_tensorflow_does(name, tensorflows, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="2GiB")
    try:
        assert traced(name) == tensorflows[name]
    finally:
        simulate_gpus(None)
