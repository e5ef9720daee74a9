"""The teacher's tools in a virtual environment of their own, `make .venv-teacher/.done`: nbgrader and otter-grader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.house import ROOT

BIN = Path(os.environ.get("DTFLAB_TEACHER_VENV", ROOT / ".venv-teacher")) / "bin"


def tool(name: str) -> str:
    """The path of a tool; without the environment the test is skipped, which in CI is a failure."""
    if not (BIN / name).exists():
        pytest.skip(f"there is no {name}: make .venv-teacher/.done")
    return str(BIN / name)


def environment(home: Path) -> dict[str, str]:
    """The tools' environment: themselves on PATH (nbgrader calls alembic), this dtflab, and a home of their own."""
    own = {
        name: str(home / ".home" / name.lower())
        for name in ("HOME", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")
    }
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **own, **path, "JUPYTER_RUNTIME_DIR": str(home / ".home" / "runtime")}
