"""One process with TensorFlow in it per behaviour, for all interop tests; it takes seconds to load."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.interop.tf_process import TensorFlow


def _process(v2: bool) -> Iterator[TensorFlow]:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed: pip install dtflab[tensorflow]")
    process = TensorFlow(v2)
    yield process
    process.stop()


@pytest.fixture(scope="session")
def tensorflow() -> Iterator[TensorFlow]:
    """TensorFlow after `disable_v2_behavior()`."""
    yield from _process(v2=False)


@pytest.fixture(scope="session")
def tensorflow_2() -> Iterator[TensorFlow]:
    """TensorFlow as it comes."""
    yield from _process(v2=True)


@pytest.fixture(scope="session", params=["v1", "v2"])
def any_tensorflow(request: pytest.FixtureRequest) -> TensorFlow:
    """Both, one after the other."""
    return request.getfixturevalue("tensorflow" if request.param == "v1" else "tensorflow_2")
