"""One TensorFlow for all oracle tests: as `disable_v2_behavior()` leaves it, which is what dtflab is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest


def load() -> None:
    """Import TensorFlow for the tests of a module; if it is missing, they say so themselves."""
    with contextlib.suppress(ImportError):
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()


@pytest.fixture(scope="module")
def eager() -> Iterator[None]:
    """For the tests that use TensorFlow as a calculator: `pytestmark = pytest.mark.usefixtures("eager")`."""
    from tensorflow.python.eager import context

    with context.eager_mode():
        yield
