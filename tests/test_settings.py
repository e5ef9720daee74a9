"""docs/settings.md lists every environment variable and every option, and no others."""

from __future__ import annotations

import argparse
import ast
import re
import runpy
from collections.abc import Callable, Iterator

import pytest

import dtflab
from benchmarks import __main__ as bench, frames, gpu, live, live_training, panel, placer, scaling
from dtflab.__main__ import main
from dtflab.notebook.chaos_cell import ChaosMagics
from dtflab.notebook.cluster_magic import ClusterMagics
from dtflab.notebook.magics import DtfMagics
from dtflab.notebook.replay_magic import ReplayMagics
from dtflab.notebook.settings import DtfLab
from dtflab.notebook.state_magics import StateMagics
from dtflab.notebook.task_cell import TaskMagics
from tests import house
from tests.fuzz import __main__ as fuzz
from tests.grading import soak as grading_soak
from tests.house import ROOT
from tests.soak import __main__ as soak

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
VARIABLES, _, REST = PAGE.partition("\n## Commands\n")
COMMANDS, _, MAGICS = REST.partition("\n## Magics\n")
NAME = re.compile(r"(?:DTFLAB|TF|GRPC|OPENBLAS|CUDA_VISIBLE)(?:_[A-Z0-9]+)+")
OTHERS = {"PATH", "MAKECMDGOALS"}  # the shell's and make's


# ---- environment variables ----


def test_every_variable_is_listed_and_no_other():
    listed = re.findall(r"`([A-Z][A-Z_0-9]+)`", "\n".join(re.findall(r"^\| (`.*?) \|", VARIABLES, re.M)))
    assert len(listed) == len({*listed})
    assert {*listed} == {*in_python(), *in_make(), *timeouts()} - OTHERS


def in_python() -> Iterator[str]:
    """The variables that code takes out of, or puts into, the environment; and names that look like ours."""
    for path in (path for path in house.tracked_files() if path.suffix == ".py"):
        text, in_a_test = path.read_text(encoding="utf-8"), path.match("tests/*/*.py")
        for node in ast.walk(ast.parse(text)) if "env" in text or NAME.search(text) else ():
            yield from key_of_environ(node)
            if isinstance(node, ast.Constant) and NAME.fullmatch(str(node.value)) and not in_a_test:
                yield str(node.value)


def key_of_environ(node: ast.AST) -> Iterator[str]:
    """The name in `os.environ["NAME"]`, `os.getenv("NAME")`, `"NAME" in os.environ` and their like."""
    match node:
        case ast.Subscript(value=where, slice=ast.Constant(value=str(name))) if is_environ(where):
            yield name
        case ast.Call(func=ast.Attribute(value=where), args=[ast.Constant(value=str(name)), *_]) if is_environ(where):
            yield name
        case ast.Call(func=asked, args=[ast.Constant(value=str(name)), *_]) if ast.unparse(asked) in GETENV:
            yield name
        case ast.Compare(left=ast.Constant(value=str(name)), comparators=[where]) if is_environ(where):
            yield name
        case ast.AugAssign(target=where, value=ast.Dict(keys=keys)) if is_environ(where):
            yield from (key.value for key in keys if isinstance(key, ast.Constant))
        case ast.Call(func=ast.Attribute(attr="update", value=where), keywords=given) if is_environ(where):
            yield from (keyword.arg for keyword in given if keyword.arg)


GETENV = {"os.getenv", "getenv", "os.putenv", "os.unsetenv"}


def is_environ(node: ast.AST) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def in_make() -> set[str]:
    """The variables that the Makefile reads and does not set itself, or only if unset; and those that CI exports."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    own = {*re.findall(r"^([A-Z]+) := ", text, re.M), *re.findall(r": ([A-Z]+) := ", text)}
    exported = re.findall(r"export ([A-Z]+)=", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    exported += re.findall(r"^export ([A-Z]+) :=", text, re.M)
    return {*re.findall(r"\$\(([A-Z]+)\)", text), *exported} - own


def timeouts() -> set[str]:
    return {*dtflab.timeouts.as_environment(), *dtflab.limits.as_environment()}


def test_a_variable_is_found_however_it_is_read():
    code = 'os.environ["A"], os.environ.get("B", 1); os.environ |= {"C": 1}; os.environ.update(D="1"); other.get("X")\n'
    code += (
        'os.getenv("E", 1), "F" in os.environ, "G" not in environ, getenv("H"), environ["I"], other("X"), "X" in others'
    )
    assert {name for node in ast.walk(ast.parse(code)) for name in key_of_environ(node)} == {*"ABCDEFGHI"}


# ---- settings of a notebook ----


def test_every_setting_of_a_notebook_is_listed_with_its_default():
    listed = dict(re.findall(r"^\| `DtfLab\.(\w+)` \|.*\| (\S+) \|$", VARIABLES, re.M))
    assert listed == {name: str(trait.default_value) for name, trait in DtfLab.class_traits(config=True).items()}


# ---- options ----


def listed(part: str) -> set[tuple[str, str]]:
    """(command, option) of each row: `--json FILE` is the option `--json`."""
    found = set()
    for section in re.split(r"^### ", part, flags=re.M)[1:]:
        command = section.partition("\n")[0]
        found |= {(command, row.split()[0]) for row in re.findall(r"^\| `(.*?)` \|", section, re.M)}
    return found


class Made(Exception):
    """A parser that is complete."""


def parser_of(command: Callable[[], object], patch: pytest.MonkeyPatch) -> argparse.ArgumentParser:
    """The parser that a command makes, taken from it when it would parse."""

    def stop(parser: argparse.ArgumentParser, *_: object) -> None:
        raise Made(parser)

    patch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(Made) as made:
        command()
    return made.value.args[0]


def options(parser: argparse.ArgumentParser, command: str) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from options(inner, f"{command} {name}")
        elif not isinstance(action, argparse._HelpAction):
            yield command, [*action.option_strings, action.dest][0]


def script(path: str) -> Callable[[], object]:
    return lambda: runpy.run_path(str(ROOT / path), run_name="__main__")


COMMAND = {
    "dtflab": main,
    "python -m benchmarks": bench.main,
    "python -m benchmarks.gpu": gpu.main,
    "python -m benchmarks.placer": placer.main,
    "python -m benchmarks.frames": frames.main,
    "python -m benchmarks.live": live.main,
    "python -m benchmarks.panel": panel.main,
    "python -m benchmarks.live_training": live_training.main,
    "python -m benchmarks.scaling": scaling.main,
    "python -m tests.fuzz": fuzz.main,
    "python -m tests.soak": soak.main,
    "python -m tests.grading.soak": grading_soak.main,
    "python docs/faults.py": script("docs/faults.py"),
    "python notebooks/build.py": script("notebooks/build.py"),
    "python notebooks/gallery.py": script("notebooks/gallery.py"),
    "python protos/generate.py": script("protos/generate.py"),
}


@pytest.mark.processes  # jupytext, when it is loaded
def test_every_option_of_a_command_is_listed_and_no_other(monkeypatch):
    there = {found for name, command in COMMAND.items() for found in options(parser_of(command, monkeypatch), name)}
    assert listed(COMMANDS) == there | {*options_of_pytest()}


def options_of_pytest() -> Iterator[tuple[str, str]]:
    """The options that our own plugins add."""
    for path in (
        path for path in house.tracked_files() if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")
    ):
        if "addoption(" in path.read_text(encoding="utf-8"):
            added = [call for call in house.calls(path) if house.called(call) == "addoption"]
            yield from (("pytest", ast.literal_eval(call.args[0])) for call in added)


def test_every_script_with_options_is_a_command_here():
    """The parser of any other file would not be compared."""
    texts = {
        house.name(path): path.read_text(encoding="utf-8") for path in house.tracked_files() if path.suffix == ".py"
    }
    ours = {name for name, text in texts.items() if "= argparse.ArgumentParser(" in text}
    assert {name for name in ours if name.split("/")[0] not in ("tests", "solutions")} == {
        "dtflab/__main__.py", "benchmarks/__main__.py", "benchmarks/frames.py", "benchmarks/gpu.py",
        "benchmarks/live.py", "benchmarks/live_training.py", "benchmarks/panel.py", "benchmarks/placer.py",
        "benchmarks/scaling.py", "docs/faults.py", "notebooks/build.py", "notebooks/gallery.py", "protos/generate.py",
    }  # fmt: skip


def test_every_option_of_a_magic_is_listed_and_no_other():
    kinds = (ClusterMagics, DtfMagics, StateMagics, TaskMagics, ChaosMagics, ReplayMagics)
    magics = {name: magic for kind in kinds for name, magic in vars(kind).items()}
    there = {
        found for name, magic in magics.items() if hasattr(magic, "parser") for found in options(magic.parser, name)
    }
    assert listed(MAGICS) == there
