"""The house's rules that a machine can check. `tests/house.py` reads the sources; here are only the rules."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dtflab.base import events
from dtflab.runtime import transport
from tests import house
from tests.house import PACKAGE, ROOT

HEAVY = ("IPython", "anywidget", "cupy", "ipywidgets", "matplotlib", "networkx")


def test_the_house_is_complete():
    files = (".ci/run .pre-commit-config.yaml CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md "
             "environment.yml pyproject.toml").split()  # fmt: skip
    folders = "benchmarks docs dtflab exercises notebooks protos solutions tests".split()
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert [name for name in folders if not any((ROOT / name).glob("*"))] == []


# ---- reading order ----


def test_stated_rooms_are_the_folders():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(house.order().level) == folders
    assert all((PACKAGE / room / "__init__.py").is_file() for room in folders)


def test_stated_chapter_is_the_files_of_runtime():
    files = {path.stem for path in (PACKAGE / "runtime").glob("*.py")} - {"__init__"}
    chapter = house.order().chapter
    assert len(set(chapter)) == len(chapter) and set(chapter) <= files
    for where in (PACKAGE, PACKAGE / "runtime"):
        stated = set(re.findall(r"\w+", house.ast.get_docstring(house.tree(where / "__init__.py"))))
        assert files - stated == set(), (
            f"in runtime/, but the docstring of {house.name(where)}/__init__.py does not name them"
        )


WALLS = ("nets", "ops", "sim", "train", "viz")  # rooms with families, each a folder that lists its pages
FAMILIES = [
    house.name(page.parent).removeprefix("dtflab/") for room in WALLS for page in PACKAGE.glob(f"{room}/*/__init__.py")
]

ROOMS = "base cluster data files graph grading hardware machine notebook placement virtual".split()  # without families


@pytest.mark.parametrize("room", [*ROOMS, *WALLS, *FAMILIES])
def test_contents_of_a_large_room_name_each_file_once(room):
    pages = {path.relative_to(PACKAGE / room).parts[0] for path in house.sources(PACKAGE / room)} - {"__init__.py"}
    contents = house.ast.get_docstring(house.tree(PACKAGE / room / "__init__.py"))
    named = re.findall(r"`(\w+)`", contents)
    assert sorted(named) == sorted(page.removesuffix(".py") for page in pages), f"dtflab/{room}/__init__.py"


@pytest.mark.parametrize("folder", [*ROOMS, *WALLS, *FAMILIES])
def test_contents_say_what_each_file_is_for(folder):
    contents = house.ast.get_docstring(house.tree(PACKAGE / folder / "__init__.py"))
    assert re.findall(r"`(\w+)`(?!\s\()", contents) == []


def test_a_page_of_the_chapter_never_imports_an_earlier_one():
    chapter = house.order().chapter
    for page, stem in enumerate(chapter):
        path = PACKAGE / "runtime" / f"{stem}.py"
        # A graph is cut twice, by task and then by device, so `partition` is met again in `graph_mgr`.
        earlier = {f"dtflab.runtime.{before}" for before in chapter[:page] if before != "partition"}
        loaded = {name for name in house.imports_when_loaded(path) if {name, name.rpartition(".")[0]} & earlier}
        assert loaded == set(), f"{house.name(path)} imports {loaded}"


def test_lower_rooms_never_import_upper_ones():
    wrong = {house.name(path): [*upward_imports(path)] for path in house.sources()}
    assert {name: found for name, found in wrong.items() if found} == {}


def upward_imports(path):
    level = house.order().level
    own, *inside = path.relative_to(PACKAGE).parts
    roof = not inside or "as_tensorflow" in inside  # dtflab/*.py, and what other processes import instead of it
    for imported in () if roof else house.imports(path):
        package, room, *_ = [*imported.split("."), ""]
        # A room that is not known here is the roof itself, `from dtflab import constant`.
        if package == "" or (package == "dtflab" and room != own and level.get(room, 99) >= level[own]):
            yield imported


# ---- one owner for each ----


def test_grpc_is_imported_in_one_file():
    assert [house.name(path) for path in house.sources() if house.imports_module(path, "grpc")] == [
        "dtflab/cluster/grpc_transport.py"
    ]


def test_threads_are_started_in_one_file():
    starters = {"Thread", "Timer", "ThreadPool", "ThreadPoolExecutor", "start_new_thread", "to_thread"}
    assert [house.name(path) for path in house.sources() if house.reaches_for(path, starters)] == [
        "dtflab/machine/clock.py"
    ]


@pytest.mark.parametrize(
    "names, owner",
    [({"getrefcount"}, "dtflab/base/ownership.py"), ({"_current_frames"}, "dtflab/base/thread_frames.py")],
    ids=["reference counts", "frames of other threads"],
)
def test_what_only_this_interpreter_knows_is_asked_in_one_file(names, owner):
    assert [house.name(path) for path in house.sources() if house.reaches_for(path, names)] == [owner]


# What reads a frame depends on how the code around it is laid out.
FRAMES = set(
    "_getframe currentframe current_frames walk_stack walk_tb tb_frame gi_frame f_back f_builtins f_code f_globals "
    "f_lasti f_lineno f_locals".split()
)
READ_FRAMES = {
    "dtflab/api/benchmark.py": "as in TensorFlow, a benchmark has the name of the method that is running",
    "dtflab/base/thread_frames.py": "the one owner of what other threads are doing",
    "dtflab/base/tf_logging.py": "log_every_n counts by the program's line",
    "dtflab/graph/operation.py": "an op knows the program's line that made it",
    "dtflab/grading/grade.py": "the answer to a question is a variable of the caller",
    "dtflab/grading/judge.py": "whose line raised an error: the check's or the answer's",
    "dtflab/grading/unaided.py": "an answer may call no function of a check, and perhaps open no session",
}


def test_frames_are_read_where_a_reason_is_stated():
    assert {house.name(path) for path in house.sources() if house.reaches_for(path, FRAMES)} == set(READ_FRAMES)
    takers = [p for p in house.sources() if "dtflab.base.thread_frames.current_frames" in house.imports(p)]
    assert takers == [], "ask base/thread_frames.py for what is to be known, as with `is_joining`"


def test_heavy_packages_load_only_with_a_picture_or_a_notebook():
    loaded = {(house.name(path), name) for path in house.sources() for name in house.imports_when_loaded(path)}
    heavy = {(file, name) for file, name in loaded if name.split(".")[0] in HEAVY}
    assert {file for file, _ in heavy if not file.startswith("dtflab/notebook/")} == set()


def test_nothing_that_arrives_is_run():
    unsafe = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
    for path in house.sources():
        assert unsafe & {name.split(".")[0] for name in house.imports(path)} == set(), path
        calls = house.calls(path) if re.search(r"eval|exec|compile|load|allow_pickle", path.read_text()) else []
        for call in calls:
            text = f"{house.name(path)}:{call.lineno}: {house.ast.unparse(call)}"
            own = house.name(path) == "dtflab/notebook/task_cell.py"  # it runs the cell that its user has written
            assert own or getattr(call.func, "id", "") not in ("eval", "exec", "compile"), text
            assert "allow_pickle=True" not in text, text
            assert house.called(call) != "load" or "np.load" not in text or "allow_pickle=False" in text, text


def test_the_programs_own_random_streams_are_left_alone():
    drawn = {house.name(path): house.shared_draws(path) for path in house.sources()}
    assert {name: found for name, found in drawn.items() if found} == {
        # as TensorFlow: a test case seeds both for its test, and a gradient's check begins at random places
        "dtflab/api/test_case.py": {"random.seed", "numpy.random.seed"},
        "dtflab/api/test.py": {"numpy.random.random_sample"},
        # the one generator that is not seeded by hand; a forked process seeds it again
        "dtflab/ops/entropy.py": {"random.Random()"},
    }


def test_draws_from_the_programs_streams_are_found(tmp_path):
    (tmp_path / "module.py").write_text(
        "import random, numpy as np, numpy.random as npr\nfrom random import Random, choice as pick\n"
        "from dtflab.ops import random as ops\nown = random.Random(1), np.random.default_rng(seed=2), Random(3)\n"
        "def draw(rng: random.Random): return rng.random() + ops.random_uniform([])\n"
        "pick([1]), random.random(), np.random.rand(2), npr.shuffle([]), Random(), np.random.default_rng()\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house, "ROOT", tmp_path)
        found = house.shared_draws(tmp_path / "module.py")
    assert found == {
        "random.choice", "random.random", "numpy.random.rand", "numpy.random.shuffle", "random.Random()",
        "numpy.random.default_rng()",
    }  # fmt: skip


def test_importing_dtflab_loads_nothing_heavy():
    code = "import dtflab, json, sys; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    loaded = json.loads(done.stdout)
    assert {name.partition(".")[0] for name in loaded} & {*HEAVY, "grpc", "pandas", "tensorflow"} == set()
    assert {"dtflab.runtime.master", "dtflab.runtime.executor", "dtflab.machine"}.isdisjoint(loaded)


# ---- names that are loaded on first use ----

LATER = {"": ("_LAZY", "_MODULES"), "sim": ("_LAZY", "_MODULES"), "grading": ("_LAZY",), "notebook": ("__all__",)}


@pytest.mark.parametrize("package", LATER)
def test_the_type_checker_sees_what_is_loaded_on_first_use(package):
    path = PACKAGE / package / "__init__.py"
    module = importlib.import_module(".".join(path.parent.relative_to(ROOT).parts))
    stated = dict(house.imports_when_checked(path))
    loaded = {name.rpartition(".")[2] for name in house.imports_when_loaded(path)}
    assert sorted(stated) == sorted({name for table in LATER[package] for name in vars(module)[table]} - loaded)
    assert {n: x for n, x in stated.items() if house.imported_thing(x) is not getattr(module, n)} == {}


def test_packages_that_load_on_first_use_are_known():
    lazy = {house.name(path.parent) for path in house.sources() if house.defines_names_later(path)}
    assert lazy - {"dtflab/api"} == {f"dtflab/{package}".rstrip("/") for package in LATER}


TYPED_NAMES = (
    "Cluster ConfigProto GraphDef attention.LuongAttention check compat.as_text data.Dataset explain flags.FLAGS "
    "grading.register layers.conv2d layers.dense losses.mean_squared_error nn.relu notebook.explore sim.estimate "
    "sim.models smi summary.FileWriter timeline.Timeline timeouts train.Saver viz.timeline watch"
).split()


def test_no_name_of_the_namespace_is_any_to_a_type_checker(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(["import dtflab as tf", *(f"reveal_type(tf.{name})" for name in TYPED_NAMES)]))
    command = [sys.executable, "-m", "mypy", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert done.returncode == 0 and len(revealed) == len(TYPED_NAMES), done.stdout + done.stderr
    assert [n for n, kind in zip(TYPED_NAMES, revealed) if kind == "Any" or kind.startswith("def (*Any")] == []


# ---- seams ----

SEAMS = {
    transport.MasterInterface: "Master DirectMaster MasterStub BringingMaster WatchedMaster",
    transport.LocalMaster: "Master DirectMaster",
    transport.WorkerInterface: "Worker VirtualWorker Peer Absent WorkerStub",
}


@pytest.mark.parametrize("protocol", SEAMS, ids=lambda protocol: protocol.__name__)
def test_what_stands_at_a_seam_has_the_signatures_of_its_protocol(protocol):
    classes = house.implementations(protocol)
    assert sorted(kind.__name__ for kind in classes) == sorted(SEAMS[protocol].split())
    assert [line for kind in classes for line in house.deviations(protocol, kind)] == []


OF_THE_WIRE = (
    "admission answering call_events connect connection endpoint grpc_transport inprocess master_service master_stub "
    "status task tensor_response wire worker_service worker_stub"
).split()
# Lines that mypy's `disallow_any_expr` (pyproject.toml) would refuse; a number may only fall.
EXPRESSIONS_OF_ANY = {
    "runtime/session.py": 3,  # what a program gets of make_callable takes and returns whatever that program likes
    **dict.fromkeys(("runtime/local.py", "runtime/master.py", "runtime/transport.py", "runtime/worker.py"), 0),
    **{f"cluster/{page}.py": 0 for page in OF_THE_WIRE},
}


def test_expressions_of_any_at_the_seams_are_counted():
    texts = {name: (PACKAGE / name).read_text() for name in EXPRESSIONS_OF_ANY}
    counts = {name: len(re.findall(r"type: ignore\[[^]]*\bmisc\b", text)) for name, text in texts.items()}
    assert counts == EXPRESSIONS_OF_ANY
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (strict,) = (rule["module"] for rule in overrides if rule.get("disallow_any_expr"))
    assert strict == sorted(f"dtflab.{name[:-3].replace('/', '.')}" for name in EXPRESSIONS_OF_ANY)


@pytest.mark.parametrize("module", sorted({protocol.__module__ for protocol in SEAMS}))
def test_no_seam_is_stated_with_any(module):
    assert re.findall(r"\bAny\b", house.page(module).read_text()) == []


# The fields of a message are found by their names, which TensorFlow's protocol states.
COMPUTED_NAMES = {"cluster/tensor_codec.py": {"getattr(proto, field)", "getattr(message, field)"}}


@pytest.mark.parametrize("room", ["runtime", "cluster", "virtual"])
def test_nobody_at_a_seam_asks_what_the_other_can_do(room):
    members = {name for protocol in SEAMS for name in (*house.methods(protocol), *house.values(protocol))}
    sides = re.compile("master|worker|peer|stub|wire|request|kernel")
    for path in house.sources(PACKAGE / room):
        asked = {call for call, of, name in house.looks_inside(path) if name in {None, *members} or sides.search(of)}
        assert asked == COMPUTED_NAMES.get(f"{room}/{path.name}", set()), house.name(path)
        assert re.findall(r"\b(cast|__getattr__)\b", path.read_text()) == [], house.name(path)


def rooms_above(room):
    level = house.order().level
    return sorted(other for other in level if level[other] > level[room] and (PACKAGE / other).is_dir())


@pytest.mark.parametrize("room", rooms_above("runtime"))
def test_what_a_session_keeps_private_no_upper_room_reaches(room):
    private = {name for page in ("session", "master") for name in house.privates(PACKAGE / "runtime" / f"{page}.py")}
    sides = re.compile("master|worker|peer|stub|wire")
    for path in house.sources(PACKAGE / room):
        reached = [text for text, name in house.reaches(path) if name in private - house.privates(path)]
        asked = [call for call, of, name in house.looks_inside(path) if name and (name in private or sides.search(of))]
        assert reached + asked == [], house.name(path)


LOOSE_SESSIONS = {  # those of graph/ and ops/ are below the room of sessions
    "sim/what_ifs/what_if.py": {"_of_session"},  # None, too, where a cluster is given
    "train/training_util.py": {"global_step"},  # whatever has a `run`: a monitored session, too
}


LOOSE = {"sess", "session", "run_context", "run_values"}


def test_sessions_and_their_options_are_typed():
    found = {}
    for path in house.sources():
        functions = [n for n in house.ast.walk(house.tree(path)) if isinstance(n, house.ast.FunctionDef)]
        parameters = [(f.name, p) for f in functions for p in (*f.args.args, *f.args.kwonlyargs) if p.annotation]
        loose = [(f, p.arg) for f, p in parameters if house.ast.unparse(p.annotation) in ("Any", "_Any")]
        assert [pair for pair in loose if pair[1].endswith(("config", "run_metadata", "run_options"))] == [], path
        found[path.relative_to(PACKAGE).as_posix()] = {f for f, name in loose if name in LOOSE}
    assert {p: f for p, f in found.items() if f and not p.startswith(("graph/", "ops/"))} == LOOSE_SESSIONS


def test_an_error_without_an_op_is_made_by_of():
    raised = [n.exc for path in house.sources() for n in house.nodes(path) if isinstance(n, house.ast.Raise) and n.exc]
    assert [text for text in map(house.ast.unparse, raised) if "(None, None, " in text] == []


# ---- events ----


def test_what_a_watch_and_its_calls_are_called_nothing_else_is():
    classes = [n for path in house.sources() for n in house.nodes(path) if isinstance(n, house.ast.ClassDef)]
    assert sorted(kind.name for kind in classes if kind.name in ("Call", "Watch")) == ["Call", "Watch"]


# The builder of each event of base/events.py, by keyword; where it was kept as a plain tuple, it is built again.
EVENTS = {
    "Begins": ["runtime/watched_master.py: run_step"],
    "Call": ["base/events.py: ended", "cluster/task.py: calls_of"],  # the latter are those that a task has kept
    "CardEvent": [
        "machine/journal.py: _parsed by _make",
        "machine/registry.py: _tell",
    ],  # a line of the file; the event
    "Happened": ["virtual/event_log.py: _event"],
    "Message": ["cluster/task.py: note"],
    "NodeRan": ["machine/step_stats.py: add"],
    "QueueEvent": ["ops/queues/shared_queue.py: _tell"],
    "Use": ["runtime/watched_master.py: _tell_uses"],
}


def test_an_event_is_built_in_one_place_by_keyword():
    assert set(EVENTS) == {name for name, kind in vars(events).items() if hasattr(kind, "_fields")}
    found = sorted(pair for path in house.sources() for pair in house.constructions(path, events.__name__, {*EVENTS}))
    assert found == sorted((event, place) for event, places in EVENTS.items() for place in places)


# ---- size ----


def test_the_chapter_is_short():
    """Nine pages are limited together; anything a page need not say itself has a side page, in the same room."""
    pages = [PACKAGE / "runtime" / f"{stem}.py" for stem in house.order().chapter]
    assert len(pages) == 9 and sum(map(house.code_lines, pages)) < 1600
    assert sum(len(page.read_text().splitlines()) for page in pages) < 2300
    limits = "9 files with fewer than 1,600 lines of code, and 2,300"
    assert limits in (ROOT / "docs" / "defense.md").read_text(), "docs/defense.md gives the same limits"


@pytest.mark.parametrize("room, limit", [("", 92_975), ("ops", 28_200)])
def test_the_package_is_compact(room, limit):
    assert sum(map(house.code_lines, house.sources(PACKAGE / room))) < limit


def test_code_stands_as_ruff_lays_it_out():
    assert sum(house.exempted(path, "skip") for path in house.sources()) < 150
    by_hand = [house.name(path) for path in house.sources() if house.exempted(path, "off")]
    tables = ["dtflab/__init__.py", "dtflab/machine/cards.py", "dtflab/ops/all.py"]
    assert by_hand == tables, "tables of names, of cards and of pages"


def test_an_exemption_from_the_layout_is_a_comment_of_its_own(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        'a = 1  # fmt: skip\nb = "# fmt: skip"  # as `# fmt: skip` says\n# fmt: off\nc=1 # noqa # fmt: skip\n'
    )
    assert (house.exempted(path, "skip"), house.exempted(path, "off")) == (2, 1)


def test_nine_bodies_in_ten_fit_in_25_lines():
    lengths = sorted(house.body_lengths())
    assert lengths[len(lengths) * 9 // 10] <= 25


# ---- nothing of the machine ----


def test_no_path_of_this_machine_and_no_registry_in_a_committed_file():
    private = re.compile(rb"/(?:work|root|home|Users)/\w|(?:pypi|pythonhosted|npmjs|conda\.anaconda)\.(?:org|com)")
    found = {house.name(path): private.search(path.read_bytes()) for path in house.tracked_files()}
    assert {name: match[0] for name, match in found.items() if match} == {}


# ---- versions ----

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(*extras: str) -> dict[str, Requirement]:
    lines = PROJECT["dependencies"] + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}


def test_core_is_small():
    assert set(requirements()) == {
        "numpy",
        "protobuf",
        "grpcio",
        "ml-dtypes",
        "threadpoolctl",
        "google-crc32c",
        "absl-py",
    }


def test_conda_installs_what_the_owner_asked_for():
    asked = "jupyterlab ipywidgets numpy cupy-cuda12x grpcio protobuf matplotlib networkx".split()
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [line for line in environment["dependencies"] if isinstance(line, str)]
    (pip,) = (line["pip"] for line in environment["dependencies"] if isinstance(line, dict))
    assert conda == [f"python{PROJECT['requires-python']}", "pip"], "versions are stated in pyproject.toml"
    (extras,) = (re.fullmatch(r"-e \.\[([\w,]+)\]", line)[1].split(",") for line in pip)
    assert set(asked) <= set(requirements(*extras))


def test_pinned_hooks_lie_within_the_stated_ranges():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    pins = [pin for repo in config["repos"] for hook in repo["hooks"] for pin in hook["additional_dependencies"]]
    assert pins
    for package, version in (pin.split("==") for pin in pins):
        assert requirements("dev")[package].specifier.contains(version), f"{package}=={version}"


def test_generated_protos_load_with_the_oldest_stated_protobuf():
    stamps = {re.search(r"# Protobuf Python Version: (\S+)", path.read_text())[1]
              for path in (PACKAGE / "protos").glob("*_pb2.py")}  # fmt: skip
    (stamp,) = stamps
    assert f">={stamp}" in str(requirements()["protobuf"].specifier)
