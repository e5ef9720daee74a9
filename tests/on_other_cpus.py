"""Runs the tests that compare numbers as they would run on other CPUs: `make test-numeric`.

OpenBLAS has kernels for each kind of CPU and NumPy loops for each set of instructions; they add in different orders.
Both can be set to use those of an older CPU. TensorFlow's own can't, nor can those of a newer CPU be had.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOMS = [HERE, HERE / "ops", HERE / "nets", HERE / "train", *HERE.glob("*/oracle")]
COMPARES_NUMBERS = re.compile(r"(all|is)close\(|approx\(|array_equal\(|conditions\.")


def files() -> list[str]:
    """The tests of these rooms that compare numbers."""
    found = sorted(path for room in ROOMS for path in room.glob("test_*.py"))
    return [str(path.relative_to(HERE.parent)) for path in found if COMPARES_NUMBERS.search(path.read_text())]


def configurations() -> dict[str, dict[str, str]]:
    """Name → environment variables, as far as this CPU can be another."""
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    kernels = ["Prescott", "Haswell", "Zen"] if platform.machine() in ("x86_64", "AMD64") else []
    if {"X86_V4", "AVX512_SKX"} & {*features}:  # as NumPy calls AVX-512 since 2.4, and before
        kernels.append("SkylakeX")
    found = {kernel: {"OPENBLAS_CORETYPE": kernel} for kernel in kernels}
    return {**found, "NumPy's baseline": {"NPY_DISABLE_CPU_FEATURES": " ".join(features)}} if features else found


def main(arguments: list[str]) -> int:
    """Runs pytest with `arguments` once per configuration, and says at the end which failed."""
    results = {}
    for name, variables in configurations().items():
        print(f"\n==== {name}: {variables}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", *arguments, *files()]
        results[name] = subprocess.run(command, cwd=HERE.parent, env={**os.environ, **variables}).returncode
    print("", *(f"{name}: {'failed' if code else 'passed'}" for name, code in results.items()), sep="\n")
    return int(any(results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
