"""Names of ops in few letters: with ever fewer of their scopes, or cut where other names are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dtflab.graph.node_names import readable
from dtflab.viz.drawing.svg import shorten

CUTS = (90.0, 60.0)  # pixels to which a name is cut that others end like
NEAR, MANY = 20, 1000  # names before and after it that it is told apart from; names that take too long


def shorter(name: str) -> Iterator[str]:
    """The readable name, then with ever fewer of its scopes, down to its last part."""
    word, _, path = readable(name).rpartition(" ")
    word = f"{word} " if word else ""
    parts = path.split("/")
    for start in range(len(parts)):
        yield word + "/".join(parts[start:])
    if word:
        yield word.strip()


def forms(names: Iterable[str]) -> dict[str, list[str]]:
    """The forms of each of the names that are shown together, in ever less room.

    A name loses scopes as long as no other name ends so; then it is cut where its neighbours are the same.
    """
    ends = {name: [*shorter(name)] for name in names}
    wholes = [own[0] for own in ends.values()]
    times = Counter(end for own in ends.values() for end in own)
    rooms = CUTS if len(wholes) < MANY else ()

    def formed(i: int, whole: str, *fewer: str) -> list[str]:
        others = wholes[max(i - NEAR, 0) : i + NEAR]
        cuts = [shorten(whole, room, 11, others=others) for room in rooms if times[fewer[-1]] > 1] if fewer else []
        return [whole, *(end for end in fewer[:-1] if times[end] == 1), *cuts, *fewer[-1:]]

    return {name: formed(i, *own) for i, (name, own) in enumerate(ends.items())}
