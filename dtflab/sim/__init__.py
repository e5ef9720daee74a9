"""sim: questions asked of simulated hardware: how fast would this model train on that cluster, and what if …?

`sim.sleep(seconds)` and `sim.now()` are for programs that run in virtual time (`Cluster(clock="virtual")`): what a
client does between its steps takes none unless it says so. `sim.models` are networks as graphs, `sim.Profile` is what
one costs, layer by layer. `print(sim.hardware())` shows what can be simulated, `sim.add_hardware` takes a part of
one's own. `sim.estimate("resnet50", sim.cluster_model(workers=50, ps_tasks=16))` is a dry run at any scale.
`sim.what_if(session, fetches=…)` makes one step again on other hardware. `sim.CLAIMS` are published claims on scaling.
docs/engines.md: which engine answers what.

Parts: `engine` (a job on simulated hardware, and the engines that run it), `models` (networks as graphs), `estimates`
(how fast would it train there?), `what_ifs` (how long would this step take elsewhere?), `predictions` (what the model
says of published measurements), `races` (several ways to train, side by side), `claims` (published claims on scaling),
`formulas` (what theory says), `cli` (the command line).

Design: docs/design/sim.md
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dtflab.base.missing_names import missing as _missing
from dtflab.machine.clock import CURRENT
from dtflab.sim.engine.stragglers import exponential, lognormal, pareto, uniform

if TYPE_CHECKING:  # what `_LAZY` and `_MODULES` load on first use
    from dtflab.hardware.catalogue import add_hardware
    from dtflab.hardware.machines import machines_for
    from dtflab.hardware.parts import Bus, Network, Nic, Processor, Rack, Switch
    from dtflab.hardware.tables import hardware
    from dtflab.sim import formulas, models
    from dtflab.sim.claims import CLAIMS
    from dtflab.sim.engine.cluster_models import cluster_model
    from dtflab.sim.engine.job import Input
    from dtflab.sim.engine.network_profile import Profile
    from dtflab.sim.engine.parameters import Parameters
    from dtflab.sim.estimates.estimate import estimate
    from dtflab.sim.races import race
    from dtflab.sim.what_ifs.what_if import what_if

__all__ = [
    "Bus", "CLAIMS", "Input", "Network", "Nic", "Parameters", "Processor", "Profile", "Rack", "Switch", "add_hardware",
    "cluster_model", "estimate", "exponential", "formulas", "hardware", "lognormal", "machines_for", "models", "now",
    "pareto", "race", "sleep", "uniform", "what_if",
]  # fmt: skip

# Modules that are loaded on first use, and name → module.
_MODULES = ("formulas", "models")
_LAZY = {
    "CLAIMS": "dtflab.sim.claims",
    "cluster_model": "dtflab.sim.engine.cluster_models",
    "estimate": "dtflab.sim.estimates.estimate",
    "Input": "dtflab.sim.engine.job",
    "Parameters": "dtflab.sim.engine.parameters",
    "Profile": "dtflab.sim.engine.network_profile",
    "race": "dtflab.sim.races",
    "what_if": "dtflab.sim.what_ifs.what_if",
    "hardware": "dtflab.hardware.tables",
    "add_hardware": "dtflab.hardware.catalogue",
    "machines_for": "dtflab.hardware.machines",
    **dict.fromkeys(("Bus", "Network", "Nic", "Processor", "Rack", "Switch"), "dtflab.hardware.parts"),
}


def sleep(seconds: float) -> None:
    """Let virtual seconds pass for the client that calls; real ones outside of virtual time."""
    CURRENT.sleep(seconds)


def now() -> float:
    """Seconds on the clock that counts for the caller: virtual ones since its cluster was made, if it has one."""
    return CURRENT.now()


def __getattr__(name: str) -> Any:
    """Names that are loaded when first used."""
    if name in _MODULES:
        return import_module(f"dtflab.sim.{name}")
    if name in _LAZY:
        found = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return found
    raise _missing("tf.sim", name, __dir__())


def __dir__() -> list[str]:
    return sorted(__all__)
