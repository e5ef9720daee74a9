"""The picture of a card that was full: its blocks by address, what was asked for, and the allocations before.

A row is the card's memory from its first address to its last. In a live page, buttons go through the last allocations
and deallocations; the still is the moment of the error. Blocks that were in use then and whose allocation is not
remembered any more are there from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base.errors import ResourceExhaustedError
from dtflab.base.text_table import plural, text_table
from dtflab.graph import dtypes
from dtflab.graph.node import line_text
from dtflab.graph.node_names import readable
from dtflab.machine.bfc_allocator import Block, Exhausted
from dtflab.ops.messages import dtype_text, shape_text
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Picture, Table, first_rows
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, shorten, tag
from dtflab.viz.drawing.units import memory_size

_HIGH, _ASKED = 46.0, 36.0  # of the row, and of the bars below it


class _Stay(NamedTuple):
    """A block, in use from one place of the replay until before another one."""

    block: Block
    first: int
    last: int


class _Moment(NamedTuple):
    """A place of the replay: what happened then, and what was left."""

    says: str
    lit: int  # the block that was taken or given back; -1: none
    free: int
    largest: int


def allocations(error: ResourceExhaustedError, *, width: float | None = None, title: str = "Out of memory") -> Picture:
    """Picture the memory of a simulated GPU when it was full, and the allocations that led there.

    ValueError if the error brings no blocks: those of a task in another process, and of what no simulated card refused,
    have none.
    """
    found: Exhausted | None = error.exhausted
    if found is None:
        raise ValueError("This error brings no blocks. A simulated GPU of this process brings them when it is full.")
    device = (error.device or "") or "/device:GPU:0"
    with together([device]):
        inner = room(width)
        stays = _stays(found)
        moments = list(_moments(found, stays))
        last = moments[-1]
        failed = (
            f"When it failed, {memory_size(found.wanted)} were asked for and {memory_size(last.free)} were free; the "
            f"largest free block had {memory_size(last.largest)}."
        )
        head = marks.heading(title, failed, inner)
        top = head.height + 34.0
        strip = _Strip(found, inner, top)
        blocks = (strip.block(stay, device, len(moments) - 1) for stay in stays)
        row = marks.stretch((0, inner), strip.scale(), *blocks, strip.frame())
        drawing = join([tag("g", head, class_="head"), row, *strip.asked(last)])
        live = {
            "view": "allocations",
            "lit": [moment.lit for moment in moments],
            "says": [m.says for m in moments],
            "blocks": {
                "first": [s.first for s in stays],
                "last": [s.last for s in stays],
                "card": [_card(stay.block) for stay in stays],
            },
        }
        tables = _tables(found, moments)
        sentence = f"{title}: {failed}"
        text = f"{sentence}\n{text_table(*tables[0][1:])}"
        return Picture(drawing, (inner, strip.bottom), rules("allocations"), sentence, tables, text, live=live)


def _stays(found: Exhausted) -> list[_Stay]:
    """Every block of the replay, by address and time, with the places at which it is in use."""
    end = len(found.last) + 1  # the last place is that of the error
    since: dict[int, tuple[Block, int]] = {}
    stays: list[_Stay] = []
    for place, (taken, block) in enumerate(found.last, 1):
        if taken:
            since[block.address] = block, place
        else:
            began = since.pop(block.address, (block, 0))[1]
            stays.append(_Stay(block, began, place))
    stays += [_Stay(block, place, end + 1) for block, place in since.values()]
    stays += [_Stay(block, 0, end + 1) for block in found.held if block.address not in since]
    return sorted(stays, key=lambda stay: (stay.block.address, stay.first))


def _moments(found: Exhausted, stays: Sequence[_Stay]) -> Iterator[_Moment]:
    number = {(stay.block.address, stay.first): i for i, stay in enumerate(stays)}
    ends = {(stay.block.address, stay.last): i for i, stay in enumerate(stays)}
    count = len(found.last)
    for place in range(count + 2):
        used = [stay.block for stay in stays if stay.first <= place < stay.last]
        free = found.limit - sum(block.size for block in used)
        largest = _largest_gap(found, used)
        room_left = f"{memory_size(free)} are free, the largest free block has {memory_size(largest)}."
        if place == 0:
            yield _Moment(f"Before the last {plural(count, 'allocation')}: {room_left}", -1, free, largest)
        elif place > count:
            yield _Moment(f"{memory_size(found.wanted)} are asked for. The allocation fails.", -1, free, largest)
        else:
            taken, block = found.last[place - 1]
            lit = (number if taken else ends)[block.address, place]
            does = "takes" if taken else "gives back"
            says = f"{place} of {count}: {_name(block)} {does} {memory_size(block.size)}. {room_left}"
            yield _Moment(says, lit, free, largest)


def _largest_gap(found: Exhausted, used: Iterable[Block]) -> int:
    """The bytes of the largest free block; of a card that has given nothing yet, all that it may give."""
    largest = found.limit - sum(size for _, size in found.regions)
    blocks = sorted(used)
    for start, size in found.regions:
        at = start
        for block in blocks:
            if start <= block.address < start + size:
                largest, at = max(largest, block.address - at), block.address + block.size
        largest = max(largest, start + size - at)
    return largest


class _Strip:
    """The row of the card's memory, and the bars below it: what was asked for, and the largest free block."""

    def __init__(self, found: Exhausted, width: float, top: float) -> None:
        self.found, self.width, self.top = found, width, top
        self.bottom = top + _HIGH + 2 * _ASKED + 8

    def _x(self, nbytes: float) -> float:
        return self.width * nbytes / self.found.limit

    def scale(self) -> Markup:
        text = f"all of {self.found.allocator}, {memory_size(self.found.limit)}, by address; what is empty is free"
        return tag("text", text, x=0, y=self.top - 8, class_="s11 soft")

    def frame(self) -> Markup:
        """Over the blocks, whose edges would break it."""
        return tag("rect", x=0, y=self.top, width=self.width, height=_HIGH, class_="edge")

    def block(self, stay: _Stay, device: str, now: int) -> Markup:
        """A block; one that is not in use at the moment of the error is only in the live picture."""
        x, wide = self._x(stay.block.address), max(1.0, self._x(stay.block.size))
        one = look(device)
        name, size = readable(_name(stay.block)), memory_size(stay.block.size)
        labels = [
            tag("text", shorten(text, wide - 6, 11), x=x + 4, y=self.top + 19 + 15 * i, class_="s11",
                style=f"fill:{one.colour.ink}")
            for i, text in enumerate((name, size)) if wide > 30
        ]  # fmt: skip
        rect = tag("rect", x=x, y=self.top + 1, width=wide, height=_HIGH - 2, fill=one.colour.fill, class_="chunk")
        gone = "" if stay.first <= now < stay.last else " gone"
        return tag("g", tag("title", _card(stay.block)), rect, *labels, class_=f"block{gone}")

    def asked(self, last: _Moment) -> Iterator[Markup]:
        """Bars to scale: the bytes that were asked for, and the largest free block."""
        bars = ("asked for", self.found.wanted), ("largest free block", last.largest)
        for i, (what, nbytes) in enumerate(bars):
            y = self.top + _HIGH + 10 + i * _ASKED
            wide = min(self.width, max(1.0, self._x(nbytes)))
            words = tag("text", f"{what}, {memory_size(nbytes)}", x=0, y=y + 10, class_="s11")
            lines = [tag("path", d=hatch_path(0, y + 15, wide, 12, 5), class_="stripe")] if i == 0 else []
            bar = tag("rect", x=0, y=y + 15, width=wide, height=12, class_="bar")
            yield tag("g", words, *lines, bar, class_="asked")


# -- words ----------------------------------------------------------------------------------------------------------


def _name(block: Block) -> str:
    return str(block.what)


def _card(block: Block) -> str:
    """A block as its card says it: op, tensor, bytes, address, line."""
    what: Any = block.what
    tensor = f"{dtype_text(dtypes.as_dtype(what.dtype))}{shape_text(what.shape)}"
    line = line_text(what.line)
    place = f"{memory_size(block.size)} at {block.address:#x}"
    return "\n".join([f"{_name(block)}  {tensor}", place, *([line] if line else [])])


def _tables(found: Exhausted, moments: Sequence[_Moment]) -> list[Table]:
    held = sorted(found.held, key=lambda block: -block.size)
    blocks = [[_name(b), f"{b.size:,}", f"{b.address:#x}", line_text(b.what.line)] for b in held]
    steps = [[m.says.partition(". ")[0], f"{m.free:,}", f"{m.largest:,}"] for m in moments]
    return [
        first_rows("Blocks in use, the largest first", ("of", "bytes", "address", "line"), blocks),
        first_rows("Allocations before", ("what", "free bytes", "largest free block"), steps),
    ]
