"""Parts of a page that a command writes, between `<!-- begin NAME -->` and `<!-- end NAME -->`; people write the rest.

Rule: everything outside the part stays as it is.
"""

from __future__ import annotations


def with_part(page: str, name: str, text: str) -> str:
    """The page with the part `name` replaced by `text`. Raises ValueError if the page has no such part."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"the page has no part between {begin.strip()} and {end}")
    return f"{before}{begin}{text}\n{end}{after}"
