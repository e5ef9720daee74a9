"""Patterns of file names."""

from __future__ import annotations

import pytest

from dtflab.files.gfile import glob


@pytest.mark.timeout(60)
def test_many_stars_do_not_try_all_ways(tmp_path):
    (tmp_path / ("a" * 200)).touch()
    assert glob(f"{tmp_path}/{'*a' * 40}*b") == []
    assert len(glob(f"{tmp_path}/{'*a' * 40}*")) == 1


def test_an_empty_set_is_two_characters(tmp_path):
    (tmp_path / "a[]").touch()
    assert glob(f"{tmp_path}/*[]") == [f"{tmp_path}/a[]"]
