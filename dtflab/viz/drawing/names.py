"""Names of ops in few letters: a readable name with ever fewer of its scopes."""

from __future__ import annotations

from collections.abc import Iterator

from dtflab.graph.node_names import readable


def shorter(name: str) -> Iterator[str]:
    """The readable name, then with ever fewer of its scopes, down to its last part."""
    word, _, path = readable(name).rpartition(" ")
    word = f"{word} " if word else ""
    parts = path.split("/")
    for start in range(len(parts)):
        yield word + "/".join(parts[start:])
    if word:
        yield word.strip()
