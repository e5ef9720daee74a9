"""`python -m dtflab run script.py …`: run a TF1 program, unedited, on dtflab.

`dtflab serve`: one task of a cluster.
`dtflab smi`: the GPUs and the programs that use them. `dtflab sim …`: what simulated hardware would do.
`dtflab notebooks DIR`: the course, to work in. `dtflab certs DIR`: certificates for TLS.
`dtflab grade FOLDER`: the marks of many submissions. `dtflab export --otter DIR`: the questions for otter-grader.
`dtflab export --html NOTEBOOK`: a page whose pictures respond.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

import dtflab
from dtflab import aliases, course
from dtflab.cluster import certs, serve
from dtflab.grading import cli as grading
from dtflab.machine.console import show
from dtflab.notebook import export
from dtflab.sim import cli


def main(argv: list[str] | None = None) -> None:
    """The command line of the package."""
    called = "dtflab" if Path(sys.argv[0]).stem == "dtflab" else "python -m dtflab"
    parser = argparse.ArgumentParser(prog=called, description=dtflab.__doc__.split("\n")[0])
    parser.add_argument("--version", action="version", version=f"dtflab {dtflab.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a TF1 program: its `import tensorflow` gets dtflab")
    run.add_argument("script", help="the program, a .py file")
    run.add_argument("args", nargs=argparse.REMAINDER, help="its own arguments")
    task = commands.add_parser("serve", help="serve one task of a cluster, also for other machines")
    serve.add_arguments(task)
    smi = commands.add_parser("smi", help="show all simulated GPUs of this machine's processes, and their users")
    smi.add_argument("--period", type=float, default=0.5, help="seconds in which GPU-Util is measured (default: 0.5)")
    simulate = commands.add_parser("sim", help="predict how training scales, from a model of the hardware")
    cli.add_arguments(simulate)
    course.add_arguments(commands.add_parser("notebooks", help="copy the lessons and exercises into a folder"))
    certs.add_arguments(commands.add_parser("certs", help="make an authority, and certificates for TLS"))
    grading.add_grade_arguments(commands.add_parser("grade", help="grade notebooks and percent files, each isolated"))
    exported = commands.add_parser("export", help="write notebooks as pages, or questions for another grader")
    form = exported.add_mutually_exclusive_group(required=True)
    export.add_arguments(exported, form)
    grading.add_export_arguments(exported, form)
    options = parser.parse_args(argv)
    if options.command == "sim":
        cli.main(options)
    elif options.command == "serve":
        serve.main(task, options)
    elif options.command == "notebooks":
        course.main(options)
    elif options.command == "certs":
        certs.main(options)
    elif options.command == "grade":
        sys.exit(grading.grade(options, course.exercises()))
    elif options.command == "export":
        sys.exit(export.main(options) if options.html else grading.export_tests(options))
    elif options.command == "smi":
        show(dtflab.smi(options.period))
    else:
        _run(parser, options)


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Run the program as if it had been started itself."""
    if not os.path.isfile(options.script):
        parser.error(f"there is no file {options.script!r}")
    aliases.install()
    sys.argv = [options.script, *options.args]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    _let_children_find_it()
    runpy.run_path(options.script, run_name="__main__")


def _let_children_find_it() -> None:
    """Programs that start programs: theirs import dtflab as tensorflow, too."""
    folder = os.path.join(os.path.dirname(os.path.abspath(dtflab.__file__)), "python", "as_tensorflow")
    sys.path.insert(1, folder)  # what multiprocessing hands on
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))


if __name__ == "__main__":
    main()
