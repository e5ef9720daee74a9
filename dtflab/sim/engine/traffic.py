"""Traffic: what a worker computes and sends in one step, as items: one for each message each way.

Stands for what replica_device_setter and the partitioner decide in a real graph. Left out: the order in which one
layer's variables are read.

Rule: TensorFlow places variables whole, so a large one makes its server hot; only a partitioned variable is spread.
Items are in the order of the way forward. Bytes and seconds everywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.sim.engine.layer_costs import LayerTime, VariableCost
from dtflab.sim.engine.network_profile import Profile

Array = np.ndarray[Any, Any]


class Shard(NamedTuple):
    """A variable, or a part of one, on a server, where it takes `bytes`."""

    name: str
    server: int
    bytes: float
    pull_bytes: float
    push_bytes: float


class Items(NamedTuple):
    """Arrays over the items of a step; `head_s` is computed before any of them is needed."""

    names: list[str]
    server: Array  # which server holds it
    messages: Array  # how many messages it stands for
    pull_bytes: Array
    push_bytes: Array
    forward_s: Array  # computed when it is there, before the next item is needed
    ready_s: Array  # from the end of the way forward until its gradient is there
    apply_s: Array  # what its update takes on its server
    head_s: float

    @property
    def compute_s(self) -> float:
        """Forward and backward of one step."""
        return self.head_s + float(self.forward_s.sum()) + float(self.ready_s.max(initial=0.0))


# ---- which server holds what ----

Strategy = Callable[[Sequence[float], int], list[int]]


def round_robin(nbytes: Sequence[float], servers: int) -> list[int]:
    """The servers in turns, whatever the sizes, as replica_device_setter chooses by default."""
    return [i % servers for i in range(len(nbytes))]


def greedy(nbytes: Sequence[float], servers: int) -> list[int]:
    """As GreedyLoadBalancingStrategy does: each to the server that has least so far, in the order of creation."""
    load = [0.0] * servers
    placed = []
    for size in nbytes:
        lightest = load.index(min(load))
        load[lightest] += size
        placed.append(lightest)
    return placed


STRATEGIES: dict[str, Strategy] = {"round_robin": round_robin, "greedy": greedy}


LEAST_PART = 256 << 10  # bytes; as in min_max_variable_partitioner


def shards(profile: Profile, servers: int, strategy: str = "greedy", parts: int = 1) -> list[list[Shard]]:
    """Where the variables of each layer are.

    Each is cut into at most `parts` equal parts of LEAST_PART or more, which are placed as variables are.
    ValueError for a strategy that is not known.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"Unknown strategy for variables {strategy!r}: take {' or '.join(map(repr, STRATEGIES))}.")
    cut = [[piece for v in layer.variables for piece in _cut(v, parts)] for layer in profile.layers]
    placed = iter(STRATEGIES[strategy]([piece.bytes for each in cut for piece in each], servers))
    return [[piece._replace(server=next(placed)) for piece in each] for each in cut]


def _cut(variable: VariableCost, parts: int) -> list[Shard]:
    """The parts of a variable, of which nobody knows yet on which server they are."""
    count = max(1, min(parts, math.ceil(variable.bytes / LEAST_PART)))
    names = [f"{variable.name}/part_{i}" for i in range(count)] if count > 1 else [variable.name]
    whole, pull, push = (n / count for n in (variable.bytes, variable.pull_bytes, variable.gradient_bytes))
    return [Shard(name, 0, whole, pull, push) for name in names]


# ---- what is sent when ----


class _Block(NamedTuple):
    """Consecutive layers whose messages to one server go as one."""

    forward: float
    backward: float
    update: float
    shards: list[list[Shard]]  # that go together


def items(times: Sequence[LayerTime], held: Sequence[list[Shard]], most: int | None = None) -> Items:
    """The items of a step whose layers take `times`, and whose variables are `held`.

    With `most`, consecutive layers are taken together until there are at most that many items, or one for each server.
    """
    blocks = [_Block(*time, [[shard] for shard in each]) for time, each in zip(times, held, strict=True)]
    count = len(blocks)
    while most is not None and count > 1 and sum(len(block.shards) for block in blocks) > most:
        count = count * 3 // 4
        blocks = _merged(times, held, count)
    return _items([block for block in blocks if block.shards or block.forward or block.backward])


def _merged(times: Sequence[LayerTime], held: Sequence[list[Shard]], count: int) -> list[_Block]:
    """`count` blocks of about equal work and bytes, the shards of each together by server."""
    work = np.cumsum([time.forward + time.backward for time in times])
    sent = np.cumsum([sum(shard.push_bytes for shard in each) for each in held])
    share = (work / (work[-1] or 1) + sent / (sent[-1] or 1)) / 2
    number = np.minimum((share * count - 1e-9).astype(int), count - 1)
    blocks = []
    for _, layers in itertools.groupby(range(len(times)), key=lambda layer: int(number[layer])):
        members = list(layers)
        together = grouped((shard.server, shard) for layer in members for shard in held[layer])
        forward, backward, update = np.sum([times[layer] for layer in members], axis=0).tolist()
        blocks.append(_Block(forward, backward, update, list(together.values())))
    return blocks


def _items(blocks: Sequence[_Block]) -> Items:
    if not any(block.shards for block in blocks):
        raise ValueError("A network without variables has nothing to send, and nothing to train.")
    groups = [(b, group) for b, block in enumerate(blocks) for group in block.shards]
    forward = np.zeros(len(groups))
    last = {b: i for i, (b, _) in enumerate(groups)}  # the item after which block b can start
    head, latest = 0.0, -1
    for b, block in enumerate(blocks):
        latest = last.get(b, latest)
        if latest < 0:
            head += block.forward
        else:
            forward[latest] += block.forward
    back = np.cumsum([block.backward for block in reversed(blocks)])[::-1]
    size = [sum(shard.push_bytes for group in block.shards for shard in group) or 1.0 for block in blocks]
    columns = [(_name(group), group[0].server, len(group), *_bytes(group)) for _, group in groups]
    names, server, messages, pull, push = zip(*columns, strict=True)
    return Items(
        names=list(names),
        server=np.array(server),
        messages=np.array(messages),
        pull_bytes=np.array(pull, float),
        push_bytes=np.array(push, float),
        forward_s=forward,
        ready_s=np.array([back[b] for b, _ in groups]),
        apply_s=np.array([blocks[b].update * sent / size[b] for (b, _), sent in zip(groups, push)]),
        head_s=head,
    )


def _name(group: Sequence[Shard]) -> str:
    return group[0].name if len(group) == 1 else f"{group[0].name} … {group[-1].name}"


def _bytes(group: Sequence[Shard]) -> tuple[float, float]:
    return sum(shard.pull_bytes for shard in group), sum(shard.push_bytes for shard in group)
