"""Points: published scaling measurements, read from a file and checked. Published results never reach the model.

The file is JSON of the schema `dtflab-scaling-points/1`: tables of platforms and models, and points, each with a
setup, a metric and perhaps some measured numbers that are given. Left out: any other schema.

Rule: a file that can't be understood is an error; a point that can't be understood is one reason, and the others go
on. Published values are kept apart from the points, so nothing that predicts can see them.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtflab.sim.engine.profile_of_table import MOST_LAYERS

SCHEMA = "dtflab-scaling-points/1"
CALIBRATION = Path(__file__).with_name("calibration_scaling.json")  # shipped: 64 points, free to fit

MOST = 10**6  # GPUs, hosts or tasks; more are a typing mistake

_NUMBER = re.compile(r"[-+]?(?:\d+(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")


class PredictionError(ValueError):
    """A point asks for something that the file does not say, or that the model does not know."""


@dataclass(frozen=True)
class Row:
    """One row of a table, or one point's setup: words to values, read with the unit that the schema states."""

    what: str
    values: Mapping[str, Any]

    def number(self, *names: str) -> float | None:
        """The first of `names` that is there, as a number; None if none is. A remark in words is left out."""
        for name in names:
            if self.values.get(name) is not None:
                return number(self.values[name], f"{name!r} of {self.what}")
        return None

    def text(self, *names: str) -> str:
        """All of `names` that are there, in lower case, with a space between."""
        return " ".join(str(self.values[name]) for name in names if self.values.get(name) is not None).lower()

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false; "no" and "false", with or without a remark, are false."""
        said = self.text(name)
        return not said.startswith(("no", "false", "0")) if said else default

    def need(self, *names: str) -> float:
        """The first of `names` that is there, a positive number. Raises PredictionError if there is none."""
        value = self.number(*names)
        if value is None or value <= 0:
            raise PredictionError(f"{self.what} has no positive {' or '.join(map(repr, names))}")
        return value

    def positive(self, *names: str) -> float | None:
        """The first of `names` that is there, a positive number; None if none is."""
        return None if self.number(*names) is None else self.need(*names)

    def count(self, *names: str) -> int | None:
        """The first of `names` that is there, a whole number from 0 to MOST: GPUs, nodes, tasks."""
        value = self.number(*names)
        if value is not None and (not 0 <= value <= MOST or value != int(value)):
            named = " or ".join(map(repr, names))
            raise PredictionError(f"{named} of {self.what} is {value:g}, which can't be a count")
        return None if value is None else int(value)

    @property
    def layers(self) -> int:
        """Layers of a network. Raises PredictionError if it has none, or more than anybody builds."""
        if (count := self.need("layers")) > MOST_LAYERS:
            raise PredictionError(f"{self.what} has {count:g} layers, but {MOST_LAYERS:,} are the most that make sense")
        return int(count)


@dataclass(frozen=True)
class Point:
    """One question: in which `setup`, by which `metric`. `given` are rates measured on one GPU, if there are any."""

    id: str
    metric: str
    unit: str
    regime: str
    setup: Row
    given: Row
    platform: Row
    platform_name: str
    model: Row | None
    model_name: str


@dataclass(frozen=True)
class Points:
    """A file that was read: its points, the reason for each that can't be understood, and what was published."""

    points: tuple[Point, ...]
    refused: Mapping[str, str]
    published: Mapping[str, float | tuple[float, float]]

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)


def number(value: Any, what: str = "value") -> float:
    """`value` as a number: 64, "64 (recalled)" and "~1000 (ballpark)" have one; PredictionError names `what`."""
    if isinstance(value, str) and (found := _NUMBER.match(value.lstrip(" ~≈<>≤≥"))):
        read = float(found[0].replace(",", "")) if re.search(r"\d", found[0]) else math.nan
    else:
        is_one = isinstance(value, int | float) and not isinstance(value, bool)
        read = float(value) if is_one and abs(value) <= sys.float_info.max else math.nan  # JSON's may be longer
    if not math.isfinite(read):
        raise PredictionError(f"{what} is {value!r}: a number was expected")
    return read


def read(path: str | Path = CALIBRATION) -> Points:
    """The points of a file. Raises ValueError if the file does not follow the schema."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    return parse(content, str(path))


def parse(content: Any, name: str = "points") -> Points:
    """The points in what a file's JSON holds; `name` is for messages."""
    tables = _tables(content, name)
    points: list[Point] = []
    refused: dict[str, str] = {}
    published: dict[str, float | tuple[float, float]] = {}
    for position, entry in enumerate(tables["points"]):
        point_id = _id(entry, position, name, seen={*refused, *(point.id for point in points)})
        try:
            points.append(_point(point_id, entry, tables["platforms"], tables["models"]))
        except PredictionError as error:
            refused[point_id] = str(error)
        if (value := _published(entry.get("published"))) is not None:
            published[point_id] = value
    return Points(tuple(points), refused, published)


def _tables(content: Any, name: str) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{name} is not a file of points: its schema should be {SCHEMA!r}, but it is {found!r}")
    if not isinstance(content.get("points"), list):
        raise ValueError(f"{name}: 'points' should be a list of points")
    tables = {"points": content["points"]}
    for table in ("platforms", "models"):
        tables[table] = content.get(table, {})
        rows = tables[table].values() if isinstance(tables[table], dict) else [None]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{name}: {table!r} should be a table of names to rows")
    return tables


def _id(entry: Any, position: int, name: str, seen: set[str]) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not entry["id"]:
        raise ValueError(f"{name}: point {position} has no 'id', so its prediction could not be identified")
    if entry["id"] in seen:
        raise ValueError(f"{name}: two points have the id {entry['id']!r}")
    return str(entry["id"])


def _point(point_id: str, entry: Mapping[str, Any], platforms: Mapping[str, Any], models: Mapping[str, Any]) -> Point:
    setup, given = _mapping(entry, "setup"), _mapping(entry, "given")
    platform, model = str(setup.get("platform", "")), str(setup.get("model") or "")
    if platform not in platforms:
        raise PredictionError(f"the file has no platform {platform!r}")
    if model and model not in models:
        raise PredictionError(f"the file has no model {model!r}")
    if not entry.get("metric"):
        raise PredictionError("the point names no metric")
    return Point(
        id=point_id,
        metric=str(entry["metric"]),
        unit=str(entry.get("unit", "")),
        regime=str(entry.get("regime", "other")),
        setup=Row("the setup", setup),
        given=Row("what is given", given),
        platform=Row(f"platform {platform!r}", platforms[platform]),
        platform_name=platform,
        model=Row(f"model {model!r}", models[model]) if model else None,
        model_name=model,
    )


def _mapping(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = entry.get(name) or {}
    if not isinstance(value, dict):
        raise PredictionError(f"{name!r} is {value!r}: a table of names to values was expected")
    return value


def _published(value: Any) -> float | tuple[float, float] | None:
    """A value, or the two ends of a bracket; None if it is not there or can't be read: it is only for the score."""
    try:
        if isinstance(value, list) and len(value) == 2:
            return number(value[0]), number(value[1])
        return number(value)
    except PredictionError:
        return None
