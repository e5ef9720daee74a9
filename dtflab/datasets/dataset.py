"""Images with labels, handed out in batches.

Stands for the class `DataSet` of `tensorflow/contrib/learn/python/learn/datasets/mnist.py`.
The rule: each epoch hands out every example once, in a new order; a batch is the caller's to change.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Dataset:
    """Examples, and the place of the next batch among them; threads may share one."""

    def __init__(
        self, images: NDArray[Any], labels: NDArray[Any], seed: int | None = 0, fake_data: bool = False
    ) -> None:
        """`seed` fixes the order of batches, None gives a new one each time; with `fake_data` all batches are fake."""
        if len(images) != len(labels):
            raise ValueError(f"{len(images)} images but {len(labels)} labels")
        self.images, self.labels = images.view(), labels.view()  # the caller's own stay writeable
        self.images.flags.writeable = self.labels.flags.writeable = False
        self.epochs_completed = 0
        self._order = np.arange(len(images))
        self._next = 0
        self._fake_data = fake_data
        # RandomState: NumPy promises that its stream never changes.
        self._random = np.random.RandomState(seed)
        self._lock = threading.Lock()

    @property
    def num_examples(self) -> int:
        return len(self.images)

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The next `batch_size` examples; one that crosses the end of an epoch goes on in the next one.

        With `fake_data`, which old programs use to test themselves, any number of images of ones and labels of class 0.
        """
        if fake_data or self._fake_data:
            images = np.ones((batch_size, *self.images.shape[1:]), self.images.dtype)
            labels = np.zeros((batch_size, *self.labels.shape[1:]), self.labels.dtype)
            labels[..., :1] = labels.ndim > 1
            return images, labels
        if not 1 <= batch_size <= self.num_examples:
            raise ValueError(f"batch_size must be from 1 to {self.num_examples}, got {batch_size}")
        with self._lock:
            rows = self._take(batch_size, shuffle)
        return self.images[rows], self.labels[rows]

    def _take(self, count: int, shuffle: bool) -> NDArray[np.intp]:
        if shuffle and self._next == 0 and self.epochs_completed == 0:
            self._order = self._random.permutation(self.num_examples)
        rest = self._order[self._next : self._next + count]
        self._next += len(rest)
        missing = count - len(rest)
        if not missing:
            return rest
        self.epochs_completed += 1
        self._order = self._random.permutation(self.num_examples) if shuffle else np.arange(self.num_examples)
        self._next = missing
        return np.concatenate([rest, self._order[:missing]])

    def __repr__(self) -> str:
        return f"Dataset({self.num_examples} examples, images {self.images.shape}, labels {self.labels.shape})"


class Datasets(NamedTuple):
    """The three parts that honest training needs."""

    train: Dataset
    validation: Dataset
    test: Dataset
