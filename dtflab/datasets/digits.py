"""The UCI handwritten digits: 1,797 images of 8×8 pixels.

Stands for `read_data_sets` of `tensorflow/contrib/learn/python/learn/datasets/mnist.py`, in small.
Left out: nothing is downloaded; the file lies next to this module, with its notice (CC BY 4.0).
The rule: which example is in which part never changes, so that accuracies can be compared.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from dtflab.datasets.dataset import Dataset, Datasets

SPLIT_SEED = 1998  # the year of the donation
CLASSES = 10


def digits(one_hot: bool = False, seed: int = 0, validation_size: int = 200, test_size: int = 400) -> Datasets:
    """Train, validation and test examples: 64 features in [0, 1], labels 0 to 9 or one-hot rows.

    `seed` fixes the order of batches; give each worker its own.

    >>> data = digits(one_hot=True)
    >>> images, labels = data.train.next_batch(100)
    >>> images.shape, labels.shape
    ((100, 64), (100, 10))
    """
    with (files(__package__) / "digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
        pixels, classes = stored["images"], stored["labels"]
    if min(validation_size, test_size) < 0 or validation_size + test_size >= len(pixels):
        raise ValueError(f"validation_size + test_size must leave some of the {len(pixels)} examples to train on")
    images = pixels.astype(np.float32) / 16
    labels = np.eye(CLASSES, dtype=np.float32)[classes] if one_hot else classes.astype(np.int64)
    order = np.random.RandomState(SPLIT_SEED).permutation(len(images))
    parts = np.split(order, [test_size, test_size + validation_size])
    test, validation, train = (Dataset(images[rows], labels[rows], seed) for rows in parts)
    return Datasets(train, validation, test)
