"""Many inputs to each reader, and a count of the outcomes (`make fuzz`); `--atheris NAME` lets coverage guide it.

Every input follows from its seed, `TARGET:NUMBER`; `--again TARGET:NUMBER` reads it once more and shows the traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from types import FunctionType

import dtflab as tf
from tests.fuzz.targets import Finding, Target, mutated, outcome, targets

READERS = tuple(f"dtflab.{room}" for room in ("base", "cluster", "datasets", "files", "graph"))  # for atheris
SLOW = 2.0  # seconds of the processor, after which an input is reported


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz all that reads bytes from outside.")
    made.add_argument("--inputs", type=int, default=110_000, metavar="N", help="of all targets together (%(default)s)")
    made.add_argument("--only", nargs="+", metavar="TARGET", help="these targets only (all)")
    made.add_argument("--seed", type=int, default=0, metavar="N", help="of the first input (%(default)s)")
    made.add_argument("--again", metavar="TARGET:NUMBER", help="read one input again, and show the whole traceback")
    made.add_argument("--atheris", metavar="TARGET", help="search with atheris, until a finding or Ctrl-C")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    limit_memory()
    tf.logging.set_verbosity(tf.logging.FATAL)  # files that can't be read are reported and ignored
    with tempfile.TemporaryDirectory() as folder, targets(Path(folder)) as found:
        if options.again:
            name, _, number = options.again.rpartition(":")
            print(outcome(found[name], mutated(found[name], rng_of(name, int(number)))))
            return 0
        if options.atheris:
            return with_atheris(found[options.atheris], Path(folder, "corpus"))
        chosen = {name: target for name, target in found.items() if name in (options.only or found)}
        shares = sum(target.share for target in chosen.values())
        failed = 0
        for name, target in chosen.items():
            failed += fuzz(name, target, options.inputs * target.share // shares, options.seed)
    return 1 if failed else 0


def rng_of(name: str, number: int) -> Random:
    """The generator of an input."""
    return Random(f"{name}:{number}")


def limit_memory(gigabytes: int = 4) -> None:
    """An input that asks for more than that is a finding, not the end of the machine."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30,) * 2)


def fuzz(name: str, target: Target, inputs: int, seed: int) -> int:
    """Read that many inputs and print what became of them; returns the number of findings."""
    kinds: Counter[str] = Counter()
    findings: dict[str, str] = {}
    began = time.monotonic()
    for number in range(seed, seed + inputs):
        data, start = mutated(target, rng_of(name, number)), time.process_time()
        try:
            kinds[outcome(target, data)] += 1
        except Finding as finding:
            kinds["FOUND"] += 1
            findings.setdefault(str(finding)[:60], f"{name}:{number}: {finding}")
        if (seconds := time.process_time() - start) > SLOW:
            print(f"slow: {name}:{number} took {seconds:.1f} s of the processor", flush=True)
    shown = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    print(f"{name}: {inputs} inputs in {time.monotonic() - began:.0f} s: {shown}", flush=True)
    for finding in findings.values():
        print(f"  found {finding[:500]}", flush=True)
    return len(findings)


def with_atheris(target: Target, corpus: Path) -> int:
    """Inputs that reach new lines of dtflab are kept and mutated further; a Finding ends the search."""
    import atheris

    def one(data: bytes) -> None:
        outcome(target, data)

    def custom(data: bytes, most: int, seed: int) -> bytes:
        return target.mutate(data or Random(seed).choice(target.seeds), Random(seed))[:most]

    for function in gc.get_objects():
        if isinstance(function, FunctionType) and str(function.__module__).startswith(READERS):
            atheris.instrument_func(function)
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], str(corpus)], one, custom_mutator=custom)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
