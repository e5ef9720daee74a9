"""How long it takes until the first step."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from benchmarks.servers import free_cluster
from benchmarks.workloads.workload import Measure, Row, workload

_IMPORT = """
import importlib, time; start = time.perf_counter()
for name in {modules}: importlib.import_module(name)
seconds = time.perf_counter() - start
import resource; print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
# What a module imports that comes neither with Python nor with itself.
_DEPENDENCIES = """
import sys; first = set(sys.modules)
import {module}
mine = ({module!r}.partition(".")[0], *sys.stdlib_module_names)
print(*(name for name in sys.modules if name not in first and name.partition(".")[0] not in mine))
"""


def _output(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _import(*modules: str) -> Measure:
    return lambda: [float(word) for word in _output(_IMPORT.format(modules=modules))]


def _dependencies() -> Measure:
    return _import(*_output(_DEPENDENCIES.format(module="dtflab")))


_IMPORT_ROWS = {
    "import, fresh interpreter (bare: its dependencies)": Row("s", 0.1, or_bare=1.4),
    "resident memory after it": Row("MB", 0.2),
}


@workload("import", _IMPORT_ROWS, bare=_dependencies)
def importing(tf: Any) -> Measure:
    return _import(tf.__name__)


def step_on_all(tf: Any, target: str, spec: dict[str, list[str]]) -> None:
    """A session and a step that needs every task."""
    with tf.Graph().as_default():
        parts = []
        for job, addresses in spec.items():
            for index in range(len(addresses)):
                with tf.device(f"/job:{job}/task:{index}"):
                    parts.append(tf.random_uniform([]))  # TensorFlow would fold constants together
        total = tf.add_n(parts)
        with tf.Session(target) as session:
            session.run(total)


@workload("start-threads", {"3 servers in one process, first step on all": Row("s")})
def start_in_one_process(tf: Any) -> Measure:
    def measure() -> list[float]:
        spec = free_cluster(ps=1, worker=2)
        start = time.perf_counter()
        servers = [tf.train.Server(spec, job_name=job, task_index=i) for job in spec for i in range(len(spec[job]))]
        step_on_all(tf, servers[1].target, spec)
        seconds = time.perf_counter() - start
        for server in servers:
            if hasattr(server, "stop"):
                server.stop()
        return [seconds]

    return measure
