"""What a device looks like: one colour, one letter and one label, the same in every picture.

Colours are Okabe and Ito's, told apart by nearly all eyes; which one follows from the job and the task alone,
never from what else is in the picture. Colour never stands alone: there is the letter, the label, and hatching
for devices that are not a CPU. Theme: pictures use Jupyter's own CSS variables and look right without them.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from dtflab.graph.device_spec import DeviceName, label, parse


class Colour(NamedTuple):
    """Okabe-Ito's colour for areas, one for lines (3:1 on white and on black), and one for text upon it."""

    fill: str
    line: str
    ink: str


BLUE = Colour("#0072B2", "#0072B2", "#fff")
VERMILLION = Colour("#D55E00", "#D55E00", "#111")
GREEN = Colour("#009E73", "#009E73", "#111")
PURPLE = Colour("#CC79A7", "#B9628F", "#111")
ORANGE = Colour("#E69F00", "#B87F00", "#111")
SKY = Colour("#56B4E9", "#2E8BC0", "#111")
YELLOW = Colour("#F0E442", "#8F8600", "#111")
GREY = Colour("#8C959F", "#7D8590", "#111")

OKABE_ITO = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW)
_BY_JOB = {
    "ps": (BLUE, SKY, YELLOW),
    "worker": (VERMILLION, GREEN, PURPLE, ORANGE),
    "chief": (ORANGE,),
    "master": (ORANGE,),
    "evaluator": (PURPLE,),
}
_SINGLE = "localhost"  # a session without a cluster: here devices, not tasks, have colours


class Look(NamedTuple):
    """How one device is drawn and called."""

    device: str
    colour: Colour
    letter: str
    label: str
    hatched: bool


@functools.lru_cache(maxsize=1024)
def look(device: str) -> Look:
    """The look of a device, given its full or partial name; an empty name is an op that is not placed."""
    name = _parse(device)
    if name is None or (name.job is None and name.type is None):
        return Look(device, GREY, "?", device or "not placed", False)
    kind, index = name.type or "CPU", name.id or 0
    if name.job in (None, _SINGLE):
        number = index + (0 if kind == "CPU" else 1)
        return Look(device, OKABE_ITO[number % 7], f"{kind[0]}{index}", label(device), kind != "CPU")
    task = name.task or 0
    colours = _BY_JOB.get(name.job) or _shifted(name.job)
    plain = (kind, index) == ("CPU", 0)
    letter = name.job[0].upper() + str(task) + ("" if plain else kind[0].lower() + str(index))
    return Look(device, colours[task % len(colours)], letter, label(device), kind != "CPU")


def _parse(device: str) -> DeviceName | None:
    try:
        return parse(device)
    except ValueError:
        return None


def _shifted(job: str) -> tuple[Colour, ...]:
    start = zlib.crc32(job.encode()) % len(OKABE_ITO)
    return OKABE_ITO[start:] + OKABE_ITO[:start]


def in_order(devices: Iterable[str]) -> list[str]:
    """Devices as people list them: parameter servers, then the rest, numbers as numbers."""
    return sorted(set(devices), key=lambda d: (not d, "/job:ps/" not in d, natural(d)))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


FONT = "'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif"

# `.dtf` is the root of every picture; its own variables take Jupyter's value, VS Code's, or plain light.
_VARIABLES = (
    "--bg:var(--jp-layout-color0,var(--vscode-editor-background,#fff));"
    "--fg:var(--jp-content-font-color1,var(--vscode-editor-foreground,#1f2328));"
    "--soft:var(--jp-content-font-color2,var(--vscode-descriptionForeground,#57606a));"
    "--rule:var(--jp-border-color2,#d8dee4);"
    "--edge:#848d97"
)
_ALONE_DARK = "--bg:#0d1117;--fg:#e6edf3;--soft:#9aa4af;--rule:#30363d"

STYLE = (
    f".dtf{{{_VARIABLES}}}"
    f".dtf text{{font-family:{FONT};font-size:12px;fill:var(--fg);white-space:pre}}"
    ".dtf .card{fill:var(--bg)}.dtf .soft{fill:var(--soft)}.dtf .s11{font-size:11px}"
    ".dtf .b{font-weight:600}.dtf .end{text-anchor:end}.dtf .mid{text-anchor:middle}"
    ".dtf .rule{stroke:var(--rule);fill:none}"
)
STYLE_ALONE = f"@media(prefers-color-scheme:dark){{.dtf.alone{{{_ALONE_DARK}}}}}"
