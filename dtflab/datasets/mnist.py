"""MNIST as TF1's tutorials read it: `from tensorflow.examples.tutorials.mnist import input_data`.

Stands for `tensorflow/contrib/learn/python/learn/datasets/mnist.py`. Left out: downloading; `source_url` is not used.
The rule: four IDX files in the folder are read, plain or gzipped; a folder with none of them gives the package's own
digits, resized to 28×28, so that a program written for 784 inputs runs.
"""

from __future__ import annotations

import gzip
import os
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtflab.datasets.dataset import Dataset, Datasets
from dtflab.datasets.digits import CLASSES, digits
from dtflab.graph import dtypes
from dtflab.graph.scopes import get_default_graph
from dtflab.machine.console import say

SIDE = 28
FAKE_EXAMPLES = 10_000  # what TensorFlow's fake parts say that they have
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_IMAGES, _LABELS = 2051, 2049  # what an IDX file of bytes begins with, by its number of dimensions: 3, 1


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = "",
) -> Datasets:
    """`.train`, `.validation` and `.test`, each with `.images`, `.labels`, `.num_examples` and `.next_batch(n)`.

    Images are rows of 784 (or 28×28×1 without `reshape`), float32 in [0, 1] or uint8 in [0, 255]; labels are digits or,
    if `one_hot`, rows of 10. `seed` fixes the order of batches; without it the graph's seed does, if one is set, else
    each call has a new order. The validation part is the first of the training files. With `fake_data` no file
    is read: 10,000 images of ones of class 0 in each part, and batches of any size.
    ValueError for a file that is not what its name says, FileNotFoundError if only some of the four are there.
    """
    kind = dtypes.as_dtype(dtype).base_dtype
    if kind not in (dtypes.uint8, dtypes.float32):
        raise TypeError(f"Invalid image dtype {kind!r}, expected uint8 or float32")
    if fake_data:
        return Datasets(*(_fake(kind, reshape, one_hot) for _ in Datasets._fields))
    seed = get_default_graph().seed if seed is None else seed
    parts = _from_files(train_dir, validation_size) or _from_digits(train_dir)
    return Datasets(
        *(Dataset(_pixels(images, kind, reshape), _targets(labels, one_hot), seed) for images, labels in parts)
    )


Part = tuple[NDArray[np.uint8], NDArray[np.uint8]]  # images, labels


def _fake(kind: dtypes.DType, reshape: bool, one_hot: bool) -> Dataset:
    """A part that is one image of ones, of class 0, many times over."""
    image = np.ones_like(_pixels(np.zeros((1, SIDE, SIDE), np.uint8), kind, reshape)[0])
    label = _targets(np.zeros(1, np.uint8), one_hot)[0]
    images, labels = (np.broadcast_to(one, (FAKE_EXAMPLES, *np.shape(one))) for one in (image, label))
    return Dataset(images, labels, fake_data=True)


def _from_files(folder: str, validation_size: int) -> list[Part] | None:
    """The parts of MNIST, or None if none of its files is in the folder."""
    paths = {name: _existing(folder, name) for name in FILES}
    missing = [name for name, path in paths.items() if path is None]
    if len(missing) == len(FILES):
        return None
    if missing:
        raise FileNotFoundError(
            f"{folder!r} has only some of MNIST's files; {' and '.join(missing)} (or the same with .gz) are missing."
        )
    train_images, train_labels, test_images, test_labels = map(str, paths.values())
    images, labels = _read_pair(train_images, train_labels)
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"Validation size should be between 0 and {len(images)}. Received: {validation_size}.")
    test, cut = _read_pair(test_images, test_labels), validation_size
    return [(images[cut:], labels[cut:]), (images[:cut], labels[:cut]), test]


def _existing(folder: str, name: str) -> str | None:
    candidates = [os.path.join(folder, name + ending) for ending in (".gz", "")]
    return next((path for path in candidates if os.path.isfile(path)), None)


def _read_pair(images_path: str, labels_path: str) -> Part:
    """Images and their labels, of two files that must fit."""
    images, labels = _read_idx(images_path), _read_idx(labels_path)
    if images.shape[1:] != (SIDE, SIDE):
        size = " × ".join(map(str, images.shape[1:]))
        raise ValueError(f"{images_path} has images of {size} pixels, not {SIDE} × {SIDE}.")
    if len(images) != len(labels):
        raise ValueError(
            f"{images_path} has {len(images)} images, but {labels_path} has {len(labels)} labels. "
            "They do not belong to the same data set; fetch both again."
        )
    wrong = np.flatnonzero(labels >= CLASSES)
    if len(wrong):
        raise ValueError(
            f"{labels_path} has labels that are not digits: "
            f"number {wrong[0]} is {labels[wrong[0]]}, not 0 to {CLASSES - 1}."
        )
    return images, labels


def _read_idx(path: str) -> NDArray[np.uint8]:
    """The array of an IDX file: a number that says its kind, its sizes, and bytes."""
    wanted = _LABELS if "labels" in os.path.basename(path) else _IMAGES
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            data = file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} can't be unpacked: {error}. It is damaged or not gzip; fetch it again.") from None
    if len(data) < 4 or int.from_bytes(data[:4], "big") != wanted:
        found = int.from_bytes(data[:4], "big")
        raise ValueError(f"Invalid magic number {found} in MNIST file {path}: one of this name begins with {wanted}.")
    rank = wanted & 0xFF
    shape = [int.from_bytes(data[4 * i : 4 * i + 4], "big") for i in range(1, rank + 1)]
    content = np.frombuffer(data, np.uint8, offset=min(len(data), 4 * rank + 4))
    if len(content) != np.prod(shape, dtype=np.int64):
        raise ValueError(
            f"{path} is truncated or damaged: it announces {' × '.join(map(str, shape))} bytes and has {len(content)}."
        )
    return content.reshape(shape)


def _from_digits(folder: str) -> list[Part]:
    """The digits of the package in MNIST's form."""
    say(f"No MNIST files in {folder!r}: taking the 1,797 UCI digits, resized to {SIDE}x{SIDE}.")
    parts = digits()
    return [(_resized(part.images), part.labels.astype(np.uint8)) for part in parts]


def _resized(images: NDArray[np.float32]) -> NDArray[np.uint8]:
    """8×8 images in [0, 1], enlarged bilinearly."""
    side = int(np.sqrt(images.shape[1]))
    where = np.clip((np.arange(SIDE) + 0.5) * side / SIDE - 0.5, 0, side - 1)
    spread = np.maximum(0, 1 - np.abs(where[:, None] - np.arange(side)))  # 28×8: what each pixel gives to each
    enlarged = spread @ images.reshape(-1, side, side) @ spread.T
    pixels: NDArray[np.uint8] = np.rint(enlarged * 255).astype(np.uint8)
    return pixels


def _pixels(images: NDArray[np.uint8], kind: dtypes.DType, reshape: bool) -> NDArray[Any]:
    shaped = images.reshape(len(images), SIDE * SIDE) if reshape else images[..., np.newaxis]
    return shaped if kind == dtypes.uint8 else shaped.astype(np.float32) / np.float32(255)


def _targets(labels: NDArray[np.uint8], one_hot: bool) -> NDArray[Any]:
    return np.eye(CLASSES)[labels] if one_hot else labels
