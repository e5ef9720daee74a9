"""The moving pictures of docs/gallery.md: one for each scene, small, and not in the wheel."""

from __future__ import annotations

from dtflab import course
from tests.browser import gallery
from tests.house import ROOT


def test_the_page_shows_each_scene_and_no_other():
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "python -m tests.browser.gallery"
    assert {path.stem for path in gallery.FOLDER.iterdir()} == {*gallery.SCENES}


def test_they_move_and_are_small_together():
    pictures = [*gallery.FOLDER.glob("*.webp")]
    assert sum(path.stat().st_size for path in pictures) < 5_000_000
    for path in pictures:
        with gallery.Image.open(path) as picture:
            assert (picture.n_frames > 5) == bool(gallery.SCENES[path.stem].steps), path.name


def test_they_are_not_in_the_wheel():
    assert gallery.PAGE.relative_to(ROOT) not in [*course.files(ROOT)]
    assert [path for path in course.files(ROOT) if path.suffix == ".webp"] == []
