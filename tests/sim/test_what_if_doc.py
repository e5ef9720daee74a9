"""docs/what_if.md: its program prints what stands below it."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.house import ROOT

PAGE = (ROOT / "docs" / "what_if.md").read_text(encoding="utf-8")


def test_the_program_prints_what_stands_below_it():
    program, printed = re.search(r"```python\n(import.*?)```\n```text\n(.*?)```", PAGE, re.S).groups()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed
