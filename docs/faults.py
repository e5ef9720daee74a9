"""Write docs/faults.md: what a program sees when a task of its cluster fails, by letting tasks fail.

    python docs/faults.py                       all engines, `make soak` and `make fuzz`: half an hour
    python docs/faults.py process soak          these sections only; the others stay as they are

The figures are kept in `docs/faults.json`. `tests/faults/test_page.py` holds the page to them, and them to the cases
that there are.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("faults.md")
FIGURES = TARGET.with_suffix(".json")
ROOT = TARGET.parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults import cases  # noqa: E402
from tests.faults.moments import VICTIMS  # noqa: E402

RUNS = {"soak": ("make soak", ["-m", "tests.soak"]), "fuzz": ("make fuzz", ["-m", "tests.fuzz"])}
Row = Sequence[Any]  # fault, moment, victim, and the fields of cases.Seen
TOP = f"""# Faults: what a program sees, and when

Written by `python docs/faults.py`. It lets each fault of [chaos](chaos.md) hit a running cluster of one parameter
server and two workers, at each moment, and notes what the client sees. A cell is one case: a letter for what the client
saw, and the seconds from the fault to the error (from the step's beginning, if the step began after the fault). All was
measured on a shared machine of two cores, so seconds are upper bounds.

- TASK is the task that the fault hit. A lost message is one between any two tasks.
- “waits”: no error came within {cases.PATIENCE:g} s. “goes on”: steps end well in spite of the fault.
- To be short, `timeouts.silence` is {cases.SILENCE:g} s here (by default 30 s): a silent task is given up after twice
  that. `timeouts.notice` is {cases.NOTICE:g} s (5 s), `timeouts.connect` and `timeouts.tasks` are {cases.CREATION:g} s
  (10 s and 300 s).
- A task computes for 1.5 s, or for {2 * cases.SOON:g} s of virtual time. It is not given up because it computes.
- Afterwards the fault is over: the task was restarted, or goes on. Then a new session uses it; the cell says if that
  fails.

"""
NOTES = {
    "soak": """One parameter server, three workers and a client for each, all of them processes, train by asynchronous
descent. A seed draws the faults. In the end the weights must be right and no step may be lost, no client may have ended
by itself, and no process, temporary file, memory or open file may be left over. The “witness” is a worker that is never
killed.

Steps run at least once: one whose answer was lost may have been applied, and is then run again. Each session of the
chief begins with the last checkpoint, as in TensorFlow, also when the parameter server is well. That undoes what the
other workers did since.
""",
    "fuzz": "",
}


def measured(engine: str) -> list[Row]:
    """Let every fault of an engine happen."""
    rows: list[Row] = []
    with cases.cluster(engine) as cluster:
        for fault, moment, victim in cases.all_cases(engine):
            rows.append((fault, moment, victim, *cases.seen(cluster, fault, moment, victim)))
            print(engine, *rows[-1], flush=True)
    return rows


def output(arguments: Sequence[str]) -> list[str]:
    """The lines that a command prints; SystemExit if it fails."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} found something: it goes into no page")
    return done.stdout.splitlines()


def as_text(figures: dict[str, dict[str, Any]]) -> str:
    """JSON with each case, and each printed line, on a line of its own."""
    dump = functools.partial(json.dumps, ensure_ascii=False)
    sections = []
    for name, found in figures.items():
        (key, items), *others = reversed(found.items())
        head = "".join(f"{dump(k)}: {dump(v)}, " for k, v in others)
        sections.append(f"{dump(name)}: {{{head}{dump(key)}: [\n" + ",\n".join(map(dump, items)) + "\n]}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def section(name: str) -> dict[str, Any]:
    """Measure what one section shows."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    when = {"commit": commit.stdout.strip(), "date": date.today().isoformat()}
    return when | ({"lines": output(RUNS[name][1])} if name in RUNS else {"rows": measured(name)})


def page(figures: dict[str, Any]) -> str:
    """The whole page."""
    engines = {name: figures[name] for name in cases.ENGINES if name in figures}
    parts = [TOP + summary({name: found["rows"] for name, found in engines.items()})]
    parts += [f"## Engine {name}\n\n{_when(found)}\n\n{tables(found['rows'])}" for name, found in engines.items()]
    for name, (command, _) in RUNS.items():
        if name in figures:
            lines = "\n".join(figures[name]["lines"])
            parts.append("\n".join([f"## {command}\n", NOTES[name], f"{_when(figures[name])}\n\n```\n{lines}\n```\n"]))
    return "\n".join(parts)


def _when(found: dict[str, Any]) -> str:
    return f"Measured at {found['commit']}, {found['date']}."


def summary(by_engine: dict[str, list[Row]]) -> str:
    """Fault by fault: how many cases were reported, within which time."""
    lines = ["| fault | " + " | ".join(by_engine) + " |", "| --- |" + " --- |" * len(by_engine)]
    for fault in cases.FAULTS:
        cells = [_summed([row for row in rows if row[0] == fault]) for rows in by_engine.values()]
        lines.append(f"| {fault} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _summed(rows: list[Row]) -> str:
    if not rows:
        return "–"
    errors = [row for row in rows if row[3].endswith("Error")]
    within = f" within {max(row[5] for row in errors):.2f} s" if errors else ""
    again = sum(not row[6] for row in rows)
    return f"{len(errors)} of {len(rows)} end with an error{within}; {again} work again"


def tables(rows: list[Row]) -> str:
    """A table for each fault, moments by tasks, and what its letters mean."""
    parts = []
    for fault, found in itertools.groupby(rows, key=lambda row: row[0]):
        cells = {(moment, victim): seen for _, moment, victim, *seen in found}
        letters = {
            what: chr(ord("a") + n) for n, what in enumerate(dict.fromkeys((s[0], s[1]) for s in cells.values()))
        }
        lines = [f"| {fault} | " + " | ".join(VICTIMS) + " |", "| --- |" + " --- |" * len(VICTIMS)]
        for moment in dict.fromkeys(moment for moment, _ in cells):
            row = [_cell(cells[moment, victim], letters) for victim in VICTIMS]
            lines.append(f"| {moment} | " + " | ".join(row) + " |")
        legend = [f"- **{letter}**: {what}{': ' * bool(said)}{said}" for (what, said), letter in letters.items()]
        parts.append("\n".join([*lines, "", *legend]) + "\n")
    return "\n".join(parts)


def _cell(seen: Row, letters: dict[tuple[str, str], str]) -> str:
    what, said, seconds, afterwards = seen
    when = f", {seconds:.2f} s" if what.endswith("Error") else ""
    return letters[what, said] + when + (f", **afterwards {afterwards}**" if afterwards else "")


def main() -> None:
    """Measure the sections named, and write the page."""
    names = [*cases.ENGINES, *RUNS]
    parser = argparse.ArgumentParser(description="Let tasks fail, and write docs/faults.md")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(names)} (all)")
    sections = parser.parse_args().sections or names
    if unknown := set(sections) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    figures = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    for name in sections:
        figures[name] = section(name)
        FIGURES.write_text(as_text(figures), encoding="utf-8")
        TARGET.write_text(page(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
