"""Calibrate: find the parameters with which the model says best what was published.

Stands for `scipy.optimize`, which is not here. Left out: gradients; a step of the model is a maximum of sums, so the
error has kinks everywhere.

Rule: 8 parameters of the library and at most 3 of each platform, each within its range; never one of a point, of a
model on a platform, or of a scale. A platform's parameter that none of its points feels stays nominal. The search goes
along one parameter after the other, then along pairs, and is the same each time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace

from dtflab.hardware import catalogue
from dtflab.sim.engine.fitted import PLATFORM, Fitted
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.predictions import predict
from dtflab.sim.predictions.points import Point, Points, PredictionError
from dtflab.sim.predictions.setups import bus_of, nominal_nic

SMALL = 0.05  # relative errors below this count by their square, others by their size
PULL = {"nic_bandwidth": 0.003, "bus_bandwidth": 0.003, "latency": 0.001}  # cost of being half or twice the nominal one
FELT = 5e-3  # relative
WORSE = 10.0  # a platform's parameter is felt if some prediction changes when it is that much worse
FIRST, LAST = 1.2, 0.003  # steps of the search, in natural logarithms: by a factor of 3.3, then less
ENOUGH = 3e-3  # a round that gains less is the last

Key = tuple[str, str]  # platform, or "" for the library; parameter
Values = dict[Key, float]  # of the library as they are; of a platform over nominal times the library's efficiency


class Search:
    """Values under way, and the loss of what they predict."""

    def __init__(self, points: Sequence[Point], known: Points, values: Values, off: Iterable[str] = ()) -> None:
        self.points, self.values = tuple(points), dict(values)
        self._predictor = predict.predictor(known, Fitted(), known, off)
        self.rows = {point.platform_name: point for point in points}
        self._published = {point_id: predict.middle(value) for point_id, value in known.published.items()}
        self._regimes = {point.id: point.regime for point in points}
        self._errors: dict[str, dict[str, float]] = {}
        self.loss = self._scored(self.values, set(self.rows))

    def moved(self, changes: Values) -> bool:
        """Set some values; kept if that makes the loss smaller."""
        before, changed = self._errors, {**self.values, **changes}
        platforms = {platform for platform, _ in changes}
        loss = self._scored(changed, set(self.rows) if "" in platforms else platforms)
        if loss < self.loss - 1e-9:
            self.values, self.loss = changed, loss
            return True
        self._errors = before
        return False

    @property
    def fitted(self) -> Fitted:
        """The parameters that the values stand for."""
        return fitted(self.values, self.rows)

    def _scored(self, values: Values, platforms: set[str]) -> float:
        predictor = replace(self._predictor, fitted=fitted(values, self.rows))
        found = errors(self.points, self._published, predictor, platforms)
        self._errors = {**self._errors, **found}
        return _loss(self._errors, self._regimes) + _pull(values, self.rows)


def fitted(values: Values, rows: Mapping[str, Point]) -> Fitted:
    """Parameters in their units."""
    library = replace(Parameters(), **{name: value for (platform, name), value in values.items() if not platform})
    plain = Fitted(library)
    platforms: dict[str, dict[str, float]] = {}
    for (platform, name), factor in values.items():
        if platform:
            platforms.setdefault(platform, {})[name] = _digits(factor * of_point(plain, rows[platform])[name])
    return Fitted(library, platforms)


def errors(
    points: Iterable[Point], published: dict[str, float], predictor: predict.Predictor, platforms: set[str]
) -> dict[str, dict[str, float]]:
    """ln(predicted ÷ published) of the points on `platforms`, by platform and id."""
    found: dict[str, dict[str, float]] = {platform: {} for platform in platforms}
    for point in points:
        if point.platform_name in platforms:
            try:
                found[point.platform_name][point.id] = math.log(predictor(point) / published[point.id])
            except PredictionError:
                continue
    return found


def _loss(errors: dict[str, dict[str, float]], regimes: dict[str, str]) -> float:
    """Huber's loss; a regime weighs as the root of its number of points, so the few saturated ones count."""
    sums: dict[str, list[float]] = {}
    for of_platform in errors.values():
        for point_id, error in of_platform.items():
            size = abs(error)
            cost = size * size / (2 * SMALL) if size < SMALL else size - SMALL / 2
            sums.setdefault(regimes[point_id], []).append(cost)
    return sum(sum(costs) / math.sqrt(len(costs)) for costs in sums.values())


def _pull(values: Values, rows: Mapping[str, Point]) -> float:
    """Platforms' parameters are pulled to the nominal ones, so that few points don't pull them anywhere."""
    return sum(
        PULL[name] * math.log2(factor) ** 2
        for (platform, name), factor in values.items()
        if platform and not _unpublished(rows[platform], name)
    )


def _unpublished(point: Point, name: str) -> bool:
    return name == "nic_bandwidth" and point.platform.number("nic_gbps") is None


def of_point(fitted: Fitted, point: Point) -> dict[str, float]:
    """The three parameters of a point's platform."""
    values = fitted.of(point.platform_name, nominal_nic(point.platform), bus_of(point))
    return dict(zip(("nic_bandwidth", "bus_bandwidth", "latency"), values, strict=True))


# ---- which parameters, from where, between what ----


def start(points: Sequence[Point], known: Points, begin: Fitted | None = None) -> Values:
    """Values to begin with: of the library, and of what some point feels of its platform. `begin`: not at nominal."""
    library = begin.library if begin else replace(Parameters(), flop_efficiency=flop_efficiency(known))
    values: Values = {("", one.name): getattr(library, one.name) for one in fields(Parameters)}
    predictor = predict.predictor(known, Fitted(library), known)
    for point in points:
        own = begin.platforms.get(point.platform_name, {}) if begin else {}
        for name, value in of_point(predictor.fitted, point).items():
            if name in own or (begin is None and _feels(point, name, value, predictor)):
                values[point.platform_name, name] = own.get(name, value) / value
    return values


def _feels(point: Point, name: str, value: float, predictor: predict.Predictor) -> bool:
    other = value * WORSE if name == "latency" else value / WORSE
    worse = replace(predictor, fitted=Fitted(predictor.fitted.library, {point.platform_name: {name: other}}))
    try:
        return abs(worse(point) / predictor(point) - 1) > FELT
    except PredictionError:
        return False


def flop_efficiency(known: Points) -> float:
    """The part of its peak that one GPU reaches: the geometric mean of all given rates, one of each model and GPU."""
    reached = {}
    for point in known:
        gpu, rate = point.platform.values.get("gpu_name"), point.given.number("single_gpu")
        gmac = point.model.number("gmac_per_image") if point.model else None
        if gpu and rate and gmac:
            part = rate * 6e9 * gmac / catalogue.gpu(str(gpu)).peak()
            reached[point.model_name, gpu] = math.log(min(1.0, part))  # above: Winograd's convolutions do less
    return round(math.exp(sum(reached.values()) / len(reached)), 4)


def bounds(key: Key, search: Search) -> tuple[float, float]:
    """The range of a value: physics', and a platform's bandwidth is at most what was sold."""
    platform, name = key
    if not platform:
        low, high = next(one.metadata["range"] for one in fields(Parameters) if one.name == name)
        return max(low, 1e-3 * high), high
    point, allowed = search.rows[platform], PLATFORM[name]
    nominal = of_point(Fitted(search.fitted.library), point)[name]
    high = allowed.high
    if name != "latency" and not _unpublished(point, name):
        high = min(high, of_point(Fitted(replace(Parameters(), nic_efficiency=1.0, bus_efficiency=1.0)), point)[name])
    return allowed.low / nominal, high / nominal


# ---- the search ----


def calibrate(
    known: Points,
    points: Sequence[Point] | None = None,
    begin: Values | None = None,
    report: Callable[[str], None] = lambda line: None,
    rounds: int = 4,
    off: Iterable[str] = (),
    widths: tuple[float, float] = (FIRST, LAST),
) -> tuple[Fitted, Values]:
    """The parameters that fit `points` (default: all of `known`) best, and as values to begin with again.

    From `begin` (default: nominal values) each parameter in turn goes up or down by a factor, which grows while that
    helps and shrinks when it does not; all that begins again while it helps, `rounds` times at most. `report` gets a
    line for each round. Mechanisms that are `off` stay off. `widths` are those of the first steps and of the last.
    """
    points = tuple(known if points is None else points)
    search = Search(points, known, begin or start(points, known), off)
    for _ in range(rounds):
        before = search.loss
        _descend(search, *widths)
        report(f"loss {before:.5f} → {search.loss:.5f}")
        if before - search.loss < ENOUGH:
            break
    return _rounded(search.fitted), search.values


def _descend(search: Search, first: float, last: float) -> None:
    """Up or down along each parameter, then along pairs: a slower link and more overlap may say much the same."""
    draw = random.Random(0)
    steps = {key: first for key in search.values if key[1] != "flop_efficiency"}
    while max(steps.values()) > last:
        for key in steps:
            steps[key] = min(first, steps[key] * (1.3 if _try(search, {key: steps[key]}) else 0.5))
        for key in steps:
            other = draw.choice([one for one in steps if one != key])
            _try(search, {key: steps[key], other: draw.choice((1, -1)) * steps[other]})


def _try(search: Search, steps: Values) -> bool:
    """One step, or the same step back, whichever helps."""
    for way in (1, -1):
        changes = {}
        for key, step in steps.items():
            low, high = bounds(key, search)
            changes[key] = min(high, max(low, search.values[key] * math.exp(way * step)))
        if changes.items() - search.values.items() and search.moved(changes):
            return True
    return False


def _rounded(fitted: Fitted) -> Fitted:
    """Four digits: more say nothing."""
    library = {one.name: _digits(getattr(fitted.library, one.name)) for one in fields(Parameters)}
    return Fitted(Parameters(**library), fitted.platforms)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
