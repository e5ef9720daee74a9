"""Notebooks in a kernel of their own, on a machine that may be busy."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbclient
from nbformat import NotebookNode
from traitlets.config import Config

PATIENCE_S = 600  # for a cell; only one that hangs takes so long


def execute(notebook: NotebookNode, folder: Path, **how: bool | str) -> NotebookNode:
    """The notebook, with what its cells show when they run in a folder."""
    with tempfile.TemporaryDirectory() as sockets:
        # By files: a port that was free may be another program's when the kernel has begun.
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/k"}})
        nbclient.NotebookClient(
            notebook,
            config=config,
            timeout=PATIENCE_S,
            startup_timeout=PATIENCE_S,
            iopub_timeout=PATIENCE_S,
            resources={"metadata": {"path": folder}},
            **how,
        ).execute()
    return notebook
