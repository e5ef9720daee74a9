"""PNG files: what one library writes the other reads, and both see the same pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab

BOTH = (real_tf, dtflab)


def run(tf: Any, make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make(tf))


def pixels(kind: Any, *shape: int) -> np.ndarray:
    """Noise, and a slope that makes an encoder choose other filters."""
    random = np.random.RandomState(0)
    noise = random.randint(0, np.iinfo(kind).max + 1, shape)
    slope = np.arange(shape[1])[None, :, None] * 7 + np.arange(shape[0])[:, None, None] * 3
    noise[shape[0] // 2 :] = (slope + random.randint(0, 3, shape))[shape[0] // 2 :]
    return noise.astype(kind)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_both_read_what_either_wrote(kind, channels):
    image = pixels(kind, 24, 17, channels)
    for writer in BOTH:
        for level in (-1, 0, 9):
            file = run(writer, lambda tf, n=level: tf.image.encode_png(tf.constant(image), compression=n))
            for wanted in (0, 1, 3, 4):
                for dtype in ("uint8", "uint16"):
                    seen = [run(tf, lambda tf, w=wanted, d=dtype, f=file: tf.image.decode_png(f, w, d)) for tf in BOTH]
                    assert seen[0].dtype == seen[1].dtype
                    np.testing.assert_array_equal(seen[1], seen[0])
            np.testing.assert_array_equal(run(dtflab, lambda tf, f=file: tf.io.decode_png(f, dtype=kind)), image)


def test_a_batch_is_written_as_its_images():
    images = np.stack([pixels(np.uint8, 4, 5, 3), pixels(np.uint8, 4, 5, 3)[::-1]])
    files = run(dtflab, lambda tf: tf.image.encode_png(tf.constant(images)))
    assert run(real_tf, lambda tf: tf.image.encode_png(tf.constant(images))).shape == files.shape == (2,)
    for file, image in zip(files, images, strict=True):
        np.testing.assert_array_equal(run(real_tf, lambda tf, f=file: tf.image.decode_png(f)), image)


def test_errors_are_tensorflows():
    good = run(dtflab, lambda tf: tf.image.encode_png(tf.constant(pixels(np.uint8, 3, 4, 3))))
    bad = bytearray(good)
    bad[45] ^= 1
    calls = [
        lambda tf: tf.image.decode_png(b"junk"), lambda tf: tf.image.decode_png(good[:-20]),
        lambda tf: tf.image.decode_png(good[:40]), lambda tf: tf.image.decode_png(bytes(bad)),
        lambda tf: tf.image.decode_png([good]), lambda tf: tf.image.decode_png(good, channels=2),
        lambda tf: tf.image.decode_png(good, dtype=tf.int32), lambda tf: tf.image.encode_png(np.zeros((2, 2, 1), "f")),
        lambda tf: tf.image.encode_png(tf.zeros([2, 2, 5], tf.uint8)), lambda tf: tf.image.encode_png([[1]]),
        lambda tf: tf.image.encode_png(tf.zeros([2, 2], tf.uint8)),
        lambda tf: tf.image.encode_png(tf.zeros([2, 2, 1], tf.uint8), compression=10),
    ]  # fmt: skip
    for call in calls:
        kinds = []
        for tf in BOTH:
            with pytest.raises(Exception) as caught:  # the classes are compared
                run(tf, call)
            kinds.append(type(caught.value).__name__)
        assert kinds[1] == kinds[0]
