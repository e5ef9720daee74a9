"""The catalogue as it is shown, and docs/hardware.md."""

from __future__ import annotations

import runpy

import pytest

import dtflab
from dtflab.hardware.catalogue_gpus import GPUS
from tests.house import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "hardware_table.py"))


def test_the_page_is_fresh():
    assert (ROOT / "docs" / "hardware.md").read_text() == SCRIPT["page"](), "run: python docs/hardware_table.py"


def test_it_is_printed_and_shown_with_units():
    shown = dtflab.sim.hardware()
    text, page = repr(shown), shown._repr_html_()
    for words in (
        "float32 TFLOP/s",
        "memory GiB",
        "latency µs",
        "Tesla K40m",
        "pcie3-tree",
        "InfiniBand EDR",
        "laptop",
    ):
        assert words in text and words in page
    assert page.count("<table>") == page.count("</table>") == len(shown.tables)
    assert all(len(row) == len(heads) for _, heads, rows in shown.tables for row in rows)
    (row,) = (row for row in shown.tables[0][2] if row[0].startswith("Tesla K40m"))
    assert row[1:4] == ["4.29", "1.43", "-"]


def test_every_gpu_is_in_the_table():
    assert len(dtflab.sim.hardware().tables[0][2]) == len(GPUS)


def test_the_example_of_the_page_runs(tmp_path):
    program = tmp_path / "own.py"
    program.write_text(SCRIPT["OWN"])
    with runpy.run_path(str(program))["cluster"] as cluster:
        assert [d for d in cluster.task("worker", 3).devices() if d.device_type == "GPU"]


@pytest.mark.parametrize("name", ["hardware", "add_hardware", "Processor", "Bus", "Nic", "Network", "Rack", "Switch"])
def test_names_of_sim(name):
    assert name in dir(dtflab.sim) and getattr(dtflab.sim, name) is not None
