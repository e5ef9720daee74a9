"""The options of `%dtf_cluster` for hardware and chance: simulated GPUs, and the source of virtual durations.

Rule: everything is checked before anything is stopped or started; UsageError says what is wrong, with an example.
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.error import UsageError

from dtflab.cluster.virtual_time import CLOCKS, OPTIONS, check_options
from dtflab.hardware import catalogue
from dtflab.hardware.catalogue_links import BUSES, NICS
from dtflab.machine.cards import MODELS
from dtflab.machine.hosts import definition_of
from dtflab.sim.engine.stragglers import Stragglers

EXAMPLE = "%dtf_cluster --ps 1 --worker 2"
_STRAGGLERS = ("lognormal(0.3)", "uniform(0.2)", "exponential(0.1)", "pareto(3)")  # with usual sizes


def choices() -> dict[str, tuple[str, ...]]:
    """The values that an option may take, including the user's own hardware as far as it has been added."""
    return {
        "--gpu": tuple(model.short[0] for model in MODELS),
        "--clock": CLOCKS,
        "--bus": tuple(BUSES),
        "--network": tuple(NICS),
        "--stragglers": _STRAGGLERS,
    }


def options(args: Any, jobs: list[str]) -> dict[str, Any]:
    """The options of a Cluster with these `jobs` that are about its hardware."""
    return _gpus(args, jobs) | _virtual(args)


def _gpus(args: Any, jobs: list[str]) -> dict[str, Any]:
    """The GPUs of a cluster."""
    visible = dict(item.partition("=")[::2] for item in args.visible)
    if unknown := [job for job in visible if job not in jobs]:
        there = ", ".join(jobs)
        raise UsageError(f"--visible names {unknown[0]!r}; the jobs are {there}. For example: --gpus 2 --visible ps=0")
    if args.gpus is None and (args.gpu or args.gpu_memory) and args.clock != "virtual":
        raise UsageError("--gpu and --gpu-memory need --gpus, the number per host. For example: --gpus 2 --gpu K40")
    try:
        if args.gpus is not None or args.gpu:
            definition_of(1 if args.gpus is None else args.gpus, args.gpu, args.gpu_memory)
    except ValueError as error:
        raise UsageError(f"{error} For example: {EXAMPLE} --gpus 2 --gpu K40 --gpu-memory 4GiB") from None
    return {"gpus": args.gpus, "gpu": args.gpu, "gpu_memory": args.gpu_memory, "visible_devices": visible}


def _virtual(args: Any) -> dict[str, Any]:
    """The arguments of a cluster in virtual time."""
    given = {name: getattr(args, name) for name in OPTIONS}
    try:
        given["stragglers"] = _stragglers(args.stragglers)
        check_options(args.clock, args.engine, args.listen, given)
        for name, find in (("network", catalogue.network), ("bus", catalogue.bus), ("cpu", catalogue.cpu)):
            if given[name] is not None:
                find(given[name])
        if args.racks is not None and args.racks < 1:
            raise ValueError(f"--racks must be 1 or more, not {args.racks}.")
    except ValueError as error:
        raise UsageError(f"{error} For example: {EXAMPLE} --clock virtual --gpu K40 --network 10Gb/s") from None
    return given | {"clock": args.clock}


def _stragglers(text: str | None) -> Stragglers | None:
    """A distribution from `NAME(SIZE)`; ValueError for anything else."""
    if text is None:
        return None
    match = re.fullmatch(r"(\w+)\((\d+(?:\.\d+)?)\)", text)
    if match is None:
        raise ValueError(f"--stragglers must be NAME(SIZE), such as {' or '.join(_STRAGGLERS[:2])}, not {text!r}.")
    return Stragglers(match[1], float(match[2]))
