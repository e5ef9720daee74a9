"""The lines and areas of a picture as a browser paints them: their colours on the page, and how far these stand out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

RGB = tuple[float, float, float]
_INHERITED = ("stroke", "stroke-opacity", "paint-order", "fill", "fill-opacity")
_SHAPES = ("path", "rect", "circle", "text")
_AT_NIGHT = re.compile(r"@media\(prefers-color-scheme:dark\)\{((?:[^{}]*\{[^{}]*\})*)\}")
_FORCED = re.compile(r"@media\(forced-colors:active\)\{((?:[^{}]*\{[^{}]*\})*)\}")
_VARIABLE = re.compile(r"var\((?P<name>--[\w-]+)(?:,(?P<other>(?:[^()]|\([^()]*\))*))?\)")

# The variables of the pages that pictures stand on: JupyterLab's two themes (its greys, see-through there, as they
# appear) and VS Code's dark one. A file of its own has none, and by night a rule of the drawing's.
PAGES = {
    "file": {},
    "file at night": {},
    "JupyterLab": {
        "--jp-layout-color0": "#fff", "--jp-content-font-color1": "#212121", "--jp-content-font-color2": "#757575",
    },
    "JupyterLab dark": {
        "--jp-layout-color0": "#111", "--jp-content-font-color1": "#fff", "--jp-content-font-color2": "#b8b8b8",
    },
    "VS Code dark": {
        "--vscode-editor-background": "#1f1f1f", "--vscode-editor-foreground": "#ccc",
        "--vscode-descriptionForeground": "#9d9d9d",
    },
    "forced colours": {},
}  # fmt: skip

SYSTEM = {"Canvas": "#000", "CanvasText": "#fff"}  # a system's high contrast, the theme that Windows calls Night sky
BACKGROUNDS = ("#fff", "#0d1117", "#111", "#1f1f1f")  # of these pages


class Stroke(NamedTuple):
    """A line: its classes, its paint as written, its contrast, and whether it is a halo behind a text."""

    classes: frozenset[str]
    paint: str
    contrast: float
    halo: bool


class Area(NamedTuple):
    """A filled shape: its classes, its paint as written, and its contrast or that of its outline, the higher one."""

    classes: frozenset[str]
    paint: str
    contrast: float


def luminance(colour: RGB) -> float:
    """WCAG's relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: RGB, other: RGB) -> float:
    """WCAG's contrast ratio, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rgb(colour: str) -> RGB:
    """The channels of `#rgb` or `#rrggbb`, from 0 to 1."""
    digits = colour.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    red, green, blue = (int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4))
    return red, green, blue


def strokes(svg: str, page: str) -> Iterator[Stroke]:
    """Every line of a drawing that stands on one of the `PAGES`."""
    for classes, element, style, seen in _on_a_page(svg, page):
        if style.get("stroke", "none") != "none":
            halo = element == "text" and style.get("paint-order") == "stroke"
            yield Stroke(classes, style["stroke"], seen("stroke"), halo)


def areas(svg: str, page: str) -> Iterator[Area]:
    """Every filled shape of a drawing that stands on one of the `PAGES`, but not its text."""
    for classes, element, style, seen in _on_a_page(svg, page):
        if element != "text" and style.get("fill", "#000") != "none":
            outline = seen("stroke") if style.get("stroke", "none") != "none" else 1.0
            yield Area(classes, style.get("fill", "#000"), max(seen("fill"), outline))


def _on_a_page(svg: str, page: str) -> Iterator[tuple[frozenset[str], str, Mapping[str, str], Callable[[str], float]]]:
    """The shapes: their classes, element and style, and the contrast of their "fill" or "stroke"."""
    root = ElementTree.fromstring(svg.partition("\n")[2])
    css = _AT_NIGHT.sub(r"\1" if page == "file at night" else "", root[0].text or "")
    css = _FORCED.sub(r"\1" if page == "forced colours" else "", css)
    rules = [
        (selector.rpartition(" ")[::2], _declared(body))
        for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", css)
        for selector in selectors.split(",")
    ]
    of_root = {name: value for (before, _), what in rules if not before for name, value in what.items()}
    variables = {**{n: v for n, v in of_root.items() if n.startswith("--")}, **PAGES[page]}
    within = [(last, what) for (before, last), what in rules if before]
    background = rgb(_value("var(--bg)", variables))
    for classes, element, style, opacity in _painted(root, within, {}, 1.0):

        def seen(kind: str, style: Mapping[str, str] = style, opacity: float = opacity) -> float:
            share = opacity * float(style.get(f"{kind}-opacity", 1))
            paint = rgb(_value(style.get(kind, "#000"), variables))
            red, green, blue = (share * a + (1 - share) * b for a, b in zip(paint, background, strict=True))
            return contrast((red, green, blue), background)

        yield frozenset(classes), element, style, seen


def _painted(
    node: ElementTree.Element, rules: Sequence[tuple[str, Mapping[str, str]]], above: Mapping[str, str], opacity: float
) -> Iterator[tuple[list[str], str, Mapping[str, str], float]]:
    """The shapes: their classes, element, style and opacity; a rule wins over an attribute."""
    element, classes = node.tag.rpartition("}")[2], node.get("class", "").split()
    own = dict(node.attrib)
    for last, what in rules:
        if last == element or last.removeprefix(".") in classes:
            own.update(what)
    own.update(_declared(node.get("style", "")))
    style = {**above, **{key: own[key] for key in _INHERITED if key in own}}
    opacity *= float(own.get("opacity", 1))
    if element in _SHAPES:
        yield classes, element, style, opacity
    for child in node:
        yield from _painted(child, rules, style, opacity)


def _declared(text: str) -> dict[str, str]:
    return {key.strip(): value.strip() for key, _, value in (one.partition(":") for one in text.split(";")) if key}


def _value(text: str, variables: Mapping[str, str]) -> str:
    """The text with each `var(--name,other)` replaced by what it stands for."""
    while match := _VARIABLE.search(text):
        text = text.replace(match[0], variables.get(match["name"]) or match["other"])
    return SYSTEM.get(text, text)
