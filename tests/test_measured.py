"""docs/measured.md has a section per command, and a command rewrites only its own."""

from __future__ import annotations

import contextlib
import re

import pytest

from benchmarks import __main__ as bench, frames, gpu, measured, placer, players, scaling
from benchmarks.curves import CURVES
from benchmarks.workloads import Row, Workload
from dtflab import viz
from dtflab.base.page_parts import with_part
from dtflab.machine import hosts
from tests import fake_cupy
from tests.house import ROOT

pytestmark = pytest.mark.processes

PAGE = "# Measured\r\n\n<!-- begin one -->\nold\n<!-- end one -->\nby hand \n<!-- begin two -->\nkept\n<!-- end two -->"


@pytest.fixture
def page(tmp_path, monkeypatch):
    path = tmp_path / "measured.md"
    path.write_bytes(PAGE.encode())
    monkeypatch.setattr(measured, "PAGE", path)
    return path


def test_only_the_own_section_changes(page):
    report = measured.Report("one")
    report.print("a row")
    report.write()
    before, _, rest = page.read_bytes().decode().partition("<!-- begin one -->\n")
    text, _, after = rest.partition("\n<!-- end one -->")
    assert before + after == PAGE.replace("<!-- begin one -->\nold\n<!-- end one -->", "")
    assert re.fullmatch(r"Measured on \d{4}-\d\d-\d\d at \S+\.\n\n```text\na row\n```", text), text


def test_a_section_that_is_missing_is_an_error_and_nothing_is_written(page):
    with pytest.raises(ValueError, match="no part between <!-- begin three -->"):
        measured.Report("three").write()
    assert page.read_bytes() == PAGE.encode()


def test_the_text_may_hold_anything_but_the_end():
    assert with_part(PAGE, "two", r"\1 <!-- begin one -->").endswith("\\1 <!-- begin one -->\n<!-- end two -->")


def test_the_placer_writes_what_it_prints_if_asked(page, monkeypatch, capsys):
    page.write_text("<!-- begin placer -->\n<!-- end placer -->")
    monkeypatch.setattr(placer, "CASES", {})
    monkeypatch.setattr(placer, "_seconds_for_5000", lambda: (0.5, 0.25))
    monkeypatch.setattr(placer, "machine", lambda: "a processor")
    monkeypatch.setattr("sys.argv", ["placer", "--ops", "3"])
    placer.main()
    assert page.read_text() == "<!-- begin placer -->\n<!-- end placer -->", "nothing is written unasked"
    printed = capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["placer", "--ops", "3", "--write"])
    placer.main()
    assert "a processor" in printed and printed.partition("load average")[0] in page.read_text()


class Players:
    """In place of the processes in which libraries run: each measures its own number."""

    def __init__(self, library):
        self.library = library

    def measure(self, name, part):
        assert part in {"dtflab": ("prepare", "empty"), "bare": ("bare",)}.get(self.library, ("prepare",))
        return [float(len(self.library)) if part != "empty" else 1.0]

    def close(self): ...


def test_a_table_has_each_row_with_its_verdict(page, monkeypatch, capsys):
    page.write_text("<!-- begin bench -->\n<!-- end bench -->")
    rows = {"with": Row("s", 2), "missed": Row("s", 0.5), "without": Row("s"), "aim": Row("s", aim=3)}
    workloads = {name: Workload({name: row}, None, 1) for name, row in rows.items()}
    workloads["floor"] = Workload({"floor": Row("s", 0.01)}, None, 1, bare=lambda: None)
    workloads["steps"] = Workload({"steps": Row("s", 0.7)}, None, 1, empty=lambda tf: None, in_tensorflow=True)
    monkeypatch.setattr(bench, "WORKLOADS", workloads)
    monkeypatch.setattr(bench, "Player", Players)
    monkeypatch.setattr("sys.argv", ["benchmarks"])
    bench.main()
    assert page.read_text() == "<!-- begin bench -->\n<!-- end bench -->", "nothing is written unasked"
    monkeypatch.setattr("sys.argv", ["benchmarks", "--write"])
    bench.main()
    written = page.read_text()
    assert f"{measured.processor()}, " in written.split("\n")[4]
    found = {line.split()[0]: " ".join(line.split()[5:]) for line in written.split("\n") if " 6.000 s " in line}
    assert found == {
        "with": "0.60 ≤ 2 yes (number)",
        "missed": "0.60 ≤ 0.5 NO",
        "without": "0.60",
        "aim": "0.60 aim 3 s",
        "floor": "4.000 s 0.60 1.50 ≤ 0.01 NO",
        "steps": "1.000 s 0.60 6.00* ≤ 0.7 yes (number)",
    }
    assert "bars: 2 yes (number), 2 NO" in written and capsys.readouterr().out.count("aim 3 s") == 2


RATE, TIME = Row("el/s", 2), Row("µs", 0.5)


@pytest.mark.parametrize(
    ("row", "dtflab", "other", "bare", "verdict"),
    [
        # a bar is below a time and above a rate
        (TIME, 50, 100, None, "yes (number)"),
        (TIME, 51, 100, None, "NO"),
        (RATE, 200, 100, None, "yes (number)"),
        (RATE, 199, 100, None, "NO"),
        # a floor beyond the bar: within 1.25 times of it
        (TIME, 100, 100, 80, "yes (floor)"),
        (TIME, 101, 100, 80, "NO"),
        (RATE, 80, 100, 100, "yes (floor)"),
        (RATE, 79, 100, 100, "NO"),
        # the number is reached although the floor is not
        (TIME, 50, 100, 60, "yes (number)"),
        (RATE, 200, 100, 150, "yes (number)"),
        # a floor at the bar, or on the near side of it, could be reached, so the number counts
        (TIME, 51, 100, 50, "NO"),
        (TIME, 51, 100, 49, "NO"),
        (RATE, 199, 100, 200, "NO"),
        (RATE, 199, 100, 201, "NO"),
        (TIME, 51, 100, 50.1, "yes (floor)"),
        (RATE, 199, 100, 199.9, "yes (floor)"),
        # the value that a row is compared with is not its floor
        (Row("events/s", 3, "bare"), 290, 1, 100, "NO"),
        (Row("events/s", 3, "bare"), 300, 1, 100, "yes (number)"),
        (Row("GFLOP/s", 0.97, "bare"), 96, 1, 100, "NO"),
        # a ratio to the bare value that does as well as the bar, wherever that value lies
        (Row("s", 0.1, or_bare=1.4), 10, 100, 1, "yes (number)"),
        (Row("s", 0.1, or_bare=1.4), 14, 100, 10, "yes (floor)"),
        (Row("s", 0.1, or_bare=1.4), 14.1, 100, 10, "NO"),
        (Row("s", 0.1, or_bare=1.4), 14, 100, 9.9, "NO"),
        # a value in the unit
        (Row("s", limit=15), 15, 1, None, "yes (number)"),
        (Row("s", limit=15), 16, 100, None, "NO"),
        (Row("s", limit=15), 25, 100, 20, "yes (floor)"),
        (Row("M events/s", limit=0.8), 0.7, 0.1, None, "NO"),
        # nothing to reach
        (Row("µs"), 1, 100, 1, None),
        (Row("µs", aim=0.7), 0.1, 100, 1, None),
        (Row("µs", aim=0.7), 9, 1, 100, None),
    ],
)
def test_a_verdict_names_what_is_reached(row, dtflab, other, bare, verdict):
    values = {"dtflab": dtflab, "TensorFlow": other, **({} if bare is None else {"bare": bare})}
    assert bench.judged(row, values)["verdict"] == verdict


@pytest.mark.parametrize(
    ("row", "bar"),
    [
        (TIME, "≤ 0.5"),
        (RATE, "≥ 2"),
        (Row("events/s", 3, "bare"), "≥ 3 of bare"),
        (Row("s", 0.1, or_bare=1.4), "≤ 0.1 or 1.4 of bare"),
        (Row("s", limit=15), "≤ 15 s"),
        (Row("µs", aim=0.7), "aim 0.7 µs"),
        (Row("µs"), None),
    ],
)
def test_a_bar_is_printed_as_it_is_meant(row, bar):
    assert bench.judged(row, {"dtflab": 1, "TensorFlow": 1, "bare": 1})["bar"] == bar


def test_a_part_of_the_table_is_not_written(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "import", "--write"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "not allowed with argument" in capsys.readouterr().err


class Sizes(Players):
    """In place of players: each line of a curve is as high as its size."""

    def measure(self, name, part):
        return [float(part)] * len(CURVES[name].lines)


def test_scaling_measures_each_size_and_the_odd_ones_and_draws_them(page, monkeypatch, capsys):
    page.write_text("<!-- begin scaling -->\n<!-- end scaling -->")
    monkeypatch.setattr(scaling, "Player", Sizes)
    scaling.main(["--largest", "20000", "--write"])
    written = page.read_text()
    assert measured.processor() in written and "load average" in written.rpartition("```text\n")[2]
    for name, one in CURVES.items():
        text, picture, _ = written.partition(f"]({measured.PICTURES}/{name}.svg)")
        rows = re.findall(r"^[\d,]+  .*", text.rpartition("```text")[2], re.M)
        values = len(one.lines) * (2 if one.in_tensorflow else 1)
        sizes = [size for size in one.sizes if size <= 20_000]
        assert [row.split()[0] for row in rows] == [f"{size:,}" for size in sizes], name
        assert len(rows[0].split()) == 1 + values
        assert picture and "<svg" in (page.parent / measured.PICTURES / f"{name}.svg").read_text()
    with pytest.raises(SystemExit):
        scaling.main(["--only", "ops", "--write"])
    assert "not allowed with argument" in capsys.readouterr().err


def test_every_curve_is_measured_by_a_player():
    small = {"processes": 1, "virtual": 3, "growing": 10}
    with contextlib.closing(players.Player("dtflab")) as player:
        for name, one in CURVES.items():
            values = player.measure(name, str(small.get(name, min(one.sizes))))
            assert len(values) == len(one.lines) and min(values) > 0, name


def test_frames_are_those_of_the_gallery_and_of_the_sliders(page, monkeypatch, capsys):
    @contextlib.contextmanager
    def drawings():
        yield {"curve": lambda: viz.curve([1, 2], {"a": [1, 2]}, "x", "y").picture}

    page.write_text("<!-- begin frames -->\n<!-- end frames -->")
    monkeypatch.setattr(frames, "drawings", drawings)
    before = +hosts._in_virtual_time
    frames.main(["--rounds", "1", "--write"])
    rows = [line.partition(":")[0].split()[0] for line in page.read_text().splitlines() if line.endswith("KB")]
    assert rows == ["curve", "network", "workers", "gpu"]
    assert +hosts._in_virtual_time == before  # the cluster is stopped


def test_a_card_is_named_with_its_host(page, monkeypatch):
    page.write_text("<!-- begin gpu -->\n<!-- end gpu -->")
    monkeypatch.delenv("DTFLAB_GPUS", raising=False)
    monkeypatch.setattr(hosts, "_asked", None)
    monkeypatch.setattr(gpu, "PERCEPTRONS", {})
    with fake_cupy.installed():
        gpu.main(["--sizes", "8", "--seconds", "0", "--write"])
    assert "Stand-in: 4 multiprocessors" in page.read_text() and measured.processor() in page.read_text()
    assert "matmul 8 float32" in page.read_text()


def test_without_a_card_the_section_stays(page, monkeypatch):
    monkeypatch.setattr(gpu.cuda, "problem", lambda: "there is none")
    gpu.main(["--write"])
    assert page.read_bytes() == PAGE.encode()


@pytest.mark.parametrize("command", ["bench", "frames", "gpu", "placer", "scaling"])
def test_the_page_has_a_section_of_each_command(command):
    text = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    with_part(text, command, "")
