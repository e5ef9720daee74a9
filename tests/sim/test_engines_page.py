"""docs/engines.md: every engine and every test that it names exists, and no engine is missing from it."""

import re

from tests.house import PACKAGE, ROOT

PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
ROWS = [row for row in PAGE.splitlines() if row.startswith("| ") and "`dtflab/" in row]
# What engines are given and what they give back, in sim/engine/; everything else in there runs steps.
DATA = set(
    "cluster_models critical_path fitted job layer_costs layers_of_graph network_profile parameters profile_of_graph "
    "profile_of_table record stragglers traffic".split()
)


def test_what_it_names_exists():
    named = re.findall(r"`((?:dtflab|tests)/[\w/]+\.py)`", PAGE)
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_engine_has_a_question_and_every_question_a_test():
    engines = {path.stem for path in (PACKAGE / "sim" / "engine").glob("*.py")} - DATA - {"__init__"}
    assert engines - {stem for row in ROWS for stem in re.findall(r"/(\w+)\.py", row)} == set()
    assert len(ROWS) == 7
    assert [row for row in ROWS if "tests/" not in row] == []
