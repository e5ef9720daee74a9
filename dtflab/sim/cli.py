"""Command line of the simulator: `dtflab sim predict POINTS.json --json OUT.json`, `dtflab sim calibrate`, `report`.

Rule: this module only reads arguments, prints and writes files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtflab.machine.console import show
from dtflab.sim import claims
from dtflab.sim.engine.fitted import FILE, load
from dtflab.sim.predictions import points, report
from dtflab.sim.predictions.baselines import baselines
from dtflab.sim.predictions.calibrate import calibrate
from dtflab.sim.predictions.predict import predict, predictor
from dtflab.sim.predictions.scores import point_table, regime_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommands of `dtflab sim`."""
    commands = parser.add_subparsers(dest="sim_command", required=True)
    one = commands.add_parser("predict", help="predict published measurements from their setups")
    one.add_argument("points", type=Path, help="a file of points; the published results in it are only compared with")
    one.add_argument("--json", type=Path, metavar="OUT.json", help="where to write the predictions")
    one.add_argument("--parameters", type=Path, default=FILE, help="calibrated parameters (default: those shipped)")
    one = commands.add_parser("calibrate", help="fit the parameters to the points that are shipped, in minutes")
    one.add_argument("--json", type=Path, default=FILE, metavar="OUT.json", help="the file to write (%(default)s)")
    commands.add_parser("claims", help="estimates next to what was published of scaling, as in docs/simulator.md")
    one = commands.add_parser("report", help="baselines, ablations and cross-validation: fits twenty times")
    one.add_argument("--docs", type=Path, required=True, help="the folder of simulator.md and simulator.json")


def main(options: argparse.Namespace) -> None:
    """Run a subcommand. An error in a file ends the program with one line."""
    run = {"predict": _predict, "calibrate": _calibrate, "claims": _claims, "report": _report}[options.sim_command]
    try:
        run(options)
    except (OSError, ValueError) as error:
        sys.exit(f"dtflab sim {options.sim_command}: {error}")
    except KeyboardInterrupt:  # a search takes minutes; files are written at its end
        sys.exit(f"dtflab sim {options.sim_command}: interrupted, nothing was written")


def _predict(options: argparse.Namespace) -> None:
    _check_folder(options.json)
    asked, known, fitted = points.read(options.points), points.read(), load(options.parameters)
    model = predictor(asked, fitted, known)
    found = predict(asked, model)
    if options.json:
        _write(options.json, found.as_json())
    show(point_table(found, asked))
    for point_id, reason in found.skipped.items():
        show(f"skipped {point_id}: {reason}")
    if asked.published:
        uniform = predictor(asked, fitted, known, ["hot_variables"])
        models: dict[str, Callable[[points.Point], float]] = {"the model": model, **baselines(model, known, uniform)}
        show(f"\n{regime_table({name: report.sizes(one, asked) for name, one in models.items()})}")
        show("uniform shards: with the parameters as they are; docs/simulator.md fits them again for that row.")


def _calibrate(options: argparse.Namespace) -> None:
    _check_folder(options.json)
    fitted, _ = calibrate(points.read(), report=show)
    _write(options.json, fitted.as_json())
    show(f"wrote {options.json}")


def _claims(options: argparse.Namespace) -> None:
    for line in claims.table():
        show(line, flush=True)


def _report(options: argparse.Namespace) -> None:
    _check_folder(options.docs / "simulator.json")
    numbers = report.measure(points.read(), load(), report=show)
    _write(options.docs / "simulator.json", numbers)
    page = options.docs / "simulator.md"
    page.write_text(report.refreshed(page.read_text(encoding="utf-8"), numbers), encoding="utf-8")


def _check_folder(path: Path | None) -> None:
    """Raise ValueError, before minutes of work, if a file can't be written to its path."""
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name} in")


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
