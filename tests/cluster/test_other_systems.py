"""Processes of a cluster without what only Linux or Unix has, as far as Python on Linux can do without it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house import ROOT

pytestmark = pytest.mark.processes

# Each process runs this first. What it imports asks for some of these names when it is imported.
WITHOUT = """
import asyncio, logging.handlers, multiprocessing, os, socket, subprocess, sys
import grpc, numpy

for module, names in {
    os: "fork forkpty getuid memfd_create posix_fallocate posix_spawn register_at_fork",
    socket: "AF_UNIX CMSG_LEN MSG_CMSG_CLOEXEC MSG_DONTWAIT SCM_RIGHTS",
}.items():
    for name in names.split():
        vars(module).pop(name, None)
sys.platform = "another"
"""

PROGRAM = """
import numpy as np
import dtflab as tf
from dtflab.cluster import negotiation

with tf.device("/job:ps/task:0"):
    v = tf.Variable(tf.zeros([300, 300]))
with tf.device("/job:worker/task:0"):
    more = v + 1.0
with tf.device("/job:ps/task:0"):
    train = v.assign(more).op
with tf.Cluster(ps=1, worker=1, engine="process", gpus=1) as cluster, tf.Session(cluster.target) as session:
    session.run(v.initializer)
    for _ in range(5):
        session.run(train)
    assert (session.run(v) == 5).all()
    print(len(negotiation._links))
"""


def test_a_cluster_of_processes(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "DTFLAB_WIRE": ""}
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "1\n"  # the client's link, over TCP
