"""The way to an out-of-memory error: which blocks were in use when, what was free, and in which pieces."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.bfc_allocator import BFCAllocator, OutOfMemory
from dtflab.machine.hosts import simulate_gpus
from tests.viz.watched import fits, live, texts

KIB = 1 << 10


class Named(SimpleNamespace):
    """A tensor as a Buffer describes it."""

    def __str__(self):
        return self.name


def tensor(name, nbytes):
    return Named(name=name, dtype=np.dtype(np.float32), shape=(nbytes // 4,), line=None)


def fragmented():
    """The error of 8 KiB of which two blocks of 2 KiB are free that do not touch: 4 KiB, but no 3 KiB."""
    allocator = BFCAllocator("GPU_0_bfc", 8 * KIB, lambda nbytes: True)
    places = [allocator.allocate(2 * KIB, tensor(name, 2 * KIB)) for name in "abcd"]
    for place in (places[0], places[2]):
        allocator.deallocate(place)
    with pytest.raises(OutOfMemory) as raised:
        allocator.allocate(3 * KIB, tensor("e", 3 * KIB))
    error = tf.errors.ResourceExhaustedError(None, None, "full")
    error.exhausted = raised.value.exhausted
    return error


def test_the_frame_is_drawn_over_the_blocks():
    drawn = re.findall(r'class="(edge|chunk)"', tf.viz.memory(fragmented()).svg)
    assert drawn == ["chunk"] * 4 + ["edge"], "the edge of a block, 3 pixels for a projector, would break it"


def in_use(data, place):
    """The names of the blocks in use at a place of the replay."""
    blocks = data["blocks"]
    rows = zip(blocks["first"], blocks["last"], blocks["card"], strict=True)
    return "".join(card[0] for first, last, card in rows if first <= place < last)


def test_every_place_of_the_replay_has_the_blocks_of_that_moment():
    data = live(tf.viz.memory(fragmented()))
    assert [in_use(data, place) for place in range(8)] == ["", "a", "ab", "abc", "abcd", "bcd", "bd", "bd"]
    assert data["lit"] == [-1, 0, 1, 2, 3, 0, 2, -1], "those that are given back are lit, too"


def test_what_was_free_and_in_which_pieces_is_said_at_each_place():
    says = live(tf.viz.memory(fragmented()))["says"]
    assert says[0] == "Before the last 6 allocations: 8.0 KiB are free, the largest free block has 8.0 KiB."
    assert says[4] == "4 of 6: d takes 2.0 KiB. 0 B are free, the largest free block has 0 B."
    assert says[6] == "6 of 6: c gives back 2.0 KiB. 4.0 KiB are free, the largest free block has 2.0 KiB."
    assert says[7] == "3.0 KiB are asked for. The allocation fails.", "the rest stands in the heading"


def test_the_still_is_the_moment_of_the_error():
    picture = tf.viz.memory(fragmented())
    assert picture.svg.count('class="block"') == 2 and picture.svg.count('class="block gone"') == 2
    failed = "When it failed, 3.0 KiB were asked for and 4.0 KiB were free; the largest free block had 2.0 KiB."
    assert picture.sentence == f"Out of memory: {failed}" and failed in " ".join(texts(picture))
    assert {"asked for, 3.0 KiB", "largest free block, 2.0 KiB"} <= set(texts(picture))
    assert [row[0] for row in picture.tables[0][2]] == ["b", "d"] and fits(picture)


def test_a_simulated_card_brings_its_blocks_with_the_error(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="80MiB")
    with tf.device("/gpu:0"):
        kept = tf.Variable(tf.ones([1 << 20]), name="kept")
        large = tf.reduce_sum(tf.tile(kept, [8], name="large"))
    with tf.Session() as sess:
        sess.run(kept.initializer)
        with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
            sess.run(large)
    picture = tf.viz.memory(raised.value)
    assert "variable kept" in picture.text and "32.0 MiB were asked for" in picture.sentence
    assert "test_allocations.py" in picture.text, "the line that made it"


def test_an_error_without_blocks_says_so():
    with pytest.raises(ValueError, match="brings no blocks"):
        tf.viz.memory(tf.errors.ResourceExhaustedError(None, None, "full"))
