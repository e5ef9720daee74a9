"""Report: how far the model can be trusted: errors by regime, baselines, ablations, cross-validation, as Markdown.

Rule: `measure` fits and counts, `refreshed` only writes down. The parts of docs/simulator.md between "begin" and "end"
come from here; people write the rest.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dtflab.base.page_parts import with_part
from dtflab.sim.engine.fitted import PLATFORM, Fitted
from dtflab.sim.predictions.baselines import baselines
from dtflab.sim.predictions.calibrate import Values, calibrate, start
from dtflab.sim.predictions.points import Point, Points
from dtflab.sim.predictions.predict import Predictor, predict, predictor
from dtflab.sim.predictions.scores import by_regime, errors_of, median_worst
from dtflab.sim.predictions.setups import chips_of, collective_of, hosts_of

Sizes = Mapping[str, Sequence[float]]  # by regime, sizes of relative errors

NEAR = (0.3, 0.08)  # steps of a refit, which begins with what is shipped
LARGE = 16  # GPUs: what is above is predicted from what is below
FEWEST = 3
REGIMES = ("near_linear", "mild", "saturated", "microbench", "straggler", "all")


def _served(point: Point) -> bool:
    return not collective_of(point) and not point.setup.text("parallelism").startswith("model")


# Each mechanism and its own kind of points: those that it is there for.
MECHANISMS: dict[str, tuple[str, Callable[[Point], bool]]] = {
    "hot_variables": (
        "whole variables on several servers",
        lambda p: _served(p) and (p.setup.count("ps_tasks") or 0) > 1,
    ),
    "overlap": ("data parallel", lambda p: p.model is not None and "model" not in p.setup.text("parallelism")),
    "pcie_tree": ("hosts whose GPUs share uplinks", lambda p: "tree" in p.platform.text("bus")),
    "local_aggregation": ("several hosts of several GPUs", lambda p: _served(p) and min(hosts_of(p)) > 1),
    "stragglers": ("shared hosts, or more than 16 GPUs", lambda p: bool(p.model) and math.prod(hosts_of(p)) > 16),
    "messages": ("steps without computing", lambda p: bool(p.setup.text("kind"))),
    "board_sharing": ("boards of two GPUs", lambda p: chips_of(p) > 1 and hosts_of(p)[1] > 1),
}


def measure(known: Points, fitted: Fitted, report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """All numbers of the page: about twenty short fits."""
    model = predictor(known, fitted, known)
    values = start(tuple(known), known, fitted)
    refits = {name: _without(name, known, values, report) for name in MECHANISMS}
    others = baselines(model, known, refits["hot_variables"])
    return {
        "parameters": fitted.as_json(),
        "model": sizes(model, known),
        "baselines": {name: sizes(one, known) for name, one in others.items()},
        "ablations": {name: _ablation(name, known, model, refit) for name, refit in refits.items()},
        "held out": _held_out(known, values, report),
    }


def sizes(model: Callable[[Point], float], points: Points) -> dict[str, list[float]]:
    """Sizes of relative errors by regime."""
    found = by_regime(errors_of(predict(points, model), points))
    return {regime: [_digits(error) for error in errors] for regime, errors in found.items()}


def _without(name: str, known: Points, values: Values, report: Callable[[str], None]) -> Predictor:
    """The model without a mechanism, and all else fitted again."""
    report(f"without {name}")
    fitted, _ = calibrate(known, begin=values, off=[name], rounds=1, widths=NEAR)
    return predictor(known, fitted, known, [name])


def _ablation(name: str, known: Points, model: Predictor, refit: Predictor) -> dict[str, Any]:
    """Mean error on the mechanism's own kind with and without it, and then with all else fitted again."""
    kind, belongs = MECHANISMS[name]
    own = [point.id for point in known if belongs(point)]
    off = predictor(known, model.fitted, known, [name])
    with_, without, refitted = (_mean_error(one, known, own) for one in (model, off, refit))
    return {"kind": kind, "points": len(own), "with": with_, "without": without, "refitted": refitted}


def _mean_error(model: Predictor, known: Points, ids: Iterable[str]) -> float:
    chosen = set(ids)
    return _digits(statistics.fmean(abs(e.relative) for e in errors_of(predict(known, model), known) if e.id in chosen))


def _held_out(known: Points, values: Values, report: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Each group of points predicted with parameters that were fitted to all others."""
    found = {}
    for name, group in groups(known).items():
        report(f"held out: {name}")
        rest = [point for point in known if point.id not in group]
        kept = {"", *(point.platform_name for point in rest)}
        begin = {key: value for key, value in values.items() if key[0] in kept}
        fitted, _ = calibrate(known, rest, begin, rounds=1, widths=NEAR)
        errors = errors_of(predict(known, predictor(known, fitted, known)), known)
        sizes = [_digits(abs(error.relative)) for error in errors if error.id in group]
        found[name] = {"points": len(sizes), "median": statistics.median(sizes), "worst": max(sizes)}
    return found


def groups(known: Points) -> dict[str, set[str]]:
    """Ids by platform, by regime, and of the largest scale; groups of one or two points say nothing."""
    found: dict[str, set[str]] = {}
    for point in known:
        found.setdefault(f"platform {point.platform_name}", set()).add(point.id)
        found.setdefault(f"regime {point.regime}", set()).add(point.id)
        if point.model and math.prod(hosts_of(point)) > LARGE:
            found.setdefault(f"more than {LARGE} GPUs", set()).add(point.id)
    return {name: found[name] for name in sorted(found) if len(found[name]) >= FEWEST}


def _digits(value: float) -> float:
    return round(value, 5)


# ---- as Markdown ----


def refreshed(page: str, numbers: Mapping[str, Any]) -> str:
    """The page with all its generated parts rewritten. Raises ValueError if one is missing."""
    for name, write in PARTS.items():
        page = with_part(page, name, write(numbers))
    return page


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _parameters(numbers: Mapping[str, Any]) -> str:
    library, platforms = numbers["parameters"]["library"], numbers["parameters"]["platforms"]
    rows = [
        (f"`{name}`", f"{one['value']:.4g}", one["unit"], "{:g} … {:g}".format(*one["range"]), one["why"])
        for name, one in library.items()
    ]
    own = [(f"`{name}`", *(_value(values, key) for key in PLATFORM)) for name, values in platforms.items()]
    heads = ["platform", *(f"{key}, {one.unit} ({one.low:g} … {one.high:g})" for key, one in PLATFORM.items())]
    return _table(["of the library", "value", "unit", "range", "meaning"], rows) + "\n\n" + _table(heads, own)


def _value(values: Mapping[str, Any], key: str) -> str:
    return f"{values[key]['value']:.4g}" if key in values else "nominal"


def _errors(numbers: Mapping[str, Any]) -> str:
    models = {"the model": numbers["model"], **numbers["baselines"]}
    rows = [(name, *(_counted(found.get(regime, ())) for regime in REGIMES)) for name, found in models.items()]
    return _table(["median / worst error, %", *REGIMES], rows)


def _counted(found: Sequence[float]) -> str:
    return f"{median_worst(found)} ({len(found)})" if found else median_worst(found)


def _ablations(numbers: Mapping[str, Any]) -> str:
    columns = ("with", "without", "refitted")
    rows = [
        (f"`{name}`", one["kind"], str(one["points"]), *(f"{100 * one[column]:.1f}" for column in columns))
        for name, one in numbers["ablations"].items()
    ]
    heads = ["mechanism", "its kind of points", "points", "mean error with it, %", "without", "without, refitted"]
    return _table(heads, rows)


def _validation(numbers: Mapping[str, Any]) -> str:
    rows = [
        (name, str(one["points"]), f"{100 * one['median']:.1f}", f"{100 * one['worst']:.1f}")
        for name, one in numbers["held out"].items()
    ]
    return _table(["held out", "points", "median error, %", "worst, %"], rows)


PARTS = {"parameters": _parameters, "errors": _errors, "ablations": _ablations, "validation": _validation}
