"""Tables of text and of HTML."""

from __future__ import annotations

from dtflab.base.text_table import html_table, text_table


def test_the_first_column_of_html_is_not_broken_and_all_is_escaped():
    html = html_table(("part", "what"), [["a b", "<c>"], [1, 2]])
    assert html.count("white-space:nowrap") == 3 and "<td style=text-align:left;white-space:nowrap>a b</td>" in html
    assert "&lt;c&gt;" in html and html.count("<tr>") == 3


def test_numbers_of_text_stand_at_the_right():
    assert text_table(("n", "what"), [[5, "x"], [100, "y"]]).splitlines() == ["  n  what", "  5  x", "100  y"]
