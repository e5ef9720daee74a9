"""“Did you mean …?”: the sentence that ends an error about a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def near(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """At most `most` of the known words, which resemble this one, the most similar first."""
    import difflib  # only after a mistake

    return difflib.get_close_matches(word, list(known), n=most, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """`" Did you mean worker?"`, or nothing if no known word resembles this one."""
    found = near(word, known, most)
    return f" Did you mean {' or '.join(found)}?" if found else ""
