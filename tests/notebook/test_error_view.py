"""Errors that a cell has caught, as it shows them."""

from __future__ import annotations

from dtflab.base import errors

ERROR = errors.UnavailableError(None, None, "no task <ps:0>\nStart it.")


def test_an_error_that_is_shown_says_its_kind_and_its_message(shell):
    forms, _ = shell.display_formatter.format(ERROR)
    assert forms["text/plain"] == "UnavailableError: no task <ps:0>\nStart it."
    assert "<b>UnavailableError</b>\nno task &lt;ps:0&gt;\nStart it.</div>" in forms["text/html"]


def test_other_errors_look_as_ever(shell):
    forms, _ = shell.display_formatter.format(ValueError("no"))
    assert forms == {"text/plain": "ValueError('no')"}


def test_when_dtflab_is_unloaded_its_errors_look_as_ever(shell):
    shell.run_line_magic("unload_ext", "dtflab")
    assert "text/html" not in shell.display_formatter.format(ERROR)[0]
    shell.run_line_magic("load_ext", "dtflab")
