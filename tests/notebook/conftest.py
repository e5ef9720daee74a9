"""IPython's shell without a kernel or a browser."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import dtflab as tf
from dtflab.base import error_report
from dtflab.runtime.session import last_session
from dtflab.viz.drawing import front_end
from tests.notebook.cells import MODEL, magic


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setattr(front_end, "_widgets", [])  # the way to a page ends with its test
    monkeypatch.setattr(error_report, "_COLUMNS", 1000)  # tests quote sentences, wherever a cell would break them
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.kernel = None  # as in a notebook, not as in a terminal
    shell.run_cell("import dtflab as tf\ntf.reset_default_graph()").raise_error()
    magic(shell, "%load_ext dtflab")
    yield shell
    magic(shell, "%unload_ext dtflab")
    while session := last_session():  # it would be the newest one of the next test
        session.close()
    tf.reset_default_graph()
    InteractiveShell.clear_instance()


@pytest.fixture
def model(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2", "cluster")
    shell.run_cell(MODEL).raise_error()
    return shell
