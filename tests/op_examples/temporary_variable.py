"""Ops of variables that live as long as a step."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(("TemporaryVariable", "DestroyTemporaryVariable"), "tests/ops/oracle/test_state.py")
