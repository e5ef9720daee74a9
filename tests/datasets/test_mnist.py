"""`read_data_sets`, on small MNIST files made here, on none, and on broken ones."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import dtflab as tf
from dtflab.datasets.mnist import FILES, read_data_sets

COUNTS = {"train": 60, "t10k": 20}


def idx(array: np.ndarray) -> bytes:
    magic = 2048 + array.ndim
    return b"".join(int(n).to_bytes(4, "big") for n in (magic, *array.shape)) + array.tobytes()


def arrays() -> dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    found = {}
    for name in FILES:
        count = COUNTS[name.split("-")[0]]
        shape = (count, 28, 28) if "images" in name else (count,)
        found[name] = random.randint(0, 256 if "images" in name else 10, shape).astype(np.uint8)
    return found


@pytest.fixture(params=["", ".gz"])
def folder(tmp_path, request):
    for name, array in arrays().items():
        data = idx(array)
        (tmp_path / (name + request.param)).write_bytes(gzip.compress(data) if request.param else data)
    return tmp_path


def test_the_files_are_read(folder):
    data, made = read_data_sets(str(folder), one_hot=True, validation_size=10), arrays()
    assert [part.num_examples for part in data] == [50, 10, 20]
    assert data.train.images.shape == (50, 784) and data.train.images.dtype == np.float32
    pixels = made[FILES[0]].reshape(60, 784)
    np.testing.assert_array_equal(data.validation.images, pixels[:10].astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(data.train.labels.argmax(1), made[FILES[1]][10:])
    np.testing.assert_array_equal(data.test.labels.argmax(1), made[FILES[3]])


def test_forms(folder):
    raw = read_data_sets(str(folder), dtype="uint8", reshape=False, validation_size=0)
    assert raw.train.images.shape == (60, 28, 28, 1) and raw.train.images.dtype == np.uint8
    assert raw.train.labels.dtype == np.uint8 and raw.validation.num_examples == 0
    with pytest.raises(TypeError, match="Invalid image dtype"):
        read_data_sets(str(folder), dtype="float64")
    with pytest.raises(ValueError, match=r"Validation size should be between 0 and 60\. Received: 5000\."):
        read_data_sets(str(folder))


def test_each_epoch_has_every_example_once_in_an_order_of_its_own(folder):
    train = read_data_sets(str(folder), dtype="uint8", validation_size=0, seed=3).train
    everything = sorted(map(bytes, train.images))
    epochs = [[bytes(image) for _ in range(3) for image in train.next_batch(20)[0]] for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [everything] * 2 and epochs[0] != epochs[1]
    in_order = read_data_sets(str(folder), dtype="uint8", validation_size=0).train
    np.testing.assert_array_equal(in_order.next_batch(60, shuffle=False)[0], in_order.images)


def test_without_a_seed_each_call_has_an_order_of_its_own(folder):
    def first_epoch(seed=None):
        with tf.Graph().as_default():  # another test may have given the default graph a seed
            data = read_data_sets(str(folder), dtype="uint8", validation_size=0, seed=seed)
        return data.train.next_batch(60)[0].tobytes()

    assert len({first_epoch() for _ in range(3)}) == 3
    assert first_epoch(seed=0) == first_epoch(seed=0) != first_epoch(seed=1)


def test_without_a_seed_the_graphs_counts(folder):
    def first_epoch(graph_seed):
        with tf.Graph().as_default():
            tf.set_random_seed(graph_seed)
            return read_data_sets(str(folder), dtype="uint8", validation_size=0).train.next_batch(60)[0].tobytes()

    assert first_epoch(3) == first_epoch(3) != first_epoch(4)


@pytest.mark.parametrize("kind, highest", [("float32", 1.0), ("uint8", 1)])
@pytest.mark.parametrize("reshape, shape", [(True, (784,)), (False, (28, 28, 1))])
def test_fake_data(tmp_path, kind, highest, reshape, shape):
    data = read_data_sets(str(tmp_path), fake_data=True, one_hot=True, dtype=kind, reshape=reshape)
    assert [part.num_examples for part in data] == [10_000] * 3
    for size, flags in ((3, [True]), (100, []), (10_001, []), (10_001, [True])):
        images, labels = data.train.next_batch(size, *flags)
        assert images.shape == (size, *shape) and images.dtype == kind and images.min() == images.max() == highest
        assert labels.tolist() == [[1] + [0] * 9] * size
    assert data.test.images.shape == (10_000, *shape) and data.test.labels.shape == (10_000, 10)
    assert read_data_sets(str(tmp_path), fake_data=True).train.next_batch(2)[1].tolist() == [0, 0]


def test_a_folder_without_files_gives_the_digits_in_mnists_form(tmp_path, capsys):
    data = read_data_sets(str(tmp_path / "nothing"), one_hot=True)
    assert "No MNIST files" in capsys.readouterr().err
    assert data.train.images.shape == (1197, 784) and data.test.labels.shape == (400, 10)
    assert data.train.images.min() >= 0 and data.train.images.max() == 1
    assert list(tmp_path.iterdir()) == [], "nothing is written, nothing fetched"
    means = np.stack([data.train.images[data.train.labels.argmax(1) == k].mean(0) for k in range(10)])
    nearest = ((data.test.images[:, None] - means) ** 2).sum(2).argmin(1)
    assert (nearest == data.test.labels.argmax(1)).mean() > 0.85, "they are still digits"


@pytest.mark.parametrize("spoil, words", [
    (lambda data: data[:-1], "truncated or damaged: it announces 60 × 28 × 28 bytes and has 47039"),
    (lambda data: data + b"x", "truncated or damaged"),
    (lambda data: b"\0\0\x08\x01" + data[4:], "Invalid magic number 2049"),
    (lambda data: b"", "Invalid magic number 0"),
])  # fmt: skip
def test_a_wrong_file_is_named(tmp_path, spoil, words):
    for name, array in arrays().items():
        data = idx(array)
        (tmp_path / name).write_bytes(spoil(data) if name == FILES[0] else data)
    with pytest.raises(ValueError, match=words) as caught:
        read_data_sets(str(tmp_path), validation_size=0)
    assert FILES[0] in str(caught.value)


def test_a_broken_gzip_and_a_missing_file_are_named(tmp_path):
    for name, array in arrays().items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
    packed = (tmp_path / f"{FILES[2]}.gz").read_bytes()
    (tmp_path / f"{FILES[2]}.gz").write_bytes(packed[:-40])
    with pytest.raises(ValueError, match=r"t10k-images.*can't be unpacked"):
        read_data_sets(str(tmp_path), validation_size=0)
    (tmp_path / f"{FILES[2]}.gz").unlink()
    with pytest.raises(FileNotFoundError, match=f"{FILES[2]}"):
        read_data_sets(str(tmp_path), validation_size=0)


@pytest.mark.parametrize("name", [FILES[1], FILES[3]])
@pytest.mark.parametrize("one_hot", [True, False])
def test_a_label_that_is_no_digit_is_named(tmp_path, name, one_hot):
    made = arrays()
    made[name][7] = 10
    write(tmp_path, made)
    with pytest.raises(ValueError, match=rf"{name} has labels that are not digits: number 7 is 10, not 0 to 9"):
        read_data_sets(str(tmp_path), one_hot=one_hot, validation_size=0)


@pytest.mark.parametrize("images, labels", [FILES[:2], FILES[2:]])
def test_images_and_labels_of_different_numbers_are_named(tmp_path, images, labels):
    made = arrays()
    count = len(made[labels])
    made[labels] = made[labels][:-1]
    write(tmp_path, made)
    with pytest.raises(ValueError, match=rf"{images} has {count} images, but .*{labels} has {count - 1} labels"):
        read_data_sets(str(tmp_path), validation_size=0)


def write(folder, made):
    for name, array in made.items():
        (folder / name).write_bytes(idx(array))
