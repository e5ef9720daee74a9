"""“Did you mean …?”: the sentence that ends an error about a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def near(word: str, known: Iterable[str], most: int = 1, alike: float = 0.6) -> list[str]:
    """At most `most` of the known words that resemble this one in any case of letters, the most similar first.

    `alike`, up to 1, is how similar they must be.
    """
    import difflib  # only after a mistake

    known = list(known)
    found = difflib.get_close_matches(word.lower(), {one.lower() for one in known}, n=most, cutoff=alike)
    return [one for lower in found for one in known if one.lower() == lower][:most]


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """`" Did you mean worker?"`, or nothing if no known word resembles this one."""
    found = near(word, known, most)
    return f" Did you mean {' or '.join(found)}?" if found else ""
