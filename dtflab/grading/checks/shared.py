"""Questions on state that tasks keep.

q1: a model was trained on a cluster, the program has ended, and nobody has saved anything. What is left of it? The
checks train for real, on a cluster of this process, restart one task and reset a container; then the
answer gets the target of a session, and its checkpoint is read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.cluster.cluster import Cluster
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself
from dtflab.graph import dtypes, scopes
from dtflab.graph.graph import Graph
from dtflab.ops.variables.functions import global_variables, report_uninitialized_variables
from dtflab.ops.variables.get_variable import get_variable
from dtflab.runtime.session import Session
from dtflab.train.checkpoints.checkpoint_utils import list_variables, load_checkpoint

q1 = from_toml(__file__)


class Home(NamedTuple):
    """Where a variable is asked to be, in which container, and whether it outlives what happens."""

    device: str
    container: str
    stays: bool


ON_PS = [Home(f"/job:ps/task:{task}", "", stays=True) for task in range(2)]
ELSEWHERE = [
    Home("/job:ps/task:0", "kept", stays=True),
    Home("/job:ps/task:1", "reset", stays=False),  # by somebody, after the training
    Home("/job:worker/task:0", "", stays=False),  # which restarts after the training
    Home("/job:worker/task:1", "", stays=True),
]


class Case(NamedTuple):
    """A model: where each variable is, and its value when the training ended. Those called steps… are not trainable."""

    homes: Mapping[str, Home]
    trained: Mapping[str, np.ndarray]

    @property
    def lost(self) -> list[str]:
        return [name for name, home in self.homes.items() if not home.stays]

    @property
    def kept(self) -> dict[str, np.ndarray]:
        return {name: self.trained[name] for name, home in self.homes.items() if home.stays}

    def build(self) -> None:
        """Makes its variables in the default graph."""
        graph = scopes.get_default_graph()
        for name, home in self.homes.items():
            with graph.device(home.device), graph.container(home.container):
                value = self.trained[name]
                get_variable(name, value.shape, dtypes.as_dtype(value.dtype), trainable=_is_trainable(name))


def _is_trainable(name: str) -> bool:
    return "steps" not in name


class Seen(NamedTuple):
    """The variables an answer called lost, its checkpoint (None: there is none), and the cluster's values afterwards.

    If it ended with an error, what that said, and nothing else. `files` are all that it wrote next to `path`.
    """

    case: Case
    lost: Sequence[str] = ()
    saved: Mapping[str, np.ndarray] | None = None
    left: Mapping[str, np.ndarray] = {}
    files: Sequence[str] = ()
    error: str = ""
    counted: bool = False  # the answer returned how many are lost
    otherwise: bool = False  # it gave names in another form than variable.op.name
    more: Sequence[str] = ()  # variables of its own that it left on the cluster

    @property
    def names_the_lost(self) -> bool:
        return sorted(self.lost) == sorted(self.case.lost)

    @property
    def has_new_values(self) -> bool:
        """Whether a variable that was not lost has another value on the cluster now."""
        kept = self.case.kept
        return any(not np.array_equal(value, kept[name]) for name, value in self.left.items() if name in kept)


def _draw(random: Random, homes: Sequence[Home]) -> Case:
    """A model with one variable or two in each of the homes, in any order.

    Of those that stay, and of those that don't, one counts, and is not trainable. Some have a scope.
    """
    chosen = _around(homes, random)
    stay = {stays: [i for i, home in enumerate(chosen) if home.stays == stays] for stays in (True, False)}
    steps = [random.choice(places) for places in stay.values() if places]
    kinds = ["steps" if i in steps else random.choice(("weights", "biases", "embedding")) for i in range(len(chosen))]
    names = {
        f"layer{i}/{kind}" if i % 3 == 0 else f"{kind}{i}": one for i, (kind, one) in enumerate(zip(kinds, chosen))
    }
    return Case(names, {name: _value(name, random) for name in names})


def _around(homes: Sequence[Home], random: Random) -> list[Home]:
    """Each of the homes, and most of them twice, in any order.

    On the task with a container that is reset, the first variable and the last are lost, those in between are not.
    """
    reset = [home for home in homes if home.container == "reset"]
    others = [home for home in homes if home not in reset]
    chosen = [*homes, *reset, *random.sample(others, len(others) - 1)]
    random.shuffle(chosen)
    for lost in reset:
        places = [i for i, home in enumerate(chosen) if home.device == lost.device]
        there = [lost, *(chosen[i] for i in places if chosen[i] != lost), lost]
        for i, home in zip(places, there, strict=True):
            chosen[i] = home
    return chosen


def _value(name: str, random: Random) -> np.ndarray:
    """Numbers for a variable; those of a counter are whole, and too large for float32."""
    count = range(random.randint(2, 5))
    if _is_trainable(name):
        return np.array([random.gauss(0, 1) for _ in count], np.float32)
    return np.array([random.randrange(2**25 + 1, 2**40, 2) for _ in count], np.int64)


def _train(case: Case, target: str) -> None:
    """The program that forgot to save."""
    with Graph().as_default():
        case.build()
        updates = [variable.assign(case.trained[variable.op.name]) for variable in global_variables()]
        with Session(target) as session:
            session.run(updates)


def _run(answer: Any, case: Case) -> Seen:
    """Train, let happen what happens, and let the answer rescue what is left."""
    with Cluster(ps=2, worker=2) as cluster, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.ckpt")
        _train(case, cluster.target_of("worker", 0))
        if case.lost:
            Session.reset(cluster.target_of("worker", 0), ["reset"])
            cluster.restart("worker", 0)
        target = cluster.target_of("worker", 1)
        before = {one[1:4] for one in cluster.variables()}
        with Graph().as_default():
            given = _given(_asked(answer, case, target, path), case)
        more = sorted(one.name for one in cluster.variables() if one[1:4] not in before and one.name not in case.homes)
        saved = _saved(path) if os.path.exists(f"{path}.index") else None
        files = [os.path.relpath(os.path.join(there, name), folder) for there, _, n in os.walk(folder) for name in n]
        lost = sorted(map(_name, given))
        otherwise = lost != sorted(map(str, given))
        return Seen(case, lost, saved, _left(case, target), files, otherwise=otherwise, more=more)


def _left(case: Case, target: str) -> dict[str, np.ndarray]:
    """The variables that have a value on the cluster, as a later program finds them."""
    with Graph().as_default():
        case.build()
        with Session(target) as session:
            gone = {name.decode() for name in session.run(report_uninitialized_variables())}
            found: dict[str, np.ndarray] = session.run(
                {v.op.name: v for v in global_variables() if v.op.name not in gone}
            )
            return found


def _asked(answer: Any, case: Case, target: str, path: str) -> Any:
    """The answer's result. Two errors are explained as they apply here: their own advice is for other programs."""
    told = case._replace(homes={name: home._replace(stays=True) for name, home in case.homes.items()})
    try:
        return by_itself(answer, target, told.build, path)
    except errors.FailedPreconditionError as error:
        if not case.lost:
            raise  # the answer has emptied the cluster itself
        what = error.message.partition(". ")[0]
        raise Wrong(f"rescue stopped at a variable that is lost: {what}.", Seen(case, error=error.message)) from None
    except errors.InvalidArgumentError as error:
        if "/job:localhost" not in error.message:
            raise
        message = "rescue opened a session that has no tasks ps and worker, only this process."
        raise Wrong(message, Seen(case, error=error.message)) from None


def _given(value: Any, case: Case) -> list[Any]:
    """The names that an answer returned, as they are; Wrong if they are not in a list."""
    if not hasattr(value, "__iter__") or isinstance(value, str | bytes):
        seen = Seen(case, counted=True) if type(value) is int and 0 < value == len(case.lost) else None
        raise Wrong(f"rescue returned {value!r}; expected: a list of names, [] if nothing is lost.", seen)
    return list(value)


def _name(one: Any) -> str:
    """The name that is meant by bytes, or by a name with the number of the output."""
    return (one.decode() if isinstance(one, bytes) else str(one)).removesuffix(":0")


def _saved(path: str) -> dict[str, np.ndarray]:
    return {name: load_checkpoint(path).get_tensor(name) for name, _ in list_variables(path)}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _demand_lost(seen: Seen) -> None:
    """Wrong unless the answer names what is lost, no more and no less."""
    if not seen.names_the_lost:
        of = f"Of the variables {_listed(seen.case.homes)}"
        raise Wrong(f"{of}, it calls lost: {_listed(seen.lost)}. Lost are: {_listed(seen.case.lost)}.", seen)


def _demand_saved(seen: Seen) -> None:
    """Wrong unless the checkpoint has the trained values of all that is not lost, and nothing else."""
    kept = seen.case.kept
    if seen.saved is None:
        there = f" The folder has {_listed(seen.files)}." if seen.files else ""
        raise Wrong(f"There is no checkpoint at `path`. tf.train.Saver(…).save(sess, path) writes one.{there}", seen)
    if set(seen.saved) != set(kept):
        raise Wrong(f"The checkpoint has {_listed(seen.saved)}; expected: {_listed(kept)}.", seen)
    for name, value in kept.items():
        saved = seen.saved[name]
        if not np.array_equal(saved, value) or saved.dtype != value.dtype:
            raise Wrong(f"{name} was trained to {value} ({value.dtype}), but {saved} ({saved.dtype}) was saved.", seen)


def _demand_untouched(seen: Seen) -> None:
    """Wrong unless the cluster is as the answer found it."""
    if more := set(seen.left) - set(seen.case.kept):
        raise Wrong(f"Lost variables have values on the cluster now, which nobody trained: {_listed(more)}.", seen)
    if less := set(seen.case.kept) - set(seen.left):
        raise Wrong(f"On the cluster these have no value any more: {_listed(less)}.", seen)
    if seen.more:
        raise Wrong(f"The cluster has variables now that are not the program's: {_listed(seen.more)}.", seen)
    if seen.has_new_values:
        raise Wrong("On the cluster, variables that were trained have other values now.", seen)


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("The training program has ended: everything is still there, and is saved", points=4)
def ended(answer: Any, random: Random) -> None:
    seen = _run(answer, _draw(random, ON_PS))
    _demand_lost(seen)
    _demand_saved(seen)
    _demand_untouched(seen)


@q1.check("A task restarted, and a container was reset: what is lost is named", points=3)
def named(answer: Any, random: Random) -> None:
    seen = _run(answer, _draw(random, ON_PS + ELSEWHERE))
    _demand_lost(seen)
    if seen.otherwise:
        raise Wrong("The right variables, but not by their names as `variable.op.name` gives them.", seen)


@q1.check("The rest is saved as it was trained, and the cluster is left as it was", points=3)
def saved(answer: Any, random: Random) -> None:
    seen = _run(answer, _draw(random, ON_PS + ELSEWHERE))
    _demand_saved(seen)
    _demand_untouched(seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def returns_their_number(seen: Seen) -> bool:
    """That is how many variables are lost, not which. Return a list of their names: variable.op.name."""
    return seen.counted


@q1.mistake()
def names_them_otherwise(seen: Seen) -> bool:
    """These are not the variables' names: bytes, as a session gives them, or the name of a tensor, which ends in ":0".
    A program that looks for one of the names finds nothing. variable.op.name is the name, and a str."""
    return seen.otherwise and seen.names_the_lost


@q1.mistake()
def opens_a_local_session(seen: Seen) -> bool:
    """tf.Session() without a target is local: a cluster of its own. What others have left on the tasks is found through
    them: tf.Session(target)."""
    return "/job:localhost" in seen.error


@q1.mistake()
def saves_all(seen: Seen) -> bool:
    """The Saver was given a variable without a value, which can't be read. Don't initialize it: what it gets is not
    what was trained. Ask the session which ones have a value, and give the Saver a list of these."""
    return "Attempting to use uninitialized value" in seen.error


@q1.mistake()
def names_what_is_left(seen: Seen) -> bool:
    """These are the names of what is left, and saved. Return those of the others, which have no value any more."""
    return bool(seen.case.lost and seen.saved) and set(seen.lost) == set(seen.case.kept)


@q1.mistake()
def gives_up_whole_tasks(seen: Seen) -> bool:
    """All variables of a task are called lost if one of them is. A reset takes a container, and leaves the others on
    that task: ask each variable for itself."""
    homes = seen.case.homes
    hit = {homes[name].device for name in seen.case.lost}
    return sorted(seen.lost) == sorted(name for name in homes if homes[name].device in hit) != sorted(seen.case.lost)


@q1.mistake()
def names_all(seen: Seen) -> bool:
    """These are the names of all variables. Return only those that have no value any more."""
    return bool(seen.case.lost and seen.saved) and set(seen.lost) == set(seen.case.homes)


@q1.mistake()
def returns_variables(seen: Seen) -> bool:
    """These are variables. Return their names: variable.op.name."""
    return any(name.startswith("<tf.Variable") for name in seen.lost)


@q1.mistake()
def numbers_the_checkpoint(seen: Seen) -> bool:
    """A number was added to the name of the checkpoint: that is what global_step does. A program that looks at `path`
    finds nothing there. Leave it out."""
    return seen.saved is None and any(name.startswith("model.ckpt-") for name in seen.files)


@q1.mistake()
def saves_elsewhere(seen: Seen) -> bool:
    """There is a checkpoint, but under another name than `path`. A program that looks for it there finds nothing: give
    Saver.save the path as it is."""
    return seen.saved is None and seen.names_the_lost and any(name.endswith(".index") for name in seen.files)


@q1.mistake()
def saves_no_checkpoint(seen: Seen) -> bool:
    """The file that was written is not a checkpoint: no Saver can restore it. Let
    tf.train.Saver(variables).save(sess, path) write the values."""
    return seen.saved is None and seen.names_the_lost and bool(seen.files) and "checkpoint" not in seen.files


@q1.mistake()
def empties_the_cluster(seen: Seen) -> bool:
    """The cluster's variables are gone now: tf.Session.reset empties containers. To find what others have left, only
    open a session."""
    return not seen.error and not seen.left


@q1.mistake()
def initializes(seen: Seen) -> bool:
    """Variables were initialized: trained values are overwritten by new ones, forever. What a cluster holds needs no
    initializer; a later client just uses it."""
    return len(seen.left) == len(seen.case.homes) and seen.has_new_values


@q1.mistake()
def saves_what_is_lost(seen: Seen) -> bool:
    """Lost variables were given new values, and these are in the checkpoint, as if they had been trained. Leave
    them out: tf.train.Saver takes a list of the variables to save."""
    return bool(set(seen.case.lost) & set(seen.saved or {}))


@q1.mistake()
def gives_new_values(seen: Seen) -> bool:
    """Lost variables were initialized on the cluster: a later program takes their new values for trained ones. Only
    look; initialize nothing."""
    return not seen.has_new_values and set(seen.case.kept) < set(seen.left)


@q1.mistake()
def saves_one_by_one(seen: Seen) -> bool:
    """The checkpoint has the last variable only: each save replaces the one before it. Collect the variables that have
    a value in a list first, then save once."""
    return len(seen.case.kept) > 1 and set(seen.saved or {}) == {list(seen.case.kept)[-1]}


@q1.mistake()
def forgets_what_is_not_trainable(seen: Seen) -> bool:
    """Some variables that an optimizer does not change were forgotten, such as counters of steps.
    tf.trainable_variables() leaves them out; tf.global_variables() has all."""
    return set(seen.saved or {}) == set(filter(_is_trainable, seen.case.kept))


@q1.mistake()
def looks_elsewhere(seen: Seen) -> bool:
    """Everything seems to be lost. A variable is found by its name: does the graph have the variables' own names,
    without a scope around build()?"""
    return not seen.saved and len(seen.lost) == len(seen.case.homes) > len(seen.case.lost)


@q1.mistake()
def changes_the_type(seen: Seen) -> bool:
    """In the checkpoint, numbers have another type than in the program. To restore it is an error then, and large
    whole numbers are not the same as float32: let a tf.train.Saver write the variables as they are."""
    kept, saved = seen.case.kept, seen.saved or {}
    if set(saved) != set(kept):
        return False
    other = any(saved[name].dtype != value.dtype for name, value in kept.items())
    return other and all(np.array_equal(saved[name], value.astype(saved[name].dtype)) for name, value in kept.items())
