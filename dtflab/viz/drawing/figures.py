"""A matplotlib figure as a drawing of this room: it follows the page's theme and style, and has no ids.

matplotlib lays the figure out and tells a renderer what to draw; the one here writes Markup. (Its own SVG has fixed
colours, and ids that two figures of one page share.) The colours that are named here become those of the page, all
others stay. A unit of the drawing is a dot of the figure. Left out: images, gradients and formulas.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from dtflab.viz.drawing.svg import Markup, join, number, tag, text_width

if TYPE_CHECKING:
    from matplotlib.backend_bases import GraphicsContextBase
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.transforms import Transform

INK, SOFT, RULE, EDGE, CARD = "#1f2328", "#57606a", "#d8dee4", "#848d97", "#ffffff"

_PAINT = {INK: "var(--fg)", SOFT: "var(--soft)", CARD: "var(--bg)"}
_CLASSES = {RULE: "grid", EDGE: "axis"}  # lines that a style draws in its own way
_ANCHORS = {"left": (None, 0.0), "center": ("mid", 0.5), "right": ("end", 1.0)}
_STEPS = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}  # matplotlib's codes of a path
_SEEN = 0.5  # units: what a line bends by less goes unseen
_ASCENT, _DESCENT = 0.72, 0.2  # of the size of a font


def drawing(figure: Figure) -> Markup:
    """The contents of a figure, in a page of `figure.bbox.size`."""
    for _ in range(2):  # until its layout has settled, so that the same figure is the same drawing
        figure.draw_without_rendering()
    renderer = _renderer_class()(figure)
    figure.draw(renderer)
    return join(renderer.parts)


class _Writer:
    """A renderer that turns matplotlib's drawing into Markup."""

    def __init__(self, figure: Figure) -> None:
        super().__init__()
        self.parts: list[Markup] = []
        self._width, self._height = figure.bbox.size
        self._dpi = figure.dpi

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self._width, self._height

    def points_to_pixels(self, points: float) -> float:
        return points * self._dpi / 72

    def get_text_width_height_descent(self, s: str, prop: FontProperties, ismath: Any) -> tuple[float, float, float]:
        size = self.points_to_pixels(prop.get_size_in_points())
        return text_width(_plain(s, ismath), size, _is_bold(prop)), (_ASCENT + _DESCENT) * size, _DESCENT * size

    def draw_path(self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace: Any = None) -> None:
        clip = self._clip(gc) if rgbFace is None else None  # to cut an area would need an id
        path.simplify_threshold = _SEEN  # of lines with very many points
        self._add(gc, _d(path.iter_segments(self._down(transform), clip=clip)), rgbFace)

    def draw_markers(
        self,
        gc: GraphicsContextBase,
        marker_path: Path,
        marker_trans: Transform,
        path: Path,
        trans: Transform,
        rgbFace: Any = None,
    ) -> None:
        """A path for each marker, which a wider page moves."""
        marker = [
            (points * ([1, -1] * (len(points) // 2)), code) for points, code in marker_path.iter_segments(marker_trans)
        ]
        left, top, right, bottom = self._clip(gc) or (0, 0, self._width, self._height)
        for points, _ in path.iter_segments(self._down(trans), simplify=False):
            x, y = points[-2:]
            if left <= x <= right and top <= y <= bottom:
                self._add(gc, _d((step + [x, y] * (len(step) // 2), code) for step, code in marker), rgbFace, at=x)

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        width, _, _ = self.get_text_width_height_descent(s, prop, ismath)
        anchor, share = _ANCHORS["left" if mtext is None or angle else mtext.get_horizontalalignment()]
        size = self.points_to_pixels(prop.get_size_in_points())
        turned = {"transform": f"rotate({number(-angle)} {number(x)} {number(y)})"} if angle else {}
        classes = " ".join(filter(None, ["b" if _is_bold(prop) else None, anchor]))
        style = f"font-size:{number(size)}px;fill:{_paint(_hex(gc.get_rgb()))}"
        text = _plain(s, ismath)
        self.parts.append(tag("text", text, x=x + share * width, y=y, class_=classes or None, style=style, **turned))

    def _add(self, gc: GraphicsContextBase, d: str, face: Any, at: float | None = None) -> None:
        width, colour = self.points_to_pixels(gc.get_linewidth()), _hex(gc.get_rgb())
        class_ = _CLASSES.get(colour) if width else None
        style = f"fill:{'none' if face is None else _paint(_hex(face))}"
        style += f";stroke-width:{number(width)}" if width else ""
        style += f";stroke:{_paint(colour)}" if width and not class_ else ""
        dashes: Any = gc.get_dashes()[1]
        if width and dashes is not None:
            style += f";stroke-dasharray:{' '.join(number(self.points_to_pixels(length)) for length in dashes)}"
        opacity = gc.get_rgb()[3] if face is None or len(face) < 4 else face[3]
        style += f";opacity:{number(opacity)}" if opacity < 1 else ""
        if d:
            self.parts.append(tag("path", d=d, class_=class_, style=style, data_at=at))

    def _down(self, transform: Transform) -> Transform:
        """matplotlib's y grows upwards."""
        from matplotlib.transforms import Affine2D

        return transform + Affine2D().scale(1, -1).translate(0, self._height)

    def _clip(self, gc: GraphicsContextBase) -> tuple[float, float, float, float] | None:
        """Left, top, right and bottom of where may be drawn."""
        box = gc.get_clip_rectangle()
        return None if box is None else (box.x0, self._height - box.y1, box.x1, self._height - box.y0)


@functools.cache
def _renderer_class() -> Any:
    """The writer, with what all renderers have; made here, so that matplotlib is loaded only to draw."""
    from matplotlib.backend_bases import RendererBase

    return type("Renderer", (_Writer, RendererBase), {})


def _d(segments: Any) -> str:
    """The `d` of a path."""
    return "".join(_STEPS[code] + " ".join(map(number, [] if code == 79 else points)) for points, code in segments)


def _hex(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


def _paint(colour: str) -> str:
    return _PAINT.get(colour, colour)


def _is_bold(prop: FontProperties) -> bool:
    from matplotlib.font_manager import weight_dict

    weight = prop.get_weight()
    return (weight_dict[weight] if isinstance(weight, str) else weight) >= weight_dict["semibold"]


def _plain(text: str, ismath: Any) -> str:
    """A text without the signs of a formula: numbers of a logarithmic axis are such, `$10^{-2}$`."""
    from matplotlib.cbook import strip_math

    return strip_math(text) if ismath else text
