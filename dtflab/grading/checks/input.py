"""Questions on input pipelines.

q1: read all lines of some files with a coordinator and queue runners. An answer is called with files that the checks
have written, on a simulated cluster, where a pipeline that waits forever is reported at once. How it is built is up to
the answer: what counts are the lines that come out, that they came through a queue there, and what happens when a file
is missing.
"""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.events import QueueEvent
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading import watchdog
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.machine.watch import watch
from dtflab.virtual.deadlock import DeadlockError

Lines = Sequence[str]
SECONDS = 1.0  # for a call; right answers need less than a tenth of it
_CHECK_SECONDS = 6.5  # for a check: to stop a call that never ends takes seconds, too, on a busy machine
PATIENCE = 300.0  # virtual seconds: a pipeline that has not ended by then waits forever; one needs milliseconds

q1 = from_toml(__file__)


# -- a run ---------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The answer's elements: the evidence. `error` is the type of the exception that it raised."""

    files: Sequence[Lines]
    epochs: int
    missing: bool  # one of the files
    got: Sequence[str] = ()
    error: type[BaseException] | None = None
    elsewhere: bool = False  # no queue of the cluster was used
    waits: bool = False  # forever
    endless: bool = False  # that, or it was stopped;
    taken: int = 0  # elements until then, of the queue from which most were taken

    @property
    def once(self) -> Counter[str]:
        """The lines of one epoch."""
        return Counter(line for lines in self.files for line in lines)

    @property
    def starved(self) -> bool:
        """Whether the answer waits for a first element that nobody will bring."""
        return self.waits and not self.taken

    @property
    def insatiable(self) -> bool:
        return self.endless and self.taken > self.once.total() * self.epochs


def run(answer: Any, files: Sequence[Lines], epochs: int, missing: bool = False) -> Seen:
    """Let the answer read files; Wrong for an error that is not about the missing file, and if it never ends."""
    seen = Seen(files, epochs, missing)
    with watch() as watched:
        outcome = watchdog.call(functools.partial(_read, answer, seen, watched.queues), SECONDS)
    if outcome.stopped:
        message = f"Stopped after {SECONDS:g} s: read_all does not come to an end."
        deaf = " It did not react, and goes on in the background: restart the kernel." * outcome.left_running
        raise _endless(message + deaf, seen, watched.queues)
    if outcome.error is not None:
        raise outcome.error
    found: Seen = outcome.value
    return found


def _read(answer: Any, seen: Seen, queues: Sequence[QueueEvent]) -> Seen:
    """Call the answer on a cluster of its own, whose `queues` are watched."""
    with tempfile.TemporaryDirectory() as folder, Cluster(clock="virtual", worker=1) as cluster:
        names = _written(folder, seen.files)
        names.insert(1, str(Path(folder, "missing.txt"))) if seen.missing else None
        cluster.at(PATIENCE, cluster.stop)
        try:
            got = answer(cluster.target, names, seen.epochs)
        except (DeadlockError, errors.OpError) as error:
            if isinstance(error, DeadlockError) or cluster.now() >= PATIENCE:
                raise _endless("The program waits forever.", seen._replace(waits=True), queues) from None
            return _raised(seen, error)
        if cluster.now() >= PATIENCE:
            raise _endless("The program waits forever.", seen._replace(waits=True), queues)
    if not isinstance(got, list | tuple) or not all(isinstance(line, str | bytes) for line in got):
        raise Wrong(f"A list of lines is expected, not {shown(got)}.")
    if got and not any("/job:worker/" in event.device for event in queues):
        raise Wrong("No queue was used on `server`; the lines must come through one.", seen._replace(elsewhere=True))
    return seen._replace(got=[line.decode() if isinstance(line, bytes) else line for line in got])


def _written(folder: str, files: Sequence[Lines]) -> list[str]:
    """The names of the files, which are there now."""
    paths = [Path(folder, f"lines{number}.txt") for number in range(len(files))]
    for path, lines in zip(paths, files):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [str(path) for path in paths]


def _endless(message: str, seen: Seen, queues: Sequence[QueueEvent]) -> Wrong:
    """The verdict on a call without an end, by the elements that it took from queues."""
    taken: Counter[str] = Counter()
    for event in queues:
        taken[event.queue] += event.elements if event.what == "take" else 0
    seen = seen._replace(endless=True, taken=max(taken.values(), default=0))
    if seen.starved:
        message = f"{message} Nobody fills the queue."
    elif seen.insatiable:
        message = f"{message} It took more lines than should come."
    return Wrong(message, seen)


def _raised(seen: Seen, error: errors.OpError) -> Seen:
    """The evidence after an error; Wrong unless it is the error of the missing file."""
    seen = seen._replace(error=type(error))
    if not (seen.missing and isinstance(error, errors.NotFoundError)):
        expected = "; expected: the NotFoundError of the missing file" if seen.missing else ""
        first = str(error.message).splitlines()[0].rstrip(".")
        raise Wrong(f"It raised {type(error).__name__}: {first}{expected}.", seen)
    return seen


def demand_lines(answer: Any, files: Sequence[Lines], epochs: int) -> None:
    """Wrong unless every line comes as often as there are epochs."""
    seen = run(answer, files, epochs)
    expected = Counter({line: count * epochs for line, count in seen.once.items()})
    got = Counter(seen.got)
    if got == expected:
        return
    line = next(line for line in [*expected, *got] if got[line] != expected[line])
    raise Wrong(
        f"From {plural(len(files), 'file')} in {plural(epochs, 'epoch')}, {plural(expected.total(), 'line')} should "
        f"come; {got.total()} came. {line!r} came {plural(got[line], 'time')}, not {expected[line]}.",
        seen,
    )


def _files(random: Random, lengths: Sequence[int]) -> list[Lines]:
    return [[f"file {f} line {i} {random.randrange(10**6)}" for i in range(length)] for f, length in enumerate(lengths)]


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Every line comes once per epoch", points=4, seconds=_CHECK_SECONDS)
def complete(answer: Any, random: Random) -> None:
    lengths = [random.randint(1, 9), 0, random.randint(10, 15), random.randint(2, 6)]
    demand_lines(answer, _files(random, lengths), random.randint(2, 3))


@q1.check("One epoch, one file, one line", points=2, seconds=_CHECK_SECONDS)
def small(answer: Any, random: Random) -> None:
    for lengths in ([random.randint(3, 20)], [1], [1, 1, 1]):
        demand_lines(answer, _files(random, lengths), 1)


@q1.check("If a file is missing, its error is raised", points=4, seconds=_CHECK_SECONDS)
def missing(answer: Any, random: Random) -> None:
    seen = run(answer, _files(random, [3, 4, 2]), random.randint(1, 2), missing=True)
    if seen.error is None:
        observed = f"One of 4 files is missing. The program returned {plural(len(seen.got), 'line')}"
        raise Wrong(f"{observed}, as if all were well; it should raise a NotFoundError.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def reads_elsewhere(seen: Seen) -> bool:
    """The files are read next to the cluster: by Python itself, or in a session of another place. Read them with
    tf.TextLineReader, and make the session with tf.Session(server)."""
    return seen.elsewhere


@q1.mistake()
def forgets_to_start(seen: Seen) -> bool:
    """Nobody starts the queue runners: the queue stays empty, and a dequeue blocks forever.
    tf.train.start_queue_runners(sess, coordinator) starts their threads."""
    return seen.starved


@q1.mistake()
def reads_forever(seen: Seen) -> bool:
    """The files are read again and again, and nobody ever closes the queue of their names: without num_epochs,
    string_input_producer goes on forever. With num_epochs=epochs it closes its queue, and the others close in turn."""
    return seen.insatiable


@q1.mistake()
def asks_nobody_to_stop(seen: Seen) -> bool:
    """An answer without an end usually waits for somebody whom nobody asks to stop. A queue that is closed and empty
    raises OutOfRangeError: leave the loop there. Then coordinator.request_stop(), and only then
    coordinator.join(threads). coordinator.should_stop() is True after a request_stop() only."""
    return seen.endless


@q1.mistake()
def forgets_local_variables(seen: Seen) -> bool:
    """A variable has no value: string_input_producer counts its epochs in a local variable. Run
    tf.local_variables_initializer() before the queue runners start."""
    return seen.error is errors.FailedPreconditionError


@q1.mistake()
def swallows_errors(seen: Seen) -> bool:
    """A thread that reads has failed, and no error was raised: its queue was closed, which looks like the end.
    coordinator.join(threads) raises the error of the thread. It must be reached, and not be caught."""
    return seen.missing and seen.error is None


@q1.mistake()
def one_epoch_only(seen: Seen) -> bool:
    """Each line came once, though there are more epochs. Give num_epochs to string_input_producer."""
    return seen.epochs > 1 and Counter(seen.got) == seen.once


@q1.mistake()
def loses_the_end(seen: Seen) -> bool:
    """Lines at the end are missing. A batch that is not full any more is lost with dequeue_many, and so is what is in
    the queue if you stop before it is empty. Take until OutOfRangeError; dequeue_up_to gives smaller batches."""
    return len(seen.got) < seen.once.total() * seen.epochs
