"""The allocator next to TensorFlow's own, which its CPU uses on request: the same places, sizes, failures, dump."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dtflab.machine.bfc_allocator import BFCAllocator, OutOfMemory

pytestmark = pytest.mark.timeout(400)  # TensorFlow alone takes 15 s where nothing else runs
HERE = Path(__file__).parent
MIB = 1 << 20
LIMIT_MIB = 256
FULL = 253 * MIB


def a_sequence(seed):
    """Allocations of 2 to 20 MiB and their ends, in any order, after one that makes TensorFlow take all memory."""
    rng = random.Random(seed)
    actions, live = [130 * MIB, -1], []
    for _ in range(70):
        if live and (sum(live) > 60 * MIB or rng.random() < 0.45):
            place = rng.randrange(len(live))
            live.pop(place)
            actions.append(-place - 1)
        else:
            live.append(rng.randrange(2 * MIB, 20 * MIB, 4))
            actions.append(live[-1])
    return [*actions, 5 * MIB, 3 * MIB, -1]


@pytest.fixture(scope="module")
def beside():
    """The results of both with the same actions, of which the last does not fit (TensorFlow tries that for 10 s)."""
    actions = [*a_sequence(7), FULL]
    ran = subprocess.run(
        [sys.executable, str(HERE / "bfc_in_tensorflow.py")],
        input=json.dumps([actions, LIMIT_MIB]), capture_output=True, text=True, timeout=350,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    theirs = json.loads(ran.stdout)
    own, rest = divmod(theirs[0]["in_use"] - theirs[0]["size"], 256)
    assert rest == 0 and 0 <= own <= 4  # what its session and its graph keep: one or two small tensors
    return replay(actions, own), theirs, ran.stderr


def replay(actions, own):
    """Our results in the form of TensorFlow's, which has `own` small tensors; a step of it takes a handle, too."""
    bfc = BFCAllocator("bfc_cpu_allocator_for_gpu", LIMIT_MIB * MIB, lambda nbytes: True, allow_growth=True)
    for _ in range(own):
        bfc.allocate(4)
    live, results = [], []
    for action in actions:
        if action < 0:
            bfc.deallocate(live.pop(-action - 1))
            results.append(None)
            continue
        try:
            live.append(bfc.allocate(action))
        except OutOfMemory as error:
            results.append(error)
            continue
        in_use = bfc.stats.bytes_in_use
        results.append({"address": live[-1], "size": bfc.allocated_size(live[-1]), "in_use": in_use})
        bfc.deallocate(bfc.allocate(24))
    return results


def test_every_tensor_lies_where_tensorflow_puts_it(beside):
    ours, theirs, _ = beside
    base = next(a["address"] - b["address"] for a, b in zip(theirs, ours, strict=True) if a)
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        if other is None:
            continue
        assert (mine["address"], mine["size"]) == (other["address"] - base, other["size"])
        assert mine["in_use"] == other["in_use"]


def test_what_does_not_fit_fails_on_both_with_the_same_dump(beside):
    ours, theirs, log = beside
    assert isinstance(ours[-1], OutOfMemory)
    assert "OOM when allocating tensor with shape[66322432] and type float on /job:local" in theirs[-1]["error"]
    assert dump_lines(log.split("BFCAllocator dump for")[1]) == dump_lines(ours[-1].report.split("dump for")[1])


def dump_lines(text):
    """The lines of a dump, without addresses, in a normal order of regions; TensorFlow's deletions allocate, too."""
    end = text.index("LargestFreeBlock")
    text = re.sub(r"NumAllocs: +\d+", "", text)
    lines = [re.sub(r"^.*bfc_allocator\.cc:\d+\] ", "", line) for line in text[:end].splitlines()]
    return sorted(re.sub(r" at [0-9a-f]+ ", " at ", line.rstrip()) for line in lines)
