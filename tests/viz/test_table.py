"""Tables of results, as a notebook shows them and as text."""

from __future__ import annotations

import pytest

from dtflab import viz

RESULTS = {"capacity": [1, 1000], "time": ["17.4 s", "12.1 s"], "outcome": ["waits <5", "done"], "share": [0.5, 1 / 3]}


def test_numbers_stand_to_the_right_and_texts_are_escaped():
    html = viz.table(RESULTS)._repr_mimebundle_()["text/html"]
    assert '<th scope="col" class="n">capacity</th>' in html and '<td class="n">17.4 s</td>' in html
    assert '<th scope="col">outcome</th>' in html and "<td>waits &lt;5</td>" in html
    assert '<td class="n">1,000</td>' in html and '<td class="n">0.333</td>' in html


def test_as_text():
    text = repr(viz.table({"a": [1, 20], "b": ["x", "y"]}, title="Letters"))
    assert text == "Letters\na   b\n1   x\n20  y"
    assert viz.table({"a": [1]})._repr_mimebundle_()["text/plain"] == "a\n1"


def test_a_title_is_a_headline():
    assert '<div class="head">Letters</div>' in viz.table({"a": [1]}, title="Letters")._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("columns, says", [({}, "not none"), ({"a": [1], "b": []}, r"not \{'a': 1, 'b': 0\}")])
def test_columns_of_several_lengths_are_refused(columns, says):
    with pytest.raises(ValueError, match=says):
        viz.table(columns)
