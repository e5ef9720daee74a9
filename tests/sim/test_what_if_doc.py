"""docs/what_if.md: its program prints what stands below it."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import dtflab as tf
from dtflab.hardware import catalogue
from tests.house import ROOT

PAGE = (ROOT / "docs" / "what_if.md").read_text(encoding="utf-8")


def test_the_program_prints_what_stands_below_it():
    program, printed = re.search(r"```python\n(import.*?)```\n```text\n(.*?)```", PAGE, re.S).groups()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed


@pytest.mark.parametrize(("kernels", "faster"), [(1, "laptop"), (24, "2x Xeon E5-2690 v3")])
def test_a_kernel_has_one_core_s_share_of_the_bandwidth(kernels, faster):
    """So two Xeons, which have more of all, are slower with one kernel, and faster with many."""
    values = [tf.constant(np.full([1000, 1000], i, np.float32)) for i in range(kernels)]
    with tf.Cluster(localhost=1, clock="virtual") as cluster, tf.Session(cluster.target) as session:
        asked = tf.sim.what_if(session, fetches=[tf.reduce_sum(value).op for value in values])
    took = {name: asked.run(cpu=name).makespan for name in ("laptop", "2x Xeon E5-2690 v3")}
    assert min(took, key=took.get) == faster


def test_the_bandwidths_of_the_page():
    said = re.search(
        r"on a laptop (\d+) GB/s of (\d+), on two Xeons (\d+) GB/s of (\d+)", " ".join(PAGE.split())
    ).groups()
    cpus = [catalogue.cpu(name) for name in ("laptop", "2x Xeon E5-2690 v3")]
    numbers = [share for cpu in cpus for share in (cpu.memory_bandwidth / cpu.cores / 1e9, cpu.memory_bandwidth / 1e9)]
    assert [int(number) for number in said] == [round(number) for number in numbers]
