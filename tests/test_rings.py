"""The quick ring: which tests are in it, what they may not do, and what makes a record of an answer stale."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tests import rings
from tests.house import ROOT
from tests.oracle import answers, sources, tensorflow1
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


def tape(monkeypatch: pytest.MonkeyPatch, kept: dict, live: bool) -> answers.Tape:
    """That of a test whose code has the fingerprint "now", with this record in its folder."""
    monkeypatch.setattr(answers, "fingerprint_of", lambda item: "now")
    monkeypatch.setattr(answers, "kept_in", lambda folder: {"test_it.py::test_it[a]": kept} if kept else {})
    monkeypatch.setattr(tensorflow1, "load", lambda: "TensorFlow")
    return answers.Tape(SimpleNamespace(path=Path("tests/ops/oracle/test_it.py"), name="test_it[a]"), live)


def fresh(*values: object) -> dict:
    return {"of": "now", "answers": list(map(encode, values))}


STALE = {"of": "before", "answers": ["1"]}


def test_without_tensorflow_the_record_answers(monkeypatch):
    played = tape(monkeypatch, fresh([1], (2,)), live=False)
    assert [played.next(None), played.next(None)] == [[1], (2,)] and played.is_fresh()


@pytest.mark.parametrize("kept", [STALE, {}], ids=["stale", "none"])
def test_without_a_fresh_record_the_quick_ring_skips_and_the_full_one_fails(kept, monkeypatch):
    with pytest.raises(pytest.skip.Exception, match="no fresh record"):
        tape(monkeypatch, kept, live=False).next(None)
    asked = tape(monkeypatch, kept, live=True)
    assert asked.next(lambda tf: 1) == 1 and not asked.is_fresh()


def test_with_tensorflow_its_answer_of_today_counts_and_the_record_must_have_as_many(monkeypatch):
    for kept, is_fresh in ((fresh("TensorFlow"), True), (fresh("other"), True), (fresh("TensorFlow", 2), False)):
        asked = tape(monkeypatch, kept, live=True)
        assert asked.next(lambda tf: tf) == "TensorFlow" and asked.is_fresh() is is_fresh


def test_records_are_small():
    sizes = [path.stat().st_size for path in (ROOT / "tests").glob("*/oracle/answers.json.xz")]
    assert len(sizes) >= 9 and sum(sizes) < 5e6


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_each_record_belongs_to_a_test_that_is_there(folder):
    for name in answers.kept_in(folder):
        file, _, function = name.partition("[")[0].partition("::")
        assert function in sources.module(folder / file).made_by, f"{name}: make record"


def test_each_slow_function_is_there():
    for place in rings.slow_functions():
        file, _, function = place.partition("::")
        assert function in (rings.HERE / file).read_text(encoding="utf-8"), place
