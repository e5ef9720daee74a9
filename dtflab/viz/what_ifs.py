"""Pictures of what-ifs: steps one under the other on one scale of time, and a number over the setting that was changed.

Of each step the devices that compute, and below them the links that were taken longest; what stands for so little time
that it can't be seen is drawn together with its neighbours. All bars are as long as they took, to the same scale, so
that the eye compares; the words say the same in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base.text_table import percent, plural, text_table
from dtflab.hardware import catalogue
from dtflab.hardware.parts import Network, Nic
from dtflab.sim.what_ifs.outcomes import FACTORS, HEADS, PATH_HEADS, Outcome
from dtflab.viz.curves import curve
from dtflab.viz.drawing.marks import badge, badge_width, heading, stretch
from dtflab.viz.drawing.palette import GREY, Colour, in_order, look, together
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, join, number, shorten, tag, text_width
from dtflab.viz.drawing.units import time_ticks

if TYPE_CHECKING:
    from dtflab.viz.curves import Curves

_LEFT, _RIGHT = 190.0, 66.0  # for the name of a row, and for the number behind it
_ROW, _LINK, _GAP = 20.0, 14.0, 14.0
_LEAST = 0.5  # px: bars and gaps that are narrower are drawn together


class _Scale(NamedTuple):
    """Seconds → px."""

    seconds: float

    def x(self, moment: float) -> float:
        return _LEFT + moment / self.seconds * (room() - _LEFT - _RIGHT)


def what_if(
    outcomes: Outcome | Sequence[Outcome] | Mapping[str, Outcome],
    *,
    devices: int = 8,
    links: int = 3,
    title: str = "What if",
) -> Picture:
    """Steps of `WhatIf.run`, or of several questions by name, under each other: `viz.what_if([w.base, slower])`.

    Of each are drawn the `devices` that computed most and the `links` that were most in the way; below them stands how
    many others there are. An empty `title` saves its line. ValueError for nothing, TypeError for other types.
    """
    if isinstance(outcomes, Outcome):
        outcomes = [outcomes]
    _check(outcomes.values() if isinstance(outcomes, Mapping) else outcomes)
    named = list(outcomes.items() if isinstance(outcomes, Mapping) else ((one.title, one) for one in outcomes))
    if not named:
        raise ValueError("There is nothing to draw: viz.what_if([w.base, w.run(network='1Gb/s')]).")
    scale = _Scale(max(one.makespan for _, one in named))
    blocks: list[Markup] = []
    y = 0.0
    if title:
        blocks.append(head := heading(title, f"{plural(len(named), 'step')} on one scale of time"))
        y += head.height + 10
    with together(device for _, one in named for device in _busiest(one, devices)):
        for name, one in named:
            block, height = _step(name, one, scale, devices, links)
            blocks.append(tag("g", block, transform=f"translate(0 {number(y)})"))
            y += height + _GAP
    heads, rows = _table(named)
    sentence = f"{title or 'Steps'}. {'; '.join(f'{name}: {one.sentence}' for name, one in named)}."
    drawing = join([*blocks, _stretch(scale, *_axis(scale, y - _GAP + 14))])
    tables: list[Table] = [(title or "Steps", heads, rows)]
    tables += [(f"Critical path: {name}", PATH_HEADS, one.path_rows) for name, one in named]
    return Picture(drawing, (room(), y + 4), rules("what_ifs"), sentence, tables, text_table(heads, rows))


def _table(named: Sequence[tuple[str, Outcome]]) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """A row for each step. Where each is the base of a question of its own, nothing is said of a speedup over bases."""
    table = [HEADS, *((name, *one.row[1:]) for name, one in named)]
    if len(named) > 1 and not any(one.changes for _, one in named):
        at = HEADS.index("speedup")
        table = [(*row[:at], *row[at + 1 :]) for row in table]
    return table[0], table[1:]


def _check(outcomes: Any) -> None:
    """TypeError for anything but outcomes of a WhatIf."""
    if not isinstance(outcomes, Iterable) or not all(isinstance(one, Outcome) for one in outcomes):
        raise TypeError(
            f"Give what WhatIf.run and WhatIf.sweep gave, such as [w.base, w.run(gpu=2.0)], not {outcomes!r}."
        )


def _step(name: str, one: Outcome, scale: _Scale, devices: int, links: int) -> tuple[Markup, float]:
    """One step, from y = 0 on, and its height."""
    head = heading(name, one.sentence)
    top = y = head.height + 4
    parts: list[Markup] = []
    names: list[Markup] = [head]
    for device in (shown := _busiest(one, devices)):
        spans = [(span.start, span.end, span.name) for span in one.schedule.spans[device]]
        parts += _rows(spans, scale, y + 1, _ROW - 4, look(device).colour)
        names += _device(device, one.idle[device], y)
        y += _ROW
    loads = list(one.link_load.items())
    for link, load in loads[:links]:
        parts += _rows(_hops(one, link), scale, y + 2, _LINK - 5, GREY)
        names += _link(link, load, y)
        y += _LINK
    end = scale.x(one.makespan)
    parts.append(tag("path", d=f"M{number(end)} {number(top - 3)}V{number(y + 1)}", class_="over"))
    block = join([_stretch(scale, *_grid(scale, top, y), *parts), *names])
    idle = [one.idle[device] for device, busy in one.busy.items() if busy and device not in shown]
    if not (text := "; ".join(_left_out(idle, loads[links:]))):
        return block, y
    return join([block, tag("text", f"and {text}", x=0, y=y + 13, class_="s11 soft")]), y + _LINK


def _busiest(one: Outcome, most: int) -> list[str]:
    """The `most` busiest devices; the first ones if several are equally busy (but for rounding)."""
    found = in_order(device for device, busy in one.busy.items() if busy)
    return in_order(sorted(found, key=lambda device: -float(f"{one.busy[device]:.6g}"))[:most])


def _left_out(idle: Sequence[float], loads: Sequence[tuple[str, float]]) -> Iterator[str]:
    """The rows that are not drawn, in words."""
    if idle:
        least, most = percent(min(idle)), percent(max(idle))
        shares = f"{most} idle{' each' if idle[1:] else ''}" if least == most else f"{least.rstrip('%')} to {most} idle"
        yield f"{plural(len(idle), 'more device')}, {shares}"
    if loads:
        yield f"{plural(len(loads), 'more link')}, taken {100 * max(load for _, load in loads):.0f}% at most"


def _hops(one: Outcome, link: str) -> list[tuple[float, float, str]]:
    """From when to when each message took a link."""
    return [
        (hop.start, hop.end, message.source)
        for message in one.messages
        for hop in message.hops
        if hop.link.short == link and hop.end > hop.start
    ]


def _stretch(scale: _Scale, *parts: Markup) -> Markup:
    return stretch((scale.x(0), scale.x(scale.seconds)), *parts)


def _device(device: str, idle: float, y: float) -> Iterator[Markup]:
    how = look(device)
    yield badge(how, 0, y, 17)
    yield tag("text", how.label, x=badge_width(how) + 7, y=y + 13, class_="s11")
    yield _number(f"{percent(idle)} idle", y)


def _link(name: str, load: float, y: float) -> Iterator[Markup]:
    yield tag("text", shorten(name, _LEFT - 8, 11), x=0, y=y + 10, class_="s11 soft")
    yield _number(f"{100 * load:.0f}%", y - 3)


def _number(text: str, y: float) -> Markup:
    return tag("text", text, x=room(), y=y + 13, class_="s11 soft end right")


def _rows(
    spans: Iterable[tuple[float, float, str]], scale: _Scale, y: float, height: float, colour: Colour
) -> Iterator[Markup]:
    """A lane and its bars."""
    left, right = scale.x(0), scale.x(scale.seconds)
    yield tag("rect", x=left, y=y, width=right - left, height=height, rx=2, class_="lane")
    yield _bars(spans, scale, y + 1, height - 2, colour)


def _bars(spans: Iterable[tuple[float, float, str]], scale: _Scale, y: float, height: float, colour: Colour) -> Markup:
    paint = {"fill": colour.fill, "stroke": colour.rim}
    return join(
        tag("g", tag("title", words), tag("rect", x=x, y=y, width=max(end - x, _LEAST), height=height, **paint))
        for x, end, words in _seen(spans, scale)
    )


def _seen(spans: Iterable[tuple[float, float, str]], scale: _Scale) -> Iterator[tuple[float, float, str]]:
    """Bars in px and their words; those between which nothing could be seen are one."""
    held: list[tuple[float, float, str]] = []

    def drawn() -> Iterator[tuple[float, float, str]]:
        if held:
            words = held[0][2] if len(held) == 1 else f"{plural(len(held), 'op')}, {held[0][2]} first"
            yield held[0][0], max(end for _, end, _ in held), words

    for start, end, name in sorted(spans):
        x, right = scale.x(start), scale.x(end)
        narrow = held and right - x < 3 and held[-1][1] - held[-1][0] < 3
        if held and not (narrow and x - held[-1][1] < _LEAST):
            yield from drawn()
            held.clear()
        held.append((x, right, name))
    yield from drawn()


def _ticks(scale: _Scale) -> Iterator[tuple[float, str]]:
    """Where round times are, and how they are written."""
    for micros, text in time_ticks(1e6 * scale.seconds, scale.x(scale.seconds) - _LEFT):
        yield scale.x(micros / 1e6), text


def _grid(scale: _Scale, top: float, bottom: float) -> Iterator[Markup]:
    for x, _ in _ticks(scale):
        yield tag("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", class_="grid")


def _axis(scale: _Scale, y: float) -> Iterator[Markup]:
    yield tag("text", "dashed: the end of the step", x=0, y=y, class_="s11 soft")
    for x, text in _ticks(scale):
        at = min(x, room() - text_width(text, 11) / 2)
        yield tag("text", text, x=at, y=y, class_="s11 soft mid")


# -- a number over what was changed ---------------------------------------------------------------------------------

_SHOWN: dict[str, tuple[str, Callable[[Outcome], float]]] = {
    "step": ("step time, ms", lambda one: 1e3 * one.makespan),
    "throughput": ("{} per second", lambda one: one.throughput),
    "speedup": ("speedup over the base", lambda one: one.speedup),
}


def sweep(
    outcomes: Sequence[Outcome] | Mapping[str, Sequence[Outcome]], of: str = "step", *, title: str = ""
) -> Curves:
    """A curve of `of` ("step" time, "throughput" or "speedup") over what `WhatIf.sweep` changed.

    Several by name for several lines, all over the same values: `{net: w.sweep(workers=[1, 4], network=net) for net in
    ("1Gb/s", "10Gb/s")}`. Networks are drawn by their rate in Gbit/s. ValueError
    if the values are not numbers (a table suits them better), or not the same.
    """
    if of not in _SHOWN:
        raise ValueError(f"of must be one of {', '.join(_SHOWN)}, not {of!r}.")
    lines = outcomes if isinstance(outcomes, Mapping) else {of: outcomes}
    for each in lines.values():
        _check(each)
    if not lines:
        raise ValueError("There is nothing to draw: viz.sweep(w.sweep(workers=[1, 2, 4])).")
    axes = {name: _values(each) for name, each in lines.items()}
    (what, xs) = next(iter(axes.values()))
    if any(found != (what, xs) for found in axes.values()):
        raise ValueError(f"The lines {', '.join(lines)} are not over the same values of one thing.")
    words, shown = _SHOWN[of]
    counted = {name: one.what for name, each in lines.items() for one in each}
    if of == "throughput" and len(set(counted.values())) > 1:
        (first, what), (second, other) = {what: (name, what) for name, what in counted.items()}.values()
        raise ValueError(
            f"{first!r} counts {what} per second, {second!r} {other}, so they have no axis in common. Give what_if(…, "
            "batch=…) for both, or draw the 'speedup'."
        )
    ys = {name: [shown(one) for one in each] for name, each in lines.items()}
    words = words.format(next(iter(lines.values()))[0].what)
    return curve(xs, ys, what, words, title=title, log=_is_wide(what, xs) or None)


def _is_wide(what: str, xs: Sequence[float]) -> bool:
    """Whether these are rates, or factors of them, the largest ten times the smallest or more."""
    return what.startswith(FACTORS) and 0 < 10 * min(xs) <= max(xs)


def _values(outcomes: Sequence[Outcome]) -> tuple[str, list[float]]:
    """The setting that a sweep changed, with its unit, and the values as numbers."""
    what = _swept(outcomes)
    values = [one.changes[what] for one in outcomes]
    if what == "network" and all(isinstance(value, str | Nic | Network) for value in values):
        return "network, Gbit/s", [8e-9 * catalogue.network(value).nic.bandwidth for value in values]
    if not all(isinstance(value, Real) for value in values):
        raise ValueError(f"{what}={values[0]!r} is not a number to draw over. Print the table, `w.table({what}=[…])`.")
    return f"{what}, × the base" if what in FACTORS else what, [float(value) for value in values]


def _swept(outcomes: Sequence[Outcome]) -> str:
    """The one thing that differs from outcome to outcome; what else was changed is the same in all of them."""
    names = {tuple(one.changes) for one in outcomes}
    changed = names.pop() if len(names) == 1 else ()
    differ = [what for what in changed if any(one.changes[what] != outcomes[0].changes[what] for one in outcomes)]
    if len(found := differ or changed) != 1:
        raise ValueError("A curve is drawn over one thing that was changed: WhatIf.sweep(workers=[1, 2, 4]).")
    return found[0]
