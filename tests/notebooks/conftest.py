"""One run of a notebook for all tests of a module that look at it."""

from __future__ import annotations

import pytest

from tests.notebooks.lessons import Ran, run_twice


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)  # as in each test (tests/conftest.py), which begins later
        return run_twice(request.param, tmp_path_factory.mktemp("lesson"))
