"""Name scopes as a tree of blocks, opened as far as a picture has room.

A block is an op, a closed group of ops, or an open one whose children are seen. Opening starts with the smallest
groups near the root, so that a picture of a large graph shows its outline, then details as there is room.

Rule: the children of every open block form an acyclic graph, if that of the ops is one. Where a scope is left and
entered again (`a/x -> b -> a/y`) it is shown in two parts, `a` and `a (2)`; else some edge would run backwards.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dtflab.base.grouping import grouped
from dtflab.viz.layout import ranks

LOOP_KINDS = ("Enter", "Merge", "Switch", "Identity", "NextIteration", "Exit")  # one for each variable of a loop
MOST_ALIKE = 6  # neighbours of one kind that are not bundled, where there are too many children
HEAD_DEPTH = 3  # a group named after its first op, as a variable with its reads, is opened as if it lay deeper


@dataclasses.dataclass(eq=False)
class Block:
    """An op or a group. `ops` are the names of all ops in it, `children` what is seen of it when it is open."""

    key: str
    label: str
    ops: list[str]
    children: list[Block] = dataclasses.field(default_factory=list)
    is_open: bool = False

    @property
    def name(self) -> str:
        """The name in the graph."""
        return self.key.partition("\0")[0]

    def visible(self) -> Iterator[Block]:
        """The boxes that are drawn: what is not open, in order."""
        if not self.is_open:
            yield self
        for child in self.children if self.is_open else ():
            yield from child.visible()


def blocks(
    names: Sequence[str], edges: Iterable[tuple[str, str]], most: int, kind_of: Mapping[str, str] | None = None
) -> Block:
    """The tree of blocks over the ops, open down to about `most` visible boxes; of mixed kinds first."""
    order, forward = _forward(names, edges)
    room = most
    while room:  # untangling adds boxes
        root = _tree(names)
        root.is_open = True
        root.children = _folded(root, forward, room)
        _bundle(root, order, room)
        _open(root, room, kind_of or {})
        _untangle(root, order, forward)
        if sum(1 for _ in root.visible()) <= most * 1.25:
            return root
        room //= 2
    root = Block("", "", list(names), [Block(name, name, [name]) for name in names], is_open=True)
    _bundle(root, order, most)  # scopes that are all mixed up explain nothing
    return root


def whole(names: Sequence[str], edges: Iterable[tuple[str, str]], most: int, few: int) -> Block:
    """The tree of blocks down to single ops, with at most `most` children in each: more of them are in bundles.

    Of more than `few` children neighbours of one kind are, as `blocks` has it.
    """
    order, forward = _forward(names, edges)
    root = _tree(names)
    _complete(root, order, forward, most, few)
    return root


def _forward(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> tuple[list[str], dict[str, list[str]]]:
    """The ops in an order in which nearly all edges point forward, and the edges that do."""
    after = grouped(dict.fromkeys(edges), names)
    onward = {a: [] if _kind(a.rpartition("/")[2]) == "NextIteration" else targets for a, targets in after.items()}
    closing = ranks.back_edges(names, onward)
    forward = {a: [b for b in targets if (a, b) not in closing] for a, targets in onward.items()}
    return ranks.topological(names, forward), forward


# -- the tree ------------------------------------------------------------------------------------------------


def _tree(names: Sequence[str]) -> Block:
    root = Block("", "", list(names))
    scopes = {name[: i + 1] for name in names for i, letter in enumerate(name) if letter == "/"}
    at: dict[str, Block] = {"": root}
    for name in names:
        scope, parts = "", name.split("/")
        for part in parts[:-1]:
            scope, above = f"{scope}{part}/", scope
            if scope not in at:
                at[scope] = Block(scope, part, [])
                at[above].children.append(at[scope])
            at[scope].ops.append(name)
        if name + "/" in scopes:
            scope = name + "/"
            if scope not in at:
                at[scope] = Block(scope, parts[-1], [])
                at["/".join([*parts[:-1], ""])].children.append(at[scope])
            at[scope].ops.append(name)
            at[scope].children.insert(0, Block(name, parts[-1], [name]))
        else:
            at["/".join([*parts[:-1], ""])].children.append(Block(name, parts[-1], [name]))
    _gather_loops(root)
    for block in list(root.children):
        _shorten_chains(block)
    return root


def _kind(label: str) -> str:
    """`Merge_2` is a Merge."""
    return label.rstrip("0123456789").removesuffix("_")


def _gather_loops(block: Block) -> None:
    """The nodes that carry the variables of a loop, each kind as one box, so that there is room for the body."""
    kinds: dict[str, list[Block]] = {}
    for child in block.children:
        _gather_loops(child)
        kind = _kind(child.label)
        if not child.children and kind in LOOP_KINDS:
            kinds.setdefault(kind, []).append(child)
    if "NextIteration" not in kinds:
        return
    for kind, members in kinds.items():
        if len(members) > 1:
            group = Block(members[0].key + "\0", kind, [op for member in members for op in member.ops])
            block.children[block.children.index(members[0])] = group
            block.children = [child for child in block.children if child not in members]


def _shorten_chains(block: Block) -> None:
    """A scope with a single child is only a longer name."""
    while len(block.children) == 1:
        (child,) = block.children
        block.key, block.label, block.children = child.key, f"{block.label}/{child.label}", child.children
    for child in block.children:
        _shorten_chains(child)


def _bundle(root: Block, order: Sequence[str], most: int) -> None:
    """Ops without a scope, if there are too many to be seen, in bundles of neighbours."""
    loose = {child.key: child for child in root.children if not child.children}
    if len(root.children) <= most or len(loose) < 2:
        return
    places = max(1, most - (len(root.children) - len(loose)))
    size = math.ceil(len(loose) / places)
    ordered = [loose[name] for name in order if name in loose]
    bundles = [_bundled(ordered[start : start + size]) for start in range(0, len(ordered), size)]
    root.children = [child for child in root.children if child.children] + bundles


def _open(root: Block, most: int, kind_of: Mapping[str, str]) -> None:
    """Level by level, the smallest groups first, groups of equal size together, so that what is alike looks alike.

    Where a level does not fit whole, nothing deeper is opened.
    """
    seen = len(root.children)
    waiting: dict[int, dict[int, list[Block]]] = {}  # by level, by number of children

    def offer(block: Block, depth: int) -> None:
        for child in block.children:
            if child.children:
                mixed = len({kind_of.get(op) for op in child.ops}) > 1
                level = depth - mixed + (HEAD_DEPTH if _is_head(child) else 0)
                waiting.setdefault(level, {}).setdefault(len(child.children), []).append(child)

    offer(root, 1)
    while waiting:
        depth = min(waiting)
        for size, alike in sorted(waiting.pop(depth).items()):
            if seen + (size - 1) * len(alike) > most:
                return
            seen += (size - 1) * len(alike)
            for block in alike:
                block.is_open = True
                offer(block, depth + 1)


def _is_head(block: Block) -> bool:
    return block.ops[0] + "/" == block.key


def _complete(block: Block, order: Sequence[str], after: Mapping[str, Sequence[str]], most: int, few: int) -> None:
    """Untangle and bundle the children here and below; a group of ops gets them as its children."""
    if not block.children and len(block.ops) > 1:
        block.children = [Block(name, name.rpartition("/")[2], [name]) for name in block.ops]
    while len(block.children) == 1 and block.children[0].children:
        block.children = block.children[0].children
    parts = _disentangled(block, order, after)
    if len(parts) <= 2 * len(block.children):  # else the parts would explain less than lines that go back
        block.children = parts
    folded = _folded(block, after, min(few, most))
    block.children = folded if len(folded) <= most else _portions(_in_order(block, after), most)
    for child in block.children:
        mine = set(child.ops)
        if len(mine) == 1:
            child.children = []
        else:
            _complete(child, [op for op in order if op in mine], after, most, few)


def _folded(block: Block, after: Mapping[str, Sequence[str]], few: int) -> list[Block]:
    """The children; if they are more than a few, many neighbours of one kind, as `layer0` to `layer99`, in bundles.

    If they are still more, so are many neighbours of kinds that repeat, as `MatMul, Relu, MatMul_1, Relu_1` and so on.
    """
    if len(block.children) <= few:
        return block.children
    pieces = _bundles(_in_order(block, after), few, lambda child: _kind(child.label))
    if len(pieces) <= few:
        return pieces
    times = Counter(_kind(piece.label) for piece in pieces)
    return _bundles(pieces, few, lambda piece: times[_kind(piece.label)] > MOST_ALIKE or piece.key)


def _bundles(children: Sequence[Block], few: int, alike: Callable[[Block], object]) -> list[Block]:
    runs = [list(run) for _, run in itertools.groupby(children, key=alike)]
    return [piece for run in runs for piece in (_portions(run, few) if len(run) > MOST_ALIKE else run)]


def _in_order(block: Block, after: Mapping[str, Sequence[str]]) -> list[Block]:
    """The children in an order in which lines between them point forward."""
    home = {op: i for i, child in enumerate(block.children) for op in child.ops}
    behind = grouped(
        dict.fromkeys((home[a], home[b]) for a in block.ops for b in after[a] if home.get(b, home[a]) != home[a]),
        range(len(block.children)),
    )
    closing = ranks.back_edges(list(behind), behind)
    onward = {a: [b for b in targets if (a, b) not in closing] for a, targets in behind.items()}
    return [block.children[i] for i in ranks.topological(list(behind), onward)]


def _portions(members: Sequence[Block], most: int) -> list[Block]:
    """About as many bundles as each has members, so that two steps lead to any; of kinds that repeat, whole rounds."""
    kinds = len({_kind(member.label) for member in members})
    size = math.ceil(len(members) / min(most, math.ceil(math.sqrt(len(members)))))
    size = math.ceil(size / kinds) * kinds if kinds <= size else size
    return [_bundled(members[start : start + size]) for start in range(0, len(members), size)]


def _bundled(members: Sequence[Block]) -> Block:
    if len(members) == 1:
        return members[0]
    ops = [op for member in members for op in member.ops]
    first, last = members[0].label, members[-1].label
    if len({_kind(member.label) for member in members}) == 1:  # `dense_5 … 9`
        last = last.removeprefix(_kind(first)).removeprefix("_") or last
    return Block(members[0].key + "\0", f"{first} … {last}", ops, list(members))


# -- cycles between blocks -----------------------------------------------------------------------------------


def _untangle(block: Block, order: Sequence[str], after: Mapping[str, Sequence[str]]) -> None:
    """Split children that depend on each other both ways, here and in all open blocks below."""
    if not block.is_open:
        return
    block.children = _disentangled(block, order, after)
    for child in block.children:
        _untangle(child, order, after)


def _disentangled(block: Block, order: Sequence[str], after: Mapping[str, Sequence[str]]) -> list[Block]:
    """The children, those that depend on each other both ways in parts."""
    home = {op: i for i, child in enumerate(block.children) for op in child.ops}
    tangled = _tangled(block, home, after)
    if not tangled:
        return block.children
    part_of = _parts([op for op in order if home.get(op) in tangled], home, after)
    return [piece for child in block.children for piece in _pieces(child, part_of)]


def _tangled(block: Block, home: Mapping[str, int], after: Mapping[str, Sequence[str]]) -> set[int]:
    """Children on cycles, or between cycles: what is left when first and last ones are taken away one by one."""
    behind: list[set[int]] = [set() for _ in block.children]
    before: list[set[int]] = [set() for _ in block.children]
    for a, b in ((home[op], home[target]) for op in block.ops for target in after[op] if target in home):
        if a != b:
            behind[a].add(b)
            before[b].add(a)
    left = {child for child in range(len(block.children)) if behind[child] and before[child]}
    gone = [child for child in range(len(block.children)) if child not in left]
    while gone:
        child = gone.pop()
        for near, links in ((behind, before), (before, behind)):
            for other in near[child]:
                links[other].discard(child)
                if other in left and not links[other]:
                    left.remove(other)
                    gone.append(other)
    return left


def _parts(ops: Sequence[str], home: Mapping[str, int], after: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The part of its block that an op belongs to: one more for every step back to an earlier block before it."""
    rank: dict[int, int] = {}
    for op in ops:
        rank.setdefault(home[op], len(rank))
    part = dict.fromkeys(ops, 0)
    for op in ops:
        for target in after[op]:
            if target in part:
                back = rank[home[target]] < rank[home[op]]
                part[target] = max(part[target], part[op] + back)
    return part


def _pieces(block: Block, part_of: Mapping[str, int]) -> list[Block]:
    parts = sorted({part_of[op] for op in block.ops if op in part_of})
    if len(parts) < 2:
        return [block]
    pieces = (_restricted(block, {op for op in block.ops if part_of.get(op) == part}, part) for part in parts)
    return [
        dataclasses.replace(piece, label=piece.label + (f" ({number})" if number > 1 else ""))
        for number, piece in enumerate(pieces, 1)
        if piece
    ]


def _restricted(block: Block, ops: set[str], part: int) -> Block | None:
    mine = [op for op in block.ops if op in ops]
    if not mine or len(mine) == len(block.ops):
        return block if mine else None
    children = [piece for child in block.children if (piece := _restricted(child, ops, part))]
    return Block(f"{block.key}\0{part}", block.label, mine, children, block.is_open and bool(children))
