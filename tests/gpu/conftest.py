"""Fixtures of the GPU tests. Each runs on a stand-in for CuPy, which is not a GPU, and on a card if one is there."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.machine import cuda, hosts
from tests import fake_cupy
from tests.gpu.sessions import PLACES


@pytest.fixture(params=PLACES)
def cupy(request, monkeypatch):
    """CuPy: the stand-in with two cards of 1 GiB, and the real one where there is a card."""
    for name in ("DTFLAB_GPUS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(hosts, "_asked", None)
    if request.param == "card":
        import cupy

        yield cupy
        return
    with fake_cupy.installed(cards=2, memory=1 << 30) as stand_in:
        yield stand_in


@pytest.fixture
def devices(monkeypatch):
    """The CudaGPUs that sessions make, in their order."""
    made = []
    make = cuda.CudaGPU.__init__

    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(cuda.CudaGPU, "__init__", init)
    return made


@pytest.fixture(autouse=True)
def _own_graph():
    with tf.Graph().as_default():
        yield
