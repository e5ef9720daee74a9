"""Records TensorFlow's answers for the quick ring: `python -m tests.oracle.record [files or options of pytest]`.

Without files all answers are recorded again, and those of tests that no longer exist are dropped.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


def main(arguments: list[str]) -> int:
    if not any(Path(argument.partition("::")[0]).exists() for argument in arguments):
        for path in TESTS.glob("*/oracle/answers.json.xz"):
            path.unlink()
        arguments += [str(path) for path in sorted(TESTS.glob("*/oracle"))]
    return pytest.main(["--record", "-q", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
