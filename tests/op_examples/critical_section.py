"""Ops of critical sections."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(("MutexV2", "MutexLock", "ConsumeMutexLock"), "tests/ops/oracle/test_critical_section.py")
