"""One TensorFlow for all oracle tests: as `disable_v2_behavior()` leaves it, which is what dtflab is."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests import rings


@cache
def version() -> str:
    """Which TensorFlow is installed, such as 2.21; empty if there is none. No module is looked for."""
    try:
        return ".".join(importlib.metadata.version("tensorflow").split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return ""


def is_there() -> bool:
    return version() != ""


@cache
def load() -> Any:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    """Before the first module that imports it, and where its greetings are captured."""
    if isinstance(collector, pytest.Module) and rings.module_needs(collector.path) == "TensorFlow" and is_there():
        load()
    return (yield)


@pytest.fixture(scope="session")
def real_tf() -> Any:
    """TensorFlow itself, for a test that does more than compare answers; such a test is not in the quick ring."""
    pytest.importorskip("tensorflow")
    return load()


@pytest.fixture(scope="module")
def eager() -> Iterator[None]:
    """For the tests that use TensorFlow as a calculator: `pytestmark = pytest.mark.usefixtures("eager")`."""
    from tensorflow.python.eager import context

    with context.eager_mode():
        yield
