"""`benchmarks/gpu.py` measures where there is a card, and says why where there is none; figures are not tested."""

from __future__ import annotations

import pytest

from benchmarks import gpu
from dtflab.machine import cards, cuda, hosts
from tests import fake_cupy


def test_without_a_card_it_says_why(capsys, monkeypatch):
    monkeypatch.setattr(cuda, "problem", lambda: "CUDA sees no card.")
    gpu.main([])
    assert capsys.readouterr().out == "No real GPU here, so nothing is measured: CUDA sees no card.\n"


def test_it_runs_to_its_end_on_the_stand_in(capsys, monkeypatch):
    monkeypatch.delenv("DTFLAB_GPUS", raising=False)
    monkeypatch.setattr(hosts, "_asked", None)
    monkeypatch.setattr(gpu, "PERCEPTRONS", {"3-4-2, batch 5": ([3, 4, 2], 5)})
    with fake_cupy.installed():
        gpu.main(["--sizes", "8", "--seconds", "0"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Stand-in: 4 multiprocessors")
    assert [line.split(",")[0] for line in lines[3:]] == ["matmul 8 float32", "matmul 8 float16", "train 3-4-2"]


@pytest.mark.parametrize(("name", "teraflops"), [("P100", 9.5), ("V100", 15.7), ("A100", 19.5), ("H100", 66.9)])
def test_peaks_are_those_of_the_data_sheets(name, teraflops):
    assert gpu.peak_flops(cards.model(name)) / 1e12 == pytest.approx(teraflops, rel=0.01)
