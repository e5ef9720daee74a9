"""CardJournal: what happened to the memory of simulated cards: programs that took some, were refused, or ended.

Stands for what a GPU's driver writes to the system's log. Left out: what a program gives to its tensors.

Rules: one file for all processes of a registry, written and read under the registry's lock, a line for each event, in
order. It is kept short: the older half goes when it is long. A host whose last program is gone is forgotten when it
starts over. Lines are data, and are checked like data from a stranger.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

from dtflab.base.events import CardEvent

_MOST_BYTES = 1 << 17  # some 800 events


_KINDS = get_type_hints(CardEvent)


class CardJournal:
    """The events in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_card(self, event: CardEvent) -> None:
        """Append an event."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(event)}\n")
            is_long = file.tell() > _MOST_BYTES
        if is_long:
            lines = self._lines()
            self._write(lines[len(lines) // 2 :])

    def read(self) -> list[CardEvent]:
        """All events, the oldest first. Lines that are not events are skipped: a process may have died as it wrote."""
        return [event for event in map(_parsed, self._lines()) if event is not None]

    def forget(self, host: str) -> None:
        """The cards of that name were others."""
        lines, name = self._lines(), json.dumps(host)
        # Only the few lines with the name are parsed: that takes ten times as long as all the rest.
        gone = {line for line in lines if name in line and (event := _parsed(line)) and event.host == host}
        if gone:
            self._write(line for line in lines if line not in gone)

    def _lines(self) -> list[str]:
        if not self._path.exists():
            return []
        return self._path.read_text(encoding="utf-8", errors="replace").splitlines()

    def _write(self, lines: Iterable[str]) -> None:
        draft = self._path.with_suffix(".new")
        draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        draft.replace(self._path)


def _parsed(line: str) -> CardEvent | None:
    try:
        values = json.loads(line)
        return CardEvent._make(checked(kind, value) for kind, value in zip(_KINDS.values(), values, strict=True))
    except (TypeError, ValueError):
        return None


def checked(kind: type[Any], value: Any) -> Any:
    """The value, if it is of that kind and no absurd number; else ValueError."""
    if type(value) is not kind or (kind is int and not 0 <= value < 1 << 62):
        raise ValueError(f"{value!r} is not a {kind.__name__}")
    return value
