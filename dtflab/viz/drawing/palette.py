"""The look of a device: one colour, one letter and one label, the same in every picture.

Colours are Okabe and Ito's, told apart by nearly all eyes, and two darker ones, or those of another `palette`. Those
of `ps` and `worker` follow from the name, those of other jobs are the first that are left; within a picture, which says
`together` what it shows, no two tasks have the same as long as there are colours. A task that is alone has a colour for
each device. Colour never stands alone: there is the letter, the label, and hatching for devices that are not a CPU.
Theme: pictures use Jupyter's own CSS variables and look right without them.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from dtflab.base.suggestions import did_you_mean
from dtflab.graph.device_spec import DeviceName, label, parse

PALETTES = ("okabe-ito", "muted")
_palette = PALETTES[0]


class Colour:
    """A colour of the palette that is set: for areas, for lines (3:1 or more on any page), for text upon its areas.

    Named as in Okabe and Ito's palette; a colour without a second form is the same in all palettes.
    """

    def __init__(self, fill: str, line: str, ink: str, muted: tuple[str, str, str] | None = None) -> None:
        self._forms = {"okabe-ito": (fill, line, ink), "muted": muted or (fill, line, ink)}

    @property
    def fill(self) -> str:
        return self._forms[_palette][0]

    @property
    def line(self) -> str:
        return self._forms[_palette][1]

    @property
    def ink(self) -> str:
        return self._forms[_palette][2]

    @property
    def rim(self) -> str | None:
        """The outline of an area, where the fill alone may be too pale for the page."""
        return self.line if self.line != self.fill else None


BLUE = Colour("#0072B2", "#0072B2", "#fff", muted=("#332288", "#6C57D5", "#fff"))
VERMILLION = Colour("#D55E00", "#D55E00", "#111", muted=("#CC6677", "#CC6677", "#111"))
GREEN = Colour("#009E73", "#009E73", "#111", muted=("#117733", "#127E36", "#fff"))
PURPLE = Colour("#CC79A7", "#B9628F", "#111", muted=("#AA4499", "#AA4499", "#fff"))
ORANGE = Colour("#E69F00", "#B87F00", "#111", muted=("#999933", "#919130", "#111"))
SKY = Colour("#56B4E9", "#2E8BC0", "#111", muted=("#88CCEE", "#1E94CF", "#111"))
YELLOW = Colour("#F0E442", "#8F8600", "#111", muted=("#DDCC77", "#9E8A27", "#111"))
WINE = Colour("#882255", "#B43E7A", "#fff", muted=("#882255", "#C13079", "#fff"))
BROWN = Colour("#7A4A12", "#9A6224", "#fff", muted=("#44AA99", "#3E9B8C", "#111"))
GREY = Colour("#8C959F", "#7D8590", "#111")

OKABE_ITO = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW)
_ALL = (*OKABE_ITO, WINE, BROWN)
PROGRAMS = _ALL[::-1]  # on a host without a cluster, whose few devices have the first ones
# Phases and kinds of work are violet, early ones pale, and lines of curves have the page's ink: a colour that means a
# task or a device in one picture means nothing else in the next.
VIOLETS = (
    Colour("#DAD7F6", "#7E76DB", "#111"),
    Colour("#A9A2EA", "#7E76DB", "#111"),
    Colour("#7E76DB", "#7E76DB", "#111"),
    Colour("#5145C2", "#7E76DB", "#fff"),
    Colour("#2C2480", "#7E76DB", "#fff"),
)
_BY_JOB = {
    "ps": (BLUE, SKY, YELLOW),
    "worker": (VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW, WINE, BROWN),
    "chief": (ORANGE,),
    "master": (ORANGE,),
    "evaluator": (PURPLE,),
}
WORKERS = len(_BY_JOB["worker"])  # that differ by their colours
_LEFT = (BLUE, SKY, YELLOW, WINE, BROWN, ORANGE, PURPLE, GREEN, VERMILLION)  # the workers' first ones last
_SINGLE = "localhost"  # a session without a cluster: here devices, not tasks, have colours
_Task = tuple[str, int]
_Who = TypeVar("_Who", bound=Hashable)


def palette(name: str) -> None:
    """Draw all pictures from now on in a palette: "okabe-ito", or "muted", Paul Tol's; both for all eyes.

    ValueError for another name.
    """
    global _palette
    if name not in PALETTES:
        known = ", ".join(map(repr, PALETTES))
        raise ValueError(f"There is no palette {name!r}.{did_you_mean(name, PALETTES)} There are {known}.")
    _palette = name


def current_palette() -> str:
    """The name of the palette that is set."""
    return _palette


class Look(NamedTuple):
    """How one device is drawn and called."""

    device: str
    colour: Colour
    letter: str
    label: str
    hatched: bool


def _task(name: DeviceName) -> _Task:
    return name.job or _SINGLE, name.task or 0


def _device(name: DeviceName) -> tuple[str, int]:
    return name.type or "CPU", name.id or 0


def _rank(task: _Task) -> tuple[int, list[tuple[int, str]], int]:
    """The order of choosing: first the jobs with colours of their own, then the others by their names."""
    job, number = task
    known = list(_BY_JOB)
    return (known.index(job) if job in known else len(known)), natural(job), number


def _wish(job: str, task: int) -> Colour | None:
    """The colour that a task has by its name; None for a job without colours of its own."""
    colours = _BY_JOB.get(job)
    return colours[task % len(colours)] if colours else None


def _given(wishes: Mapping[_Who, Colour | None]) -> dict[_Who, Colour]:
    """To each what it wishes, unless one before it has that; to the others, in order, the first that nobody has."""
    given: dict[_Who, Colour] = {}
    for who, wish in wishes.items():
        if wish is not None and wish not in given.values():
            given[who] = wish
    for who, wish in wishes.items():
        if who not in given:
            free = (colour for colour in _LEFT if colour not in given.values())
            given[who] = next(free, wish or _LEFT[len(given) % len(_LEFT)])
    return given


def _parse(device: str) -> DeviceName | None:
    try:
        return parse(device)
    except ValueError:
        return None


class _Company:
    """The devices of one picture: the colours of their tasks and jobs, and which of them share a task."""

    def __init__(self, devices: Iterable[str] = ()) -> None:
        own: dict[_Task, set[tuple[str, int]]] = {}
        for name in (_parse(device) for device in devices):
            if name is not None and name.job not in (None, _SINGLE):
                own.setdefault((name.job, name.task or 0), set()).add(_device(name))
        tasks = sorted(own, key=_rank)
        self.colours = _given({task: _wish(*task) for task in tasks})
        self.jobs = _given({job: _wish(job, 0) for job, _ in tasks})
        self.several = {task for task in tasks if len(own[task]) > 1}
        self.alone = len(tasks) == 1

    def by_device(self, name: DeviceName) -> bool:
        """Whether devices, not tasks, have colours."""
        return name.job in (None, _SINGLE) or (self.alone and name.type is not None and _task(name) in self.several)

    def label(self, device: str, name: DeviceName) -> str:
        """A CPU is called by its name only where another device of its task stands next to it."""
        plain = name.type == "CPU" and name.id == 0 and _task(name) in self.several
        return f"{name.job}:{name.task or 0} CPU:0" if plain else label(device)


_NOBODY = _Company()
_company: ContextVar[_Company] = ContextVar("devices of the picture that is being drawn", default=_NOBODY)


@contextlib.contextmanager
def together(devices: Iterable[str]) -> Iterator[None]:
    """Within, the looks are those of a picture that shows these devices; full names, partial ones or those of tasks."""
    before = _company.set(_Company(devices))
    try:
        yield
    finally:
        _company.reset(before)


def look(device: str) -> Look:
    """The look of a device, given its full or partial name; an empty name is an op that is not placed."""
    return _look(device, _company.get())


def job_look(device: str) -> Look:
    """The look of a device's job: the colour of its first task, the letter of its name."""
    job = device.partition("/job:")[2].partition("/")[0]
    if not job:
        return look("")
    colour = _company.get().jobs.get(job) or look(f"/job:{job}/task:0").colour
    return Look(f"/job:{job}/", colour, job[0].upper(), f"/job:{job}", False)


@functools.lru_cache(maxsize=1024)
def _look(device: str, company: _Company) -> Look:
    name = _parse(device)
    if name is None or (name.job is None and name.type is None):
        return Look(device, GREY, "?", device or "not placed", False)
    (kind, index), words = _device(name), company.label(device, name)
    if company.by_device(name):
        number = index + (0 if kind == "CPU" else 1)
        return Look(device, _ALL[number % len(_ALL)], f"{kind[0]}{index}", words, kind != "CPU")
    job, task = _task(name)
    colour = company.colours.get((job, task)) or _wish(job, task) or _LEFT[task % len(_LEFT)]
    letter = job[0].upper() + str(task) + ("" if (kind, index) == ("CPU", 0) else kind[0].lower() + str(index))
    return Look(device, colour, letter, words, kind != "CPU")


def in_order(devices: Iterable[str]) -> list[str]:
    """Devices as people list them: parameter servers, then the rest, numbers as numbers."""
    return sorted(set(devices), key=lambda d: (not d, "/job:ps/" not in d, natural(d)))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]
