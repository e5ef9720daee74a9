"""Ops of stacks, which only mean something several at a time."""

from __future__ import annotations

_OPS = ("StackV2", "StackPushV2", "StackPopV2", "StackCloseV2")
IN_PROGRAMS = dict.fromkeys(_OPS, "tests/ops/oracle/test_stack.py")
