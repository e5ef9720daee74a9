from __future__ import annotations

import zipfile
from importlib.resources import files

import numpy as np
import pytest

import dtflab.datasets
from dtflab.datasets import Dataset, digits

PARTS = ("train", "validation", "test")


def rows(array):
    return [tuple(row) for row in np.asarray(array).reshape(len(array), -1)]


def counting(count=10, seed=0):
    """Examples that can be told apart: image i and label i hold i."""
    numbers = np.arange(count)
    return Dataset(numbers[:, None].astype(np.float32), numbers, seed)


def test_the_three_parts_hold_every_image_once():
    data = digits()
    assert [getattr(data, part).num_examples for part in PARTS] == [1197, 200, 400]
    everything = np.concatenate([getattr(data, part).images for part in PARTS])
    stored = np.load(files(dtflab.datasets) / "digits.npz")["images"]
    assert sorted(rows(everything)) == sorted(rows(stored.astype(np.float32) / 16))


def test_features_and_labels():
    data = digits()
    for part in PARTS:
        images, labels = getattr(data, part).images, getattr(data, part).labels
        assert images.dtype == np.float32 and images.shape[1:] == (64,)
        assert images.min() == 0 and images.max() == 1
        assert labels.dtype == np.int64 and set(labels) == set(range(10))


def test_one_hot_rows_say_the_same_as_integers():
    for part in PARTS:
        rows_, integers = getattr(digits(one_hot=True), part).labels, getattr(digits(), part).labels
        assert rows_.dtype == np.float32 and rows_.shape == (len(integers), 10)
        assert (rows_.sum(axis=1) == 1).all() and (rows_.argmax(axis=1) == integers).all()


def test_the_split_never_changes():
    first, again = digits(seed=1), digits(seed=2)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(first, part).images, getattr(again, part).images)
    assert first.train.labels[:10].tolist() == [3, 7, 5, 8, 0, 7, 9, 8, 8, 6]


def test_sizes_can_be_chosen():
    data = digits(validation_size=0, test_size=797)
    assert [part.num_examples for part in data] == [1000, 0, 797]
    with pytest.raises(ValueError, match="leave some of the 1797"):
        digits(test_size=1797)


def test_a_seed_gives_one_order():
    batches = [digits(seed=seed).train.next_batch(50)[1].tolist() for seed in (3, 3, 4)]
    assert batches[0] == batches[1] != batches[2]


def test_an_epoch_is_every_example_once_in_an_order_of_its_own():
    data = counting()
    epochs = [np.concatenate([data.next_batch(5)[1] for _ in range(2)]).tolist() for _ in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_a_batch_crosses_the_end_of_an_epoch():
    data = counting()
    labels = np.concatenate([data.next_batch(4)[1] for _ in range(5)])
    assert sorted(labels[:10]) == sorted(labels[10:]) == list(range(10))
    assert data.epochs_completed == 1  # as in TensorFlow's tutorial: the next call starts the third epoch


def test_images_and_labels_stay_together():
    data = counting(7)
    for _ in range(20):
        images, labels = data.next_batch(3)
        assert images[:, 0].tolist() == labels.tolist()


def test_without_shuffle_batches_are_in_order():
    data = counting(4)
    assert [data.next_batch(3, shuffle=False)[1].tolist() for _ in range(3)] == [
        [0, 1, 2],
        [3, 0, 1],
        [2, 3, 0],
    ]


def test_a_batch_is_the_callers_own():
    data = counting()
    images, labels = data.next_batch(10)
    images[:], labels[:] = -1, -1
    assert data.images.min() == data.labels.min() == 0
    with pytest.raises(ValueError, match="read-only"):
        data.images[0] = 1


@pytest.mark.parametrize("size", [0, -1, 11])
def test_a_batch_size_that_cannot_be(size):
    with pytest.raises(ValueError, match=f"from 1 to 10, got {size}"):
        counting().next_batch(size)


def test_images_and_labels_must_pair_up():
    with pytest.raises(ValueError, match="3 images but 2 labels"):
        Dataset(np.zeros((3, 1), np.float32), np.zeros(2))


def test_the_file_is_plain_and_small_and_has_its_notice():
    folder = files(dtflab.datasets)
    notice = (folder / "digits.NOTICE.md").read_text()
    assert "Alpaydin" in notice and "Kaynak" in notice and "CC BY 4.0" in notice and "1998" in notice
    with (folder / "digits.npz").open("rb") as file:
        assert zipfile.ZipFile(file).namelist() == ["images.npy", "labels.npy"]
        assert file.seek(0, 2) < 64_000
