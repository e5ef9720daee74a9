"""Notebook 7, the other front end of Jupyter: the same pictures come alive there."""

from __future__ import annotations

import importlib.util

import pytest

from tests.browser.test_browser import complaints, looking, pytestmark as needs_a_browser, write
from tests.browser.test_live import PLACED, PLOT, STEPPED, TOWER, TRACED

pytestmark = [
    *needs_a_browser,
    pytest.mark.skipif(importlib.util.find_spec("notebook") is None, reason="missing: pip install 'notebook>=7.4,<8'"),
]
# Of Notebook 7.6 itself: now and then while it loads its settings, also with a notebook of `1 + 1`.
OWN_ERROR = "uncaught: Cannot read properties of undefined (reading 'schema')"


@pytest.fixture(scope="module")
def look_at_notebook_7(tmp_path_factory):
    yield from looking(tmp_path_factory, "notebook")


def test_pictures_come_alive_in_notebook_7(look_at_notebook_7, tmp_path):
    fresh = "cluster.stop()\ntf.reset_default_graph()"
    report = look_at_notebook_7(
        write(tmp_path / "notebook7.ipynb", *TRACED, fresh, *PLACED, fresh, *STEPPED), "run",
        {"on": PLOT, "do": "click", "at": [0.01, 0.18], "see": "Idle for"},
        {"on": PLOT, "do": "press", "key": "Escape"},
        {"on": PLOT, "do": "press", "key": "c", "see": "Critical path of "},
        {"on": TOWER, "do": "click", "see": "tower0 is open.", "shot": "open"},
        {"on": ".counter", "do": "click", "see": "Set 0 of ?"},
        {"on": '[data-live="steps"] .dtf-button', "nth": 2, "do": "click", "see": "Set 1 of ?"},
        {"on": '[data-live="steps"] .dtf-button', "nth": 2, "do": "press", "key": "End", "see": "The step is over"},
    )  # fmt: skip
    assert [one for one in complaints(report) if one != OWN_ERROR] == []
