"""What a teacher does with a demo: runs it twice, moves every slider to its end, and reads its sentences aloud."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from tests.house import ROOT


@pytest.fixture
def run(tmp_path):
    """Runs a demo without its sliders, as a program; gives its names."""

    def run(name: str) -> dict[str, Any]:
        text = (ROOT / "notebooks" / "src" / "demos" / f"{name}.py").read_text(encoding="utf-8")
        cells = [cell for cell in re.split(r"^# %%", text, flags=re.M) if "explore(\n" not in cell]
        (tmp_path / f"{name}.py").write_text("# %%".join(cells).replace("tf.logging", "# tf.logging"))
        return runpy.run_path(str(tmp_path / f"{name}.py"))

    return run


def test_what_if_twice_is_one_net(run, capsys):
    for _ in range(2):  # the second time with %dtf_style --projector
        run("what_if")
    assert re.findall(r"[\d.]+ MB", capsys.readouterr().out) == ["34.0 MB"] * 2


def test_what_if_says_what_is_so(run):
    demo = run("what_if")
    step = demo["step"]
    assert step.run(workers=32).speedup == pytest.approx(3, rel=0.1)
    assert step.run(gpu="H100").speedup == pytest.approx(1.14, abs=0.01)
    assert step.run(network="100Gb/s").speedup == pytest.approx(2.4, abs=0.02)
    size = [variable.shape.num_elements() for variable in demo["tf"].trainable_variables()]
    assert max(size) / sum(size) == pytest.approx(0.99, abs=0.01)


def test_more_spares_than_workers_leave_one_gradient(run):
    *_, picture = run("race")["race"](workers=2, spares=3, stragglers=0, network="1Gb/s")
    assert "sync, 1 to spare" in picture.sentence


def test_a_very_slow_network_costs_half_of_the_steps(run):
    race, steps = run("race")["race"], {}
    for network in ("1Mb/s", "100Mb/s"):
        *_, picture = race(workers=8, spares=1, stragglers=0.3, network=network)
        steps[network] = [int(count) for count in re.findall(r"\((\d+) steps\)", picture.sentence)]
    shares = [slow / fast for slow, fast in zip(*steps.values(), strict=True)]
    assert len(shares) == 3 and shares == pytest.approx([0.5] * 3, abs=0.1)


def test_spares_pay_when_steps_vary(run):
    race, ends = run("race")["race"], {}
    for varies in (0, 1.0):
        *_, picture = race(workers=8, spares=2, stragglers=varies, network="100Mb/s")
        _, sync, spared = map(float, re.findall(r" to ([\d.]+), lowest", picture.sentence))
        ends[varies] = spared / sync
    assert ends[0] > 0.9 and ends[1.0] == pytest.approx(2 / 3, abs=0.05)
