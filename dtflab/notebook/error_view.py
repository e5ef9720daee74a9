"""An error that a cell has caught and shows: `display(error)`. Lines break at words, not where the page ends."""

from __future__ import annotations

from html import escape
from typing import Any

from dtflab.base.errors import OpError

_STYLE = (
    "font:var(--jp-code-font-size,13px)/1.45 var(--jp-code-font-family,monospace);white-space:pre-wrap;"
    "overflow-wrap:break-word;max-width:100ch;padding:2px 0 2px 10px;"
    "border-left:3px solid var(--jp-error-color1,#c62828)"
)


def error_html(error: OpError) -> str:
    """The kind of the error and its message."""
    return f'<div style="{_STYLE}"><b>{type(error).__name__}</b>\n{escape(error.message)}</div>'


def error_text(error: OpError, printer: Any, cycle: bool) -> None:
    """Print the same."""
    printer.text(f"{type(error).__name__}: {error.message}")
