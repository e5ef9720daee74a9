"""Bars of bytes per device: every number is there as a bar, as text and in the table."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from dtflab.viz.loads import loads

PS = [f"/job:ps/task:{task}" for task in range(3)]
WAYS = {"yours": {PS[0]: 4000.0, PS[1]: 1000.0}, "by the rule": {PS[0]: 2000, PS[1]: 1500, PS[2]: 1500}}


def bars(picture):
    """Widths of the bars, in order."""
    root = ElementTree.fromstring(picture.svg.split("\n", 1)[1])
    return [float(r.get("width")) for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "14"]


def test_widths_are_in_proportion_to_bytes_and_nothing_is_invisible():
    widths = bars(loads("Five variables", WAYS))
    assert len(widths) == 6
    whole = widths[0]
    shares = [width / whole for width in widths]
    assert shares == pytest.approx([1, 1 / 2, 1 / 4, 3 / 8, 1 / whole, 3 / 8], abs=1e-3)


def test_the_sentence_the_text_and_the_table_say_the_same():
    picture = loads("Five variables", WAYS)
    assert picture.sentence.startswith(
        "Five variables. yours: ps:0 4.0 kB, ps:1 1.0 kB, ps:2 0 B; by the rule: ps:0 2.0 kB"
    )
    ((title, heads, rows),) = picture.tables
    assert (title, heads) == ("Five variables", ("device", "yours", "by the rule"))
    assert rows == [["ps:0", "4.0 kB", "2.0 kB"], ["ps:1", "1.0 kB", "1.5 kB"], ["ps:2", "0 B", "1.5 kB"]]
    for row in rows:
        assert re.search(r"\s+".join(map(re.escape, row)), picture.text)


def test_bars_and_numbers_stay_inside_the_page():
    from dtflab.viz.drawing.svg import text_width

    picture = loads("x", {"a rather long name of a way": dict.fromkeys(PS, 999000000.0)})
    for x, text in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', picture.svg):
        assert float(x) + text_width(text, 11) <= picture._size[0]


def test_odd_loads():
    assert bars(loads("nothing", {"yours": {PS[0]: 0}})) == [1.0]
    assert "nobody" in loads("nobody", {"yours": {}}).text
    with pytest.raises(ValueError, match="Pass at least one way"):
        loads("x", {})
