"""Reads CuPy's public interface into `cupy_api.txt`, which the strict arrays obey. Needs CuPy installed, no card.

    python tests/cupy_api.py > tests/cupy_api.txt

A line is `constant NAME`, `function NAME PARAMETERS…`, `method NAME PARAMETERS…` or `ufunc NAME LOOPS…`.
"""

import inspect
import re

import cupy
import numpy as np


def parameters(function: object) -> str:
    """Names of the parameters in order; `*` for any number, and before those that are keywords only."""
    try:
        found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        text = re.search(r"\((.*?)\)(?= ->|$)", (function.__doc__ or "()").split("\n")[0])
        parts = [part.strip() for part in text[1].split(",")] if text else []
        return " ".join(
            "*" if p.startswith("*") else re.split("[:=]", p)[0].split()[-1] for p in parts if p != "self" and p
        )
    return " ".join("*" if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) else p.name for p in found if p.name != "self")


def main() -> None:
    """Print the interface."""
    print("version", cupy.__version__)
    tricks, theirs = "lib.stride_tricks.", np.lib.stride_tricks
    for space, of_numpy, prefix in (
        (cupy, np, ""),
        (cupy.fft, np.fft, "fft."),
        (cupy.linalg, np.linalg, "linalg."),
        (cupy.lib.stride_tricks, theirs, tricks),
    ):
        for name in sorted(n for n in dir(space) if not n.startswith("_") and hasattr(of_numpy, n)):
            item = getattr(space, name)
            if isinstance(item, cupy.ufunc):
                print("ufunc", prefix + name, *item.types)
            elif inspect.isclass(item) or not callable(item):
                print("constant", prefix + name)
            else:
                print("function", prefix + name, parameters(item))
    for name in sorted(n for n in dir(cupy.ndarray) if not n.startswith("_") or re.fullmatch("__\\w+__", n)):
        if hasattr(np.ndarray, name) and callable(getattr(cupy.ndarray, name)) and not hasattr(object, name):
            print("method", name, parameters(getattr(cupy.ndarray, name)) if not name.startswith("__") else "")


if __name__ == "__main__":
    main()
