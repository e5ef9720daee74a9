"""A demo in a teacher's hands: run twice, every slider moved to its end, its sentences read aloud."""

from __future__ import annotations

import ast
import json
import re
import runpy
from typing import Any

import pytest

from tests.house import ROOT
from tests.notebooks.lessons import lessons, wrong

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def run(tmp_path):
    """Runs a demo without its sliders, as a program; gives its names."""

    def run(name: str) -> dict[str, Any]:
        text = (ROOT / "notebooks" / "src" / "demos" / f"{name}.py").read_text(encoding="utf-8")
        cells = [cell for cell in re.split(r"^# %%", text, flags=re.M) if "explore(\n" not in cell]
        (tmp_path / f"{name}.py").write_text("# %%".join(cells).replace("tf.logging", "# tf.logging"))
        return runpy.run_path(str(tmp_path / f"{name}.py"))

    return run


def sliders(name: str, argument: int = 1) -> dict[str, Any]:
    """An argument of each of a demo's sliders; by default where it begins."""
    text = (ROOT / "notebooks" / "src" / "demos" / f"{name}.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (explore,) = (call for call in calls if ast.unparse(call.func) == "explore")
    return {each.arg: ast.literal_eval(each.value.args[argument]) for each in explore.keywords}


@pytest.mark.parametrize("name", ["race", "what_if"])
def test_the_code_of_the_sliders_is_folded_away(name):
    cells = json.loads((ROOT / "notebooks" / "demos" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    folded = ["".join(cell["source"]) for cell in cells if cell["metadata"].get("jupyter", {}).get("source_hidden")]
    assert len(folded) == 1 and folded[0].startswith("explore(")


@pytest.mark.parametrize("name", ["race", "what_if"])
def test_what_a_slider_says_is_a_line_on_a_projector(name):
    """A second line pushes the picture's axis out of a window of 1280 × 720; some 50 letters fit in one."""
    says = sliders(name, argument=2).values()
    assert max(map(len, says)) < 50, says


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
    ends = {network: [one.throughput for one in step.sweep(workers=[16, 32], network=network)] for network in
            demo["networks"]}  # fmt: skip
    more = [after / before for before, after in ends.values()]
    assert more[0] < 1.05 and more[1] < 1.1 and more[2] > 1.25, "two lines go flat, one goes on rising"
    assert max(size) / sum(size) == pytest.approx(0.99, abs=0.01)


def test_more_spares_than_workers_leave_one_gradient(run):
    *_, picture = run("race")["race"](workers=2, spares=3, stragglers=0, network="1Gb/s")
    assert "sync, 1 to spare" in picture.sentence


def test_a_very_slow_network_costs_steps(run):
    race, steps, ends = run("race")["race"], [], []
    for network in ("1Mb/s", "100Mb/s"):
        *_, picture = race(**sliders("race") | {"network": network})
        steps.append([int(count) for count in re.findall(r"\((\d+) steps\)", picture.sentence)])
        ends.append([float(end) for end in re.findall(r" to ([\d.]+), lowest", picture.sentence)])
    first, *others = (slow / fast for slow, fast in zip(*steps, strict=True))
    assert first == pytest.approx(0.5, abs=0.1) and others == pytest.approx([0.7] * 2, abs=0.1)
    assert all(slow > 1.3 * fast for slow, fast in zip(*ends, strict=True))


def test_spares_pay_at_the_first_settings_and_not_where_nobody_is_late(run):
    race, ends, first = run("race")["race"], {}, sliders("race")
    assert (first["workers"], first["spares"], first["stragglers"]) == (8, 2, 1.0)
    for varies in (0, first["stragglers"]):
        *_, picture = race(**first | {"stragglers": varies})
        _, sync, spared = map(float, re.findall(r" to ([\d.]+), lowest", picture.sentence))
        _, waits, goes_on = map(int, re.findall(r"\((\d+) steps\)", picture.sentence))
        ends[varies] = spared / sync
    assert ends[0] > 0.9 and ends[1.0] == pytest.approx(2 / 3, abs=0.05)
    assert goes_on > 1.5 * waits


def test_a_way_that_no_slider_changes_runs_once(run, monkeypatch):
    demo = run("race")
    names, raced, train, stops = demo["race"].__globals__, [], demo["tf"].sim.race, False

    def counted(work, entry, **machines):
        ((name, (_, live, *_)),) = entry.items()
        raced.append(name)
        runs = train(work, entry, **machines)
        if stops:
            live.stop()
        return runs

    monkeypatch.setattr(demo["tf"].sim, "race", counted)
    place = sliders("race") | {"workers": 2}
    first, less, again = (list(demo["race"](**place | {"spares": spares})) for spares in (1, 0, 1))
    assert raced == ["async", "sync", "sync, 1 to spare"], "none to spare is sync"
    assert again[-1].sentence == first[-1].sentence
    steps = re.findall(r"(async|sync) \((.*?)\)", less[-1].sentence)
    assert len(steps) == 2 and steps == re.findall(r"(async|sync) \((.*?)\)", first[-1].sentence)
    assert again[0].picture.sentence == first[0].picture.sentence, "its curves are drawn as those of a new one"
    names["SECONDS"] = 0.3  # somebody edits a cell
    list(demo["race"](**place))
    assert len(raced) == 6
    stops = True
    list(demo["race"](**place | {"network": "1Mb/s"}))
    stops = False
    list(demo["race"](**place | {"network": "1Mb/s"}))
    assert len(raced) == 10, "one that was stopped does not count"


@lessons("demos/race", "demos/what_if")
def test_runs_clean_twice_in_one_kernel(ran, record_property):
    record_property(f"{ran.name}, both runs", f"{ran.seconds:.0f} s")
    assert wrong(ran.notebook) == []
