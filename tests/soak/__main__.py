"""Training under faults (`make soak`): one parameter server, three workers and their clients in processes of their own.

They are killed, stopped and started again, as a seed says. In the end the model must be right, no step lost, no client
ended by itself, and nothing may have leaked. Exit status 1 if something is wrong. Linux only.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.soak import client
from tests.soak.accounts import Account, Sample, account, grown, restored_of, steps_of
from tests.soak.drawn import WORKERS, Fault, faults
from tests.soak.running import left, running


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.soak", description="Train while tasks and clients fail.")
    made.add_argument("--seconds", type=float, default=600.0, metavar="S", help="how long (%(default)g)")
    made.add_argument("--seed", type=int, default=0, metavar="N", help="of the faults (%(default)s)")
    return made


class Outcome(NamedTuple):
    """All that a soak has found out."""

    suffered: Sequence[Fault]
    complaints: Sequence[str]
    step: int  # the global one
    weights: Sequence[float]
    counts: Sequence[int]  # of each worker's steps
    accounts: Sequence[Account]
    restored: int  # how often
    held: dict[str, list[Sample]]  # by process

    def wrong(self) -> Iterator[str]:
        """The findings, a line each."""
        yield from self.complaints
        for one in self.accounts:
            yield from one.complaints
        for who, samples in self.held.items():
            yield from grown(who, samples)
        right = (client.SLOPE, client.OFFSET)
        if any(abs(found - wanted) > 1e-5 for found, wanted in zip(self.weights, right, strict=True)):
            yield f"the weights are {self.weights}, not {right}"
        # A step is two updates. A fault or a checkpoint may come between them, in each worker.
        if abs(self.step - sum(self.counts)) > WORKERS * (len(self.suffered) + self.restored):
            yield f"the global step is {self.step}, but the workers counted {sum(self.counts)} steps"

    def measured(self) -> Iterator[str]:
        """The figures, a line each."""
        kinds = Counter(f"{fault.kind} {re.split('[:|]', fault.what)[0]}" for fault in self.suffered)
        yield f"{len(self.suffered)} faults: {', '.join(f'{kind} {count}' for kind, count in sorted(kinds.items()))}"
        weights = [round(weight, 6) for weight in self.weights]
        yield f"{self.step:,} global steps, weights {weights}; the workers counted {sum(self.counts):,}"
        returned, again, undone = (sum(one[i] for one in self.accounts) for i in range(3))
        yield f"{returned:,} steps came back; {again:,} more were applied, but their answers were lost"
        yield f"the chief restored a checkpoint {self.restored} times, which undid {undone:,} steps"
        yield f"longest time between two steps of a client: {max(one.longest for one in self.accounts):.1f} s"
        for who, samples in self.held.items():
            early, late = samples[len(samples) // 4], samples[-1]
            pairs = [f"{before:.0f} → {after:.0f} {name}" for name, before, after in zip(Sample._fields, early, late)]
            yield f"{who}: {', '.join(pairs)}"


def soak(seconds: float, seed: int, folder: Path) -> Outcome:
    """Train in a folder for that long, and a little longer until each client has come back."""
    deadline = time.monotonic() + seconds
    suffered: list[Fault] = []
    with running(folder) as run:
        samples = [run.sample()]
        for fault in itertools.takewhile(lambda fault: time.monotonic() + fault.pause < deadline, faults(seed)):
            time.sleep(fault.pause)
            run.suffer(fault)
            suffered.append(fault)
            samples.append(run.sample())
        run.finish()
        step, weights, counts = run.state()
        restored = restored_of(run.steps(0))
        accounts = [account(i, steps_of(run.steps(i)), restored, counts[i]) for i in range(WORKERS)]
    held = {who: [sample[who] for sample in samples] for who in samples[0]}
    complaints = run.complaints + left(folder)
    return Outcome(suffered, complaints, step, weights, counts, accounts, len(restored), held)


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        outcome = soak(options.seconds, options.seed, Path(folder))
    wrong = list(outcome.wrong())
    print(f"{options.seconds:g} s, seed {options.seed}", *outcome.measured(), sep="\n")
    print(*(f"WRONG: {line}" for line in wrong or ["nothing"]), sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
