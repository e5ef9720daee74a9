"""Ops whose values stay in a session."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(
    ("GetSessionHandle", "GetSessionTensor", "DeleteSessionTensor"), "tests/ops/oracle/test_session_tensors.py"
)
