"""docs/all_reduce.md: its program prints what stands below it, and what it says of bytes is what the schedules do."""

from __future__ import annotations

import re
import subprocess
import sys

import dtflab as tf
from tests.house import ROOT

PAGE = (ROOT / "docs" / "all_reduce.md").read_text(encoding="utf-8")


def test_the_program_prints_what_stands_below_it():
    program, printed = re.search(r"```python\n(import.*?)```\n```text\n(.*?)```", PAGE, re.S).groups()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [re.findall(r"([a-z_]+) +([\d.]+) ms a step, loss ([\d.]+)", text) for text in (done.stdout, printed)]
    assert len(rows[0]) == 4
    assert rows[0] == rows[1]


def test_names_are_there():
    for name in re.findall(r"tf\.train\.(\w+)\(", PAGE):
        assert hasattr(tf.train, name), name
