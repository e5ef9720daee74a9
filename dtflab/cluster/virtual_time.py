"""Virtual time for a cluster: from its tasks and what hardware they stand on to the world in which they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from dtflab.base.suggestions import did_you_mean
from dtflab.hardware.catalogue import add_hardware, gpu
from dtflab.hardware.catalogue_gpus import GPUS
from dtflab.hardware.machines import Machines, machines_for
from dtflab.hardware.parts import Processor
from dtflab.machine.hosts import definition
from dtflab.machine.registry import HostCards
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.world import World

CLOCKS = ("real", "virtual")
OPTIONS = ("network", "bus", "cpu", "racks", "stragglers", "seed")  # of a Cluster, which real time has no use for


def check_options(clock: str, engine: str, listen: bool, options: Mapping[str, Any]) -> None:
    """ValueError for what does not go together."""
    given = [name for name in OPTIONS if options[name] is not None]
    if clock not in CLOCKS:
        raise ValueError(f"clock can't be {clock!r}.{did_you_mean(str(clock), CLOCKS)} Choose 'real' or 'virtual'.")
    if clock == "real" and given:
        raise ValueError(f"{given[0]}=… describes simulated hardware or randomness: add clock='virtual'.")
    if clock == "virtual" and (engine != "inprocess" or listen):
        raise ValueError("clock='virtual' needs all tasks in this process: engine='inprocess', without listen=True.")
    seed, stragglers = options["seed"], options["stragglers"]
    if not (seed is None or (isinstance(seed, Integral) and int(seed) >= 0)):
        raise ValueError(f"seed={seed!r}: give a whole number, 0 or more.")
    if not (stragglers is None or hasattr(stragglers, "factors")):
        raise ValueError(f"stragglers={stragglers!r}: give a distribution, for example sim.lognormal(0.3).")


def name_of_gpu(part: str | Processor | None) -> str | None:
    """The name of a model of GPU; one's own part is made known by its name. ValueError if another has that."""
    if not isinstance(part, Processor):
        return part
    if GPUS.get(part.name) != part:
        add_hardware(part)
    return part.name


def hardware_text(machines: Machines) -> str:
    """`50 × Tesla K40m, 51 × 2x Xeon …`: what computes in a cluster."""
    parts = Counter(part.name for host in machines.hosts for part in (*host.gpus, host.cpu))
    return ", ".join(f"{count} × {name}" for name, count in parts.items())


def begin_world(clock: VirtualClock, tasks: Sequence[Any], options: Mapping[str, Any]) -> World:
    """Give the clock the machines on which `tasks` (of `inprocess`) live. ValueError for unknown hardware."""
    homes = {task.name: task.home.host for task in tasks}
    defined = {host: definition(host) for host in homes.values()}
    cards = {host: found for host, found in defined.items() if found is not None}
    hardware = {name: options[name] for name in ("network", "bus", "cpu", "racks") if options[name] is not None}
    machines = machines_for(
        homes,
        gpus={host: found.count for host, found in cards.items()},
        gpu={"": "K520"} | {host: _card(found) for host, found in cards.items()},
        visible={task.name: [card.claim.card.index for card in task.devices if card.type == "GPU"] for task in tasks},
        **hardware,
    )
    return World(clock, machines, options["seed"] or 0, options["stragglers"])


def _card(found: HostCards) -> Processor:
    """A card of that model, with as much memory as this one has."""
    return replace(gpu(found.model), memory_bytes=found.memory_bytes)
