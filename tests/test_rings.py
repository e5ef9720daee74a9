"""The quick ring: which tests are in it, what they may not do, and what makes a record of an answer stale."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tests import durations, rings
from tests.house import ROOT
from tests.oracle import answers, likeness, sources, tensorflow1
from tests.oracle.notation import decode, encode

FOLDERS = sorted((ROOT / "tests").glob("*/oracle"))

# ---- what a quick test may not do ----


def test_a_quick_test_that_imports_tensorflow_fails():
    with pytest.raises(pytest.fail.Exception, match=r"a quick test imports tensorflow\.compat"):
        rings.NoTensorFlow().find_spec("tensorflow.compat")
    assert rings.NoTensorFlow().find_spec("tensor") is None


def test_a_quick_test_that_starts_a_process_fails(monkeypatch):
    monkeypatch.setattr(rings, "_quick_test_runs", True)
    with pytest.raises(pytest.fail.Exception, match="a quick test starts a process"):
        rings._no_processes("os.fork", ())
    rings._no_processes("open", ())
    monkeypatch.setattr(rings, "_quick_test_runs", False)
    rings._no_processes("os.fork", ())


NEEDS = {
    "import tensorflow.compat.v1 as tf": "TensorFlow",
    "from tensorboard.backend import x": "TensorFlow",
    'import pytest\ntf = pytest.importorskip("tensorflow").compat.v1': "TensorFlow",
    "from tests.op_runs import build": "TensorFlow",  # imports it
    "def test():\n    import tensorflow": None,  # the test fails
    "import dtflab": None,
}


@pytest.mark.parametrize("text", NEEDS)
def test_a_module_that_loads_tensorflow_is_not_in_the_quick_ring(text, tmp_path, monkeypatch):
    monkeypatch.setattr(rings, "HERE", tmp_path)
    path = tmp_path / "test_it.py"
    path.write_text(text)
    assert rings.module_needs(path) == NEEDS[text]


STARTS = {
    "import subprocess\ndef test(): subprocess.run([])": True,
    "import subprocess\ndef run(): subprocess.run([])\nclass A:\n    def b(self): run()\ndef test(): A().b()": True,
    "from multiprocessing import Process\ndef test(): Process()": True,
    'ENGINES = ["process"]\ndef test(): ENGINES': True,
    'def test(): magic("%dtf_cluster --ps 1 --engine process")': True,
    'def test(): magic("%dtf_cluster --ps 1 --engine grpc")': False,
    "from tests.house import tracked_files\ndef test(): tracked_files()": True,
    "from tests import house\ndef test(): house.tracked_files()": True,
    "from tests import house\ndef test(): house.sources()": False,
    "import subprocess\ndef other(): subprocess.run([])\ndef test(): pass": False,
}


@pytest.mark.parametrize("text", STARTS)
def test_a_test_that_mentions_processes_is_not_in_the_quick_ring(text, tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(text)
    assert rings._starts_processes(path, "test") is STARTS[text]


@pytest.mark.parametrize(("fixture", "reason"), [("one", "processes"), ("other", None)])
def test_a_fixture_of_a_conftest_above_counts(fixture, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(rings, "HERE", tmp_path)
    text = "import subprocess\ndef one(): subprocess.run([])\ndef other(): pass"
    (tmp_path / "conftest.py").write_text(text)
    (tmp_path / "deeper").mkdir()
    path = tmp_path / "deeper" / "test_it.py"
    path.write_text(f"def test({fixture}): pass")
    item = SimpleNamespace(path=path, originalname="test", fixturenames=[fixture], iter_markers=list)
    assert rings.why_not_quick(item) == reason


@pytest.mark.parametrize(
    ("folder", "mark", "runs"),
    [("ops", None, False), ("ops", "slow", True), ("ops/oracle", None, True), ("browser", None, True)],
)
def test_what_runs_beyond_the_quick_ring_is_all_that_it_does_not_run_alike(folder, mark, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(rings, "HERE", tmp_path)
    path = tmp_path / folder / "test_it.py"
    path.parent.mkdir(parents=True)
    path.write_text("def test(): pass")
    marks = [SimpleNamespace(name=mark)] if mark else []
    item = SimpleNamespace(path=path, originalname="test", fixturenames=[], iter_markers=lambda: marks)
    assert rings.beyond_quick(item) is runs


def test_ci_leaves_out_no_test_that_the_quick_ring_has_not_run_before():
    """Both on the same Python: `make` knows one."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    makes = [line for line in lines if line.startswith("make ")]
    (beyond,) = (number for number, line in enumerate(makes) if "--beyond-quick" in line)
    assert makes[beyond].startswith("make test ") and "make quick" in makes[:beyond] and "set -euo pipefail" in lines


# ---- records ----

MODULE = '''
import numpy as np
TABLE = {"a": 1}

def helper(x):
    """Adds."""
    return x + TABLE["a"]  # one

def unrelated():
    return 2

@decorated(3)
def test_it():
    return helper(np.ones(3))
'''
CHANGES = {
    "nothing": ("", "", False),
    "the test": ("np.ones(3)", "np.ones(4)", True),
    "a decorator": ("decorated(3)", "decorated(4)", True),
    "what it calls": ('x + TABLE["a"]', 'x - TABLE["a"]', True),
    "a table": ('"a": 1', '"a": 2', True),
    "another function": ("return 2", "return 3", False),
    "a docstring": ("Adds.", "Adds one.", False),
    "a blank line": ("def unrelated", "\n\n\ndef unrelated", False),
    "an import from another package": ("import numpy as np", "from dtflab.ops import np", False),
    "a layout": ('return x + TABLE["a"]', "return (\n        x\n        + TABLE['a']\n    )", False),
    "a line of comment": ("def helper", "# Adds.\ndef helper", False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_record_is_stale_after_a_change_of_what_it_depends_on(change, tmp_path):
    before, after, stale = CHANGES[change]
    prints = []
    for i, text in enumerate((MODULE, MODULE.replace(before, after) if before else MODULE)):
        path = tmp_path / f"test_{i}.py"
        path.write_text(text)
        prints.append(sources.fingerprint(path, frozenset({"test_it"})))
    assert (prints[0] != prints[1]) is stale


def test_a_change_in_a_helper_of_all_tests_counts():
    path = ROOT / "tests" / "ops" / "oracle" / "test_cond.py"
    reached = sources.reached(path, ["test_same_graph"])
    shared = ROOT / "tests" / "oracle" / "graph_defs.py"
    assert {(shared, "assert_same_graph"), (shared, "nodes"), (shared, "_attr")} <= reached


VALUES = [
    None,
    True,
    1,
    -0.0,
    float("inf"),
    1e300,
    "text \ud800 \0",
    b"\0\xff",
    1 + 2j,
    (),
    [],
    {},
    (1, [2, (3,)]),
    {"a": {1: (2,)}, (1, 2): None},
    {1, 2},
    np.float32(1.5),
    np.int64(-3),
    np.bool_(True),
    np.array("text"),
    np.zeros((0, 3)),
    np.arange(6, dtype=np.uint8).reshape(2, 3).T,
    np.array([1, 2], ml_dtypes.bfloat16),
    np.array([b"a\0", "b", [1]], object),
    np.array([1 + 1j]),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value).replace("\n", " "))
def test_values_are_read_as_they_were_written(value):
    again = decode(encode(value))
    assert type(again) is type(value) and repr(again) == repr(value)
    if isinstance(value, np.ndarray):
        assert again.dtype == value.dtype and again.shape == value.shape and again.flags.writeable


def test_places_of_programs_are_not_recorded():
    error = 'defined at:\n    File "/srv/a.py", line 3, in f\n    File "b.py", line 12, in <module>\nNode: x'
    assert decode(encode([error])) == ["defined at:\nNode: x"]


@pytest.mark.parametrize(
    "value", [iter([]), ValueError, ValueError("x"), [range(3)]], ids=lambda value: type(value).__name__
)
def test_what_has_no_notation_is_refused(value):
    with pytest.raises(TypeError, match="has no notation"):
        encode(value)


# ---- replayed and compared ----


def tape(monkeypatch: pytest.MonkeyPatch, kept: dict, live: bool, version: str = "2.21") -> answers.Tape:
    """That of a test whose code has the fingerprint "now", with this record in its folder."""
    monkeypatch.setattr(answers, "fingerprint_of", lambda item: "now")
    monkeypatch.setattr(answers, "kept_in", lambda folder: {"test_it.py::test_it[a]": kept} if kept else {})
    monkeypatch.setattr(tensorflow1, "load", lambda: "TensorFlow")
    monkeypatch.setattr(tensorflow1, "version", lambda: version)
    item = SimpleNamespace(path=Path("tests/ops/oracle/test_it.py"), name="test_it[a]", iter_markers=lambda name: [])
    return answers.Tape(item, live)


def fresh(*values: object) -> dict:
    return {"of": "now", "tensorflow": "2.21", "answers": list(map(encode, values))}


STALE = fresh(1) | {"of": "before"}
OF_ANOTHER = fresh(1) | {"tensorflow": "2.20"}


def test_without_tensorflow_the_record_answers(monkeypatch):
    played = tape(monkeypatch, fresh([1], (2,)), live=False)
    assert [played.next(None), played.next(None)] == [[1], (2,)] and not played.wrong()


def test_where_no_tensorflow_is_installed_a_record_of_any_version_counts(monkeypatch):
    def no_package(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", no_package)
    version = tensorflow1.version.__wrapped__()
    played = tape(monkeypatch, OF_ANOTHER, live=False, version=version)
    assert version == "" and played.next(None) == 1


@pytest.mark.parametrize("kept", [STALE, OF_ANOTHER, {}], ids=["stale", "another version", "none"])
def test_without_a_fresh_record_the_quick_ring_skips_and_the_full_one_fails(kept, monkeypatch):
    with pytest.raises(pytest.skip.Exception, match="no fresh record"):
        tape(monkeypatch, kept, live=False).next(None)
    asked = tape(monkeypatch, kept, live=True)
    assert asked.next(lambda tf: 1) == 1 and "no fresh record" in asked.wrong()


def test_with_tensorflow_its_answer_of_today_counts_and_the_record_must_hold_the_same(monkeypatch):
    records = {"": fresh("TensorFlow"), "differs from": fresh("other"), "no fresh record": fresh("TensorFlow", 2)}
    for wrong, kept in records.items():
        asked = tape(monkeypatch, kept, live=True)
        assert (
            asked.next(lambda tf: tf) == "TensorFlow" and wrong in asked.wrong() and bool(asked.wrong()) is bool(wrong)
        )


ALIKE = [
    ("step 12 took 0.5 s at 0x7f", "step 3 took 1e-05 s at 0xab"),
    (np.float32([1000, 0]), np.float32([1000.1, 1e-4])),
    (0.25, 0.2500001),
    ((1, [b"a", None]), (1, [b"a", None])),
    (np.float64("nan"), np.float64("nan")),
    ({"a": 1.0, "b": np.array([b"x", 1.0], object)}, {"a": 1.0 + 1e-9, "b": np.array([b"x", 1.0], object)}),
]
UNLIKE = [
    ("InvalidArgumentError: x", "InternalError: x"),
    (1, 2),
    (1, 1.0),
    ((1,), [1]),
    ([1], [1, 1]),
    ({"a": 1}, {"b": 1}),
    (0.25, 0.26),
    (np.float32([1, 0]), np.float32([1, 0.1])),
    (np.float32(1), np.float64(1)),
    (np.zeros(2), np.zeros((1, 2))),
    (np.float32([np.nan]), np.float32([np.inf])),
    (np.int32([1, 2]), np.int32([2, 1])),
    (np.array([b"a"], object), np.array([b"b"], object)),
    ({1}, {2}),
]


@pytest.mark.parametrize("pair, alike", [(pair, True) for pair in ALIKE] + [(pair, False) for pair in UNLIKE], ids=repr)
def test_a_record_is_like_an_answer(pair, alike):
    found = [*likeness.differences(*pair)]
    assert (found == []) is alike, found


def test_an_answer_in_the_order_of_a_hash_table_is_compared_in_any_order():
    recorded = [("a", {"b": 1}), b"xy", np.array([2.5])]
    assert [*likeness.unordered(recorded, [b"yx", ("b", 1), np.array([2.5]), "a"])] == []
    for other in (recorded[1:], [*recorded, None], ["c", {"b": 1}, *recorded[1:]], ["a", {"b": True}, *recorded[1:]]):
        assert [*likeness.unordered(recorded, other)] != [], other


def test_records_are_small():
    sizes = [path.stat().st_size for path in (ROOT / "tests").glob("*/oracle/answers.json.xz")]
    assert len(sizes) >= 9 and sum(sizes) < 5e6


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_each_record_belongs_to_a_test_that_is_there(folder):
    for name in answers.kept_in(folder):
        file, _, function = name.partition("[")[0].partition("::")
        assert function in sources.module(folder / file).made_by, f"{name}: make record"


def test_long_files_are_there_and_begin_first_then_slow_folders_and_then_those_of_most_tests():
    assert [file for file in durations.LONG if not (rings.HERE / file).is_file()] == []
    files = ["few.py", "many.py", durations.LONG[1], "many.py", durations.LONG[0], "interop/few.py"]
    items = [SimpleNamespace(path=rings.HERE / file, number=number) for number, file in enumerate(files)]
    durations.pytest_collection_modifyitems(items)
    assert [item.number for item in items] == [4, 2, 5, 1, 3, 0]


def test_each_slow_function_is_there():
    for place in rings.slow_functions():
        file, _, function = place.partition("::")
        assert function in (rings.HERE / file).read_text(encoding="utf-8"), place
