"""The claims of notebooks/src/11_claims.py hold, as its cells assert, and turn where what they assume is changed.

For the second, only what the lesson defines is taken from it, none of its runs.
"""

from __future__ import annotations

import ast
import runpy

import numpy as np
import pytest

import dtflab as tf
from tests.house import ROOT
from tests.notebooks.lessons import lessons, wrong

pytestmark = pytest.mark.timeout(900)

SOURCE = ROOT / "notebooks" / "src" / "11_claims.py"
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef)
FREE = tf.sim.Network(tf.sim.Nic("free", 1e18, 0.0, "made up for a test"), 0.0, per_message_cpu_s=0.0)


def is_definition(node: ast.stmt) -> bool:
    """Imports, functions, the slow card and constants, which are in capitals."""
    if isinstance(node, ast.Assign):
        names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        plain = not any(isinstance(part, ast.Name) for part in ast.walk(node.value))
        return names == ["card"] or (plain and all(name.isupper() for name in names))
    return isinstance(node, _DEFINITIONS)


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if is_definition(node)]
    folder = tmp_path_factory.mktemp("lesson")
    (folder / "definitions.py").write_text(ast.unparse(tree))
    names = runpy.run_path(str(folder / "definitions.py"))
    records = folder / "records.bin"
    records.write_bytes(np.random.default_rng(1).bytes(names["RECORDS"] * names["LENGTH"]))
    names["fed"].__globals__["path"] = records
    return names


def test_queries_wait_no_longer_beside_others_until_the_link_is_full(lesson):
    answers = lesson["answers"]
    (alone, wait), (together, same_wait) = answers(1, queries=3), answers(3, queries=3)
    assert together == pytest.approx(3 * alone, rel=0.02) and same_wait == pytest.approx(wait, rel=0.02)
    nbytes = 2000 * 64 * 4
    per_second, longer = answers(6, rows=2000, queries=3)
    assert per_second <= 125e6 / nbytes and longer > 6 * nbytes / 125e6 * 1e3 * 0.9


def test_the_slowest_network_sets_the_time_of_all(lesson):
    same = lesson["search"](4, spread=1e-9)
    assert same.max() == pytest.approx(same.min(), rel=1e-6)
    slow = lesson["search"](4, spread=1e-9, slow=5.0)
    assert slow[1:] == pytest.approx(same[1:]) and slow[0] > 4 * same[0]


@pytest.mark.parametrize(("cores", "longer"), [(1, 2.0), (2, 2.0), (4, 2.0), (8, 1.0), (64, 1.0)])
def test_tasks_share_cores_until_there_are_enough(lesson, cores, longer):
    apart, together = (lesson["multiply"](tasks, cores) for tasks in (["a:1", "b:1"], ["a:1", "a:2"]))
    assert together == pytest.approx(longer * apart, rel=0.02)


@pytest.mark.parametrize(
    ("way", "times"), [("fed", lambda steps: 3 * steps), ("preloaded", lambda _: 30), ("read", int)]
)
def test_bytes_of_each_way_to_a_batch(lesson, way, times):
    """In batches; the whole set has ten."""
    for steps in (1, 10, 20):
        sent, _ = lesson["passed"](lesson[way], steps)
        assert sum(sent.values()) == times(steps) * lesson["BATCH"] * lesson["LENGTH"]


def test_a_file_server_without_limits_is_shared_without_loss(lesson):
    assert lesson["readers"](8, FREE) == pytest.approx(lesson["readers"](1, FREE), rel=0.03)


def test_a_control_dependency_helps_only_what_would_wait(lesson):
    step = lesson["step"]
    at_once, in_turns = (step(one_by_one)[1] for one_by_one in (False, True))
    assert in_turns < 0.8 * at_once
    at_once, in_turns = (step(one_by_one, blocks=1)[1] for one_by_one in (False, True))
    assert in_turns == pytest.approx(at_once)
    at_once, in_turns = (step(one_by_one, network=FREE)[1] for one_by_one in (False, True))
    assert in_turns == pytest.approx(at_once, rel=0.02)


def test_a_small_model_scales_where_the_network_costs_nothing(lesson):
    one, four = lesson["alone"](), lesson["shared"]("async", 4, network=FREE)
    assert lesson["shared"]("async", 4) < one < four


def test_where_gpus_stand_does_not_matter_without_limits(lesson):
    speeds = [lesson["images"](n, 8 // n, FREE, off=["stragglers", "rpc"]) for n in (8, 2)]
    assert speeds[0] == pytest.approx(speeds[1], rel=0.02) and speeds[0] > 7.5


def test_a_slower_network_saturates_earlier(lesson):
    vgg = tf.sim.Profile.from_graph(tf.sim.models.get("vgg16")(8).loss)
    counts = (4, 8, 16, 32, 64)

    def best(network):
        rates = [lesson["split"](n, vgg, 256, 8, network=network, parts=8) for n in counts]
        return counts[int(np.argmax(rates))]

    assert best("1Gb/s") < best("10Gb/s") < best("100Gb/s")


@lessons("11_claims")
def test_runs_clean_twice_in_one_kernel(ran, record_property):
    record_property(f"{ran.name}, both runs", f"{ran.seconds:.0f} s")
    assert wrong(ran.notebook) == []
