"""The table of published claims in docs/simulator.md is what `dtflab sim claims` prints."""

import re
import subprocess
import sys

import pytest

from dtflab.sim.claims import CLAIMS, NETWORKS, claims
from tests.house import ROOT

PAGE = (ROOT / "docs" / "simulator.md").read_text()
TABLE = PAGE.partition("<!-- begin claims -->")[2].partition("<!-- end")[0]
ROWS = {cells[0]: cells for cells in (line.strip("| ").split(" | ") for line in TABLE.splitlines() if line)}


def test_every_claim_stands_in_the_table_with_its_assumptions():
    for claim in CLAIMS:
        cells = ROWS[claim.name]
        assert (cells[1], cells[-1]) == (claim.published, claim.assumed)
        assert len(cells) == 3 + len(NETWORKS)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.model == "vgg16"], ids=lambda claim: claim.name)
def test_its_numbers_are_those_of_today(claim):
    """The quick ones; a new fit of the parameters may move them a little."""
    for network, cell in zip(NETWORKS, ROWS[claim.name][2:], strict=False):
        assert claim.predicted(network).speedup == pytest.approx(float(cell), rel=0.1)


def test_claims_are_asked_for_each_network(monkeypatch):
    monkeypatch.setattr("dtflab.sim.claims.CLAIMS", [claim for claim in CLAIMS if "VGG" in claim.name])
    ((claim, speedups),) = claims(["1Gb/s", "100Gb/s"])
    assert claim.name.startswith("dense: VGG") and speedups["1Gb/s"] < speedups["100Gb/s"]


def test_the_example_of_the_page_runs():
    (program,) = re.findall(r"```python\n(import dtflab as tf\nfrom dtflab import sim\n.*?)```", PAGE, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "alexnet, ps_sync_spares, 50 devices" in done.stdout and "Critical path" in done.stdout
