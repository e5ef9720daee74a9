"""The exceptions that Python raises where bytes from outside do not hold what they should, and their texts.

A reader of messages or files turns these into one class of `errors`, with the name of the node or the file.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, DecodeError)


def said(error: Exception) -> str:
    """The text of a MALFORMED error. That of a KeyError, say, tells nothing without its class."""
    return str(error) if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {error}"
