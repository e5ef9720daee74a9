"""PNG: a picture as pixels, for slides and papers, drawn by resvg from the SVG, as on a light page.

resvg is small and needs no library of the system; CairoSVG does, and would draw a halo over its text; a browser is not
where a kernel runs. It knows neither custom properties of CSS nor media queries, so what they come to on a light page
is written out. Its fonts are the system's; a system without them gets those that matplotlib brings.

Rule: only what is asked for is drawn. An output holds a PNG if the setting `DtfLab.png` says so.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

FAMILY = "DejaVu Sans"  # matplotlib has it
_PIXELS = 2.0  # for each of the SVG's: sharp on a projector and in print
_OTHER_PAGES = re.compile(r"@media\([^)]*\)\{(?:[^{}]*\{[^{}]*\})*\}")  # dark, of forced colours
_OF_A_PAGE = re.compile(r"var\(--(?:jp|vscode)-[\w-]+,([^()]*)\)")
_shown = False


def show(on: bool) -> None:
    """Whether outputs of a notebook hold pictures as PNG, next to HTML."""
    global _shown
    _shown = on


def is_shown() -> bool:
    """Whether they do."""
    return _shown


def of_svg(svg: str) -> bytes:
    """The PNG file of a picture's SVG; ModuleNotFoundError without resvg."""
    try:
        import resvg_py
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"PNG needs resvg: pip install 'dtflab[lab]', or save as .svg. ({error})") from None
    fonts = [str(path) for path in _fonts()]
    drawn = resvg_py.svg_to_bytes(svg_string=plain(svg), zoom=_PIXELS, sans_serif_family=FAMILY, font_files=fonts)
    return bytes(drawn)


def plain(svg: str) -> str:
    """The SVG without media queries and custom properties."""
    text, found = _OTHER_PAGES.sub("", svg), 1
    while found:  # from the inside out
        text, found = _OF_A_PAGE.subn(r"\1", text)
    values = dict(re.findall(r"(--\w+):([^;}]+)", text))
    text = re.sub(r"--\w+:[^;}]+;?", "", text)
    while "var(" in text:  # the projector's grey is its black
        text = re.sub(r"var\((--\w+)\)", lambda match: values[match[1]], text)
    return text.replace("<svg ", '<svg xml:space="preserve" ', 1)


def _fonts() -> list[Path]:
    """The files of the family that matplotlib has; it need not be loaded for that."""
    spec = importlib.util.find_spec("matplotlib")
    folders = spec.submodule_search_locations if spec is not None else None
    return [path for folder in folders or () for path in Path(folder).glob("mpl-data/fonts/ttf/DejaVuSans*.ttf")]
