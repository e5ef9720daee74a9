"""Lines of magics: how they are read, `--help`, and what Tab offers; all of it from one parser."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from dtflab.notebook import arguments
from tests.notebook.cells import cell, magic

NAMES = [
    "cluster", "placement", "timeline", "memory", "grade", "predict", "smi", "style", "explain", "conformance", "step",
    "vars", "queues", "wire", "staleness",
]  # fmt: skip


class Read:
    """Magics without a notebook."""

    @arguments.magic
    @arguments.argument("what", nargs="*")
    @arguments.argument("--feed")
    @arguments.argument("--session")
    @arguments.argument("--all", action="store_true")
    def dtf_read(self, line):
        """Read a line.

        %dtf_read y --feed {x: 1}     as Python
        """
        return arguments.split(self.dtf_read, line)


# ---- reading ----


def test_split_leaves_python_as_typed():
    split = Read().dtf_read
    assert split("") == {"": ""}
    assert split("a, b --feed {x: -1, 'y  z': \"--session q\"}") == {
        "": "a, b",
        "feed": "{x: -1, 'y  z': \"--session q\"}",
    }
    assert split("--session=s f(1, --feed) --feed (a --session b)") == {
        "": "",
        "session": "s f(1, --feed)",
        "feed": "(a --session b)",
    }
    assert split("a--feed") == {"": "a--feed"}
    assert split("a --all") == {"": "a", "all": ""}


def test_an_example_is_the_first_line_of_the_help_with_arguments(shell):
    assert Read().dtf_read.example == "%dtf_read y --feed {x: 1}"
    assert shell.find_cell_magic("dtf_chaos").example.startswith("%%dtf_chaos --kill worker:1@step5")


# ---- help ----


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_an_example_and_all_options(shell, name):
    shown = shell.find_line_magic(f"dtf_{name}")
    printed = cell(shell, f"%dtf_{name} --help")
    assert printed.rstrip() == shown.__doc__.rstrip() and shown.example in printed and "::" in printed
    assert all(option in printed for option in arguments.options(shown))


@pytest.mark.parametrize("name", ["run", "chaos"])
def test_help_of_a_cell_runs_no_cell(shell, name):
    printed = cell(shell, f"%%dtf_{name} --help\nran = True")
    assert f"::\n\n  %%dtf_{name} [" in printed and "ran" not in shell.user_ns
    for line in (f"%%dtf_{name} --help", f"\n%%dtf_{name} --help\n", f"%dtf_{name} --help", f"%%dtf_{name} --help\n\n"):
        assert cell(shell, line) == printed, "without a body"


@pytest.mark.parametrize(
    "line", ["%%dtf_run --on /job:worker/task:0", "%dtf_run --on /job:ps/task:0", "%%dtf_run\n  \n"]
)
def test_a_cell_without_a_body_is_asked_for_one(shell, line):
    text = "%%dtf_run runs the lines below it in its cell, and there are none. For example: %%dtf_run --on"
    assert text in cell(shell, line)


def test_other_magics_without_a_body_are_ipythons(shell):
    assert "%%writefile is a cell magic, but the cell body is empty." in cell(shell, "%%writefile x")
    magic(shell, "%unload_ext dtflab")
    assert "not found" in cell(shell, "%%dtf_run --help")


def test_help_is_a_word_of_its_own(shell):
    assert "::" not in cell(shell, "%dtf_timeline ['--help']") and "::" not in cell(shell, "%dtf_timeline (1 --help)")


# ---- Tab ----


def offered(shell, line):
    with provisionalcompleter(), capture_output() as shown:
        found = [completion.text for completion in shell.Completer.completions(line, len(line))]
    assert shown.stdout == shown.stderr == ""
    return found


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("%dtf_cluster --w", ["--worker"]),
        ("c = %dtf_cluster --w", ["--worker"]),
        ("    a, b = %dtf_cluster --ps 1 --w", ["--worker"]),
        ("%dtf_cluster --wroker", ["--worker"]),
        ("%dtf_cluster st", ["start", "status", "stop"]),
        ("%dtf_cluster --engine ", ["inprocess", "process", "tensorflow", "dask"]),
        ("%dtf_cluster --engine=pro", ["process"]),
        ("%dtf_cluster --gpu", ["--gpus", "--gpu", "--gpu-memory"]),
        ("%dtf_cluster --gpus 2 --gpu", ["--gpu", "--gpu-memory"]),
        ("%dtf_cluster --clock ", ["real", "virtual"]),
        ("%dtf_cluster stop --name ", ["mine"]),
        ("%dtf_cluster stop ", ["--name"]),
        ("%dtf_cluster status --", ["--name", "--help"]),
        ("%dtf_cluster attach localhost:2222 ", ["--name", "--credentials"]),
        ("%dtf_cluster --gpu Tit", ["Titan", '"Titan X"']),
        ('%dtf_cluster --gpu "Titan', ["Titan", '"Titan X"']),
        ("%dtf_cluster --ps ", []),
        ("%dtf_predict placement/q3 ", []),
        ("%dtf_smi --period ", []),
        ("%dtf_cluster --stragglers ", ["lognormal(0.3)", "uniform(0.2)", "exponential(0.1)", "pareto(3)"]),
        ("%config DtfLab.style = ", ["'default'", "'projector'"]),
        ("%config DtfLab.style=pr", ["'projector'"]),
        ("%config DtfLab.palette = 'm", ["'muted'"]),
        ("%config DtfLab.png = ", ["False", "True"]),
        ("%config DtfLab.palette = x", ["'okabe-ito'", "'muted'"]),
        ("%dtf_smi --", ["--period", "--live", "--help"]),
        ("%dtf_style --", ["--projector", "--default", "--help"]),
        ("%dtf_timeline --color-by ", ["device", "job", "time", "phase"]),
        ("%dtf_timeline y --", ["--feed", "--steps", "--color-by", "--session", "--help"]),
        ("%dtf_placement y --s", ["--scope", "--session"]),
        ("%dtf_step --all --", ["--feed", "--session", "--help"]),
        ("%dtf_vars --", ["--help"]),
        ("%dtf_grade plac", [f"placement/q{n}" for n in (1, 2, 3, 4)]),
        ("%dtf_grade plcement/q1", ["placement/q1", "placement/q3", "placement/q4"]),
        ("%dtf_grade placement/q1 ", ["--all", "--hint"]),
        ("%%dtf_run --on ", ["/job:worker/task:0", "/job:worker/task:1"]),
        ("%%dtf_run --on /job:worker/task:0 --name ", ["mine"]),
        ("%%dtf_chaos --kill ", ["worker:0", "worker:1"]),
        ("%%dtf_chaos --kill worker:0 --", None),
        ("%%dtf_chaos --drop RecvT", ["RecvTensor:0.1"]),
    ],
)
def test_tab_offers_what_the_magic_has_and_nothing_else(shell, line, offers):
    magic(shell, "%dtf_cluster --worker 2 --name mine")
    if offers is None:  # what may be repeated is offered again
        offers = ["--kill", "--stop", "--slow", "--drop", "--partition", "--seed", "--name", "--help"]
    assert sorted(offered(shell, line)) == sorted(offers)


def test_tab_offers_clusters_that_only_python_names(shell):
    assert offered(shell, "%%dtf_run --on ") == offered(shell, "%%dtf_chaos --kill ") == []
    shell.run_cell("c = tf.Cluster(ps=1)").raise_error()
    assert offered(shell, "%%dtf_run --name ") == offered(shell, "%%dtf_chaos --name ") == ["c"]
    assert offered(shell, "%%dtf_run --on ") == ["/job:ps/task:0"]
    assert offered(shell, "%%dtf_chaos --kill ") == ["ps:0"]
    shell.run_cell("c.stop()").raise_error()


def test_tab_offers_verbs_and_options_at_the_beginning(shell):
    assert {"status", "stop", "--ps", "--engine"} <= {*offered(shell, "%dtf_cluster ")}
    assert {"placement/q1", "--all", "--hint"} <= {*offered(shell, "%dtf_grade ")}
    assert {*offered(shell, "%dtf_predict par")} == {"parallel/q1", "parallel/q2"}


def test_tab_offers_the_notebooks_names_in_python(shell):
    shell.user_ns["my_loss"] = 1
    for line in ("%dtf_timeline my_", "%dtf_timeline y --feed {my_", "t = %dtf_timeline [y, my_"):
        assert offered(shell, line) == ["my_loss"]
    assert offered(shell, "%dtf_timeline tf.my_") == offered(shell, "%dtf_timeline 'my_") == []
    assert "abs" in offered(shell, "ab") and "--worker" not in offered(shell, "x = 1 --w")


@pytest.mark.parametrize("name", NAMES)
def test_tab_behind_a_bare_name_adds_nothing(shell, name):
    assert offered(shell, f"%dtf_{name}") == [f"%dtf_{name}"]


def test_tab_is_ipythons_again_after_unloading(shell):
    before = len(shell.Completer.custom_matchers)
    magic(shell, "%unload_ext dtflab")
    assert len(shell.Completer.custom_matchers) == before - 1
