"""Parameters: what the model of a step does not know from data sheets: a few numbers for all platforms and models.

Left out: anything per platform (bandwidths and latencies stand in `hardware/`), per model, per scale.

Rule: at most 8, each with its unit and the range that physics allows. `calibrate` fits them to published measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _parameter(value: float, unit: str, low: float, high: float, why: str) -> float:
    default: float = field(default=value, metadata={"unit": unit, "range": [low, high], "why": why})
    return default


@dataclass(frozen=True)
class Parameters:
    """ValueError for a value outside its range. `fields(Parameters)` has unit, range and meaning as metadata."""

    nic_efficiency: float = _parameter(0.8, "of nominal", 0.1, 1.0, "the part of a NIC's bandwidth that streams reach")
    bus_efficiency: float = _parameter(0.8, "of nominal", 0.1, 1.0, "the part of a bus's bandwidth that copies reach")
    board_sharing: float = _parameter(0.05, "of a step", 0.0, 0.2, "how much longer chips of one board take at once")
    flop_efficiency: float = _parameter(0.5, "of peak", 0.05, 1.0, "where no rate of one GPU is given")
    overlap: float = _parameter(0.5, "of computing", 0.0, 1.0, "the part that transfers in layer order hide behind")
    message_s: float = _parameter(40e-6, "s", 0.0, 1e-3, "what a message costs a CPU, at each end")
    jitter: float = _parameter(0.03, "of a step", 0.0, 0.2, "mean of what a step takes longer by chance")
    tail_shared: float = _parameter(0.1, "exponent", 0.0, 0.5, "of Pareto's tail, on hosts that others use, too")

    def __post_init__(self) -> None:
        for one in fields(self):
            low, high = one.metadata["range"]
            if not low <= (value := getattr(self, one.name)) <= high:
                allowed = f"between {low} and {high} {one.metadata['unit']}"
                raise ValueError(f"{one.name} is {value}, but must lie {allowed}.")


# Nothing is lost: what formulas speak of.
_ALL = dict.fromkeys(("nic_efficiency", "bus_efficiency", "flop_efficiency", "overlap"), 1.0)
IDEAL = Parameters(**_ALL, board_sharing=0.0, message_s=0.0, jitter=0.0, tail_shared=0.0)
