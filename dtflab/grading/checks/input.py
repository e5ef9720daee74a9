"""Questions on input pipelines.

q1: read all lines of some files with a coordinator and queue runners. An answer is called with files that the checks
have written, on a simulated cluster, where a pipeline that waits forever is reported at once. How it is built is up to
the answer: what counts are the lines that come out, that ops there read them and threads put them into a queue there,
and what happens when a file is missing.
"""

from __future__ import annotations

import functools
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.events import NodeRan, QueueEvent
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading import watchdog
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import NotJudged, Wrong, from_toml
from dtflab.graph.graph import Graph
from dtflab.graph.scopes import get_default_graph
from dtflab.machine.watch import watch
from dtflab.virtual.deadlock import DeadlockError

Lines = Sequence[str]
SECONDS = 4.0  # for a call; right answers need a tenth of it, on a busy machine half if their threads are their own
_CHECK_SECONDS = 6.5  # for a check: to stop a call that never ends takes seconds, too, on a busy machine
PATIENCE = 300.0  # virtual seconds: a pipeline that has not ended by then waits forever; one needs milliseconds

READS = ("ReaderRead", "ReadFile")  # how the types of ops begin that read files

q1 = from_toml(__file__)


# -- what is watched -----------------------------------------------------------------------------------------


class Passed(NamedTuple):
    """The elements that passed through the queue of lines, and the names of files that were put into another queue.

    What an op took and gave back, because it did not get all that it wanted, is not `taken`. `by_hand`: a thread took
    what it had put itself. `before` were put before anything was taken.
    """

    put: int = 0
    taken: int = 0
    names: int = 0
    by_hand: bool = False
    before: int = 0


class Readers:
    """Listens for ops of the worker that read files."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def on_node(self, ran: NodeRan) -> None:
        if "/job:worker/" in ran.device and ran.node.op.startswith(READS):
            self.names.add(ran.node.name)


def passed(queues: Sequence[QueueEvent], readers: Collection[str]) -> Passed:
    """The traffic through the queue of lines: of those from which no reader takes, the one from which most was taken.

    If nothing was taken, it is the one into which most was put.
    """
    put, taken, before = Counter[str](), Counter[str](), Counter[str]()
    putting, taking = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    some = Counter[tuple[str, str]]()  # taken by an op that wants more
    for event in queues:
        op = (event.client, event.op)
        if event.what == "put":
            put[event.queue] += event.elements
            before[event.queue] += 0 if taking[event.queue] else event.elements
            putting[event.queue].add(event.client)
        elif event.what == "take":
            some[op] += event.elements
            taking[event.queue].add(event.client)
            taken[event.queue] += some.pop(op) if event.over else 0
        elif event.what == "end":
            some.pop(op, None)
    named = {event.queue for event in queues if event.op in readers or READS[0] in event.op}
    most = [queue for queue, _ in (*taken.most_common(), *put.most_common()) if queue not in named]
    lines, names = most[0] if most else "", sum(put[queue] for queue in named)
    return Passed(put[lines], taken[lines], names, bool(putting[lines] & taking[lines]), before[lines])


# -- a run ---------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The answer's elements: the evidence. `error` is the exception that it raised."""

    files: Sequence[Lines]
    epochs: int
    missing: bool  # one of the files
    folder: bool = False  # that is there, and a folder
    got: Sequence[str] = ()
    error: BaseException | None = None
    elsewhere: bool = False  # no op of the cluster has read a file, or no queue of it was used
    unqueued: bool = False  # what came was in no queue
    waits: bool = False  # forever
    endless: bool = False  # that, or it was stopped
    passed: Passed = Passed()
    callers_graph: bool = False  # was built in

    @property
    def once(self) -> Counter[str]:
        """The lines of one epoch."""
        return Counter(line for lines in self.files for line in lines)

    @property
    def total(self) -> int:
        """The number of lines that should come."""
        return self.once.total() * self.epochs

    @property
    def starved(self) -> bool:
        """Whether the answer waits for a first element that nobody will bring."""
        return self.waits and not self.passed.put

    @property
    def insatiable(self) -> bool:
        return self.endless and self.passed.taken > self.total


def run(answer: Any, files: Sequence[Lines], epochs: int, missing: bool = False, folder: bool = False) -> Seen:
    """Let the answer read files; Wrong for an error that is not about the missing file, and if it never ends."""
    seen, readers = Seen(files, epochs, missing, folder), Readers()
    with watch(readers) as watched:
        outcome = watchdog.call(functools.partial(_read, answer, seen, watched.queues, readers), SECONDS)
    seen = seen._replace(passed=passed(watched.queues, readers.names))
    if outcome.starved:
        raise NotJudged
    if outcome.stopped:
        message = f"Stopped after {SECONDS:g} s: read_all does not come to an end."
        raise _endless(message + outcome.deaf, seen)
    if outcome.error is not None:
        raise outcome.error
    found: Seen = outcome.value
    return found


def _read(answer: Any, seen: Seen, queues: Sequence[QueueEvent], readers: Readers) -> Seen:
    """Call the answer on a cluster of its own, whose `queues` and `readers` are watched."""
    with tempfile.TemporaryDirectory() as folder, Cluster(clock="virtual", worker=1) as cluster:
        names = _written(folder, seen.files)
        names.insert(1, folder if seen.folder else str(Path(folder, "missing.txt"))) if seen.missing else None
        cluster.at(PATIENCE, cluster.stop)
        try:
            with Graph().as_default() as graph:
                got = answer(cluster.target, names, seen.epochs)
                _demand_own_graph(graph, seen)
        except (DeadlockError, errors.OpError) as error:
            seen = seen._replace(passed=passed(queues, readers.names))
            if isinstance(error, DeadlockError) or cluster.now() >= PATIENCE:
                raise _endless("The program waits forever.", seen._replace(waits=True)) from None
            return _raised(seen, error, queues)
        seen = seen._replace(passed=passed(queues, readers.names))
        if cluster.now() >= PATIENCE:
            raise _endless("The program waits forever.", seen._replace(waits=True))
    if not isinstance(got, list | tuple) or not all(isinstance(line, str | bytes) for line in got):
        raise Wrong(f"A list of lines is expected, not {shown(got)}.")
    if got:
        _demand_means(seen, got, queues, readers)
    return seen._replace(got=[line.decode() if isinstance(line, bytes) else line for line in got])


def _demand_own_graph(graph: Graph, seen: Seen) -> None:
    """Wrong if the caller's graph is not what it was: nothing was in it."""
    if get_default_graph() is not graph or graph.get_operations():
        message = "read_all has built in the default graph of its caller, or replaced it; expected: a graph of its own."
        raise Wrong(message, seen._replace(callers_graph=True))


def _demand_means(seen: Seen, got: Sequence[Any], queues: Sequence[QueueEvent], readers: Readers) -> None:
    """Wrong unless the lines were read there, and came through a queue there that other threads filled."""
    if not any("/job:worker/" in event.device for event in queues):
        raise Wrong("No queue was used on `server`; the lines must come through one.", seen._replace(elsewhere=True))
    if not readers.names:
        message = "No op on `server` has read a file: the lines must be read there, by a tf.TextLineReader."
        raise Wrong(message, seen._replace(elsewhere=True))
    if not seen.passed.taken:
        message = "What came was in no queue: the program ran the reader itself. Threads must read ahead, into a queue."
        raise Wrong(message, seen._replace(unqueued=True))
    if seen.passed.taken < len(got):
        taken = plural(seen.passed.taken, "element")
        raise Wrong(f"{len(got)} lines came, of {taken} that were taken from the queue; expected: one for each.", seen)
    if seen.passed.by_hand:
        raise Wrong("One thread has put lines into the queue and taken them from it; others must read meanwhile.", seen)


def _written(folder: str, files: Sequence[Lines]) -> list[str]:
    """The names of the files, which are there now."""
    paths = [Path(folder, f"lines{number}.txt") for number in range(len(files))]
    for path, lines in zip(paths, files):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [str(path) for path in paths]


def _endless(message: str, seen: Seen) -> Wrong:
    """The verdict on a call without an end."""
    seen = seen._replace(endless=True)
    if seen.starved:
        message = f"{message} Nobody fills the queue."
    elif seen.insatiable:
        message = f"{message} It took more lines than should come."
    return Wrong(message, seen)


def _raised(seen: Seen, error: errors.OpError, queues: Sequence[QueueEvent]) -> Seen:
    """The evidence after an error; Wrong unless it is that of the file that can't be read, which a thread has met."""
    seen = seen._replace(error=error)
    kind = errors.FailedPreconditionError if seen.folder else errors.NotFoundError
    if not (seen.missing and isinstance(error, kind)):
        what = f"a file that is a folder, a {kind.__name__}" if seen.folder else "the missing file, a NotFoundError"
        expected = f"; expected: the error of the thread that met {what}" if seen.missing else ""
        first = str(error.message).splitlines()[0].partition(". ")[0].rstrip(".")
        raise Wrong(f"It raised {type(error).__name__}: {first}{expected}.", seen)
    if len({event.client for event in queues}) < 2:
        message = "No thread was reading when the error came; the files must be read by threads, through a queue."
        raise Wrong(message, seen._replace(elsewhere=True))
    return seen


def demand_lines(answer: Any, files: Sequence[Lines], epochs: int) -> Seen:
    """The evidence; Wrong unless every line comes as often as there are epochs."""
    seen = run(answer, files, epochs)
    expected = _times(seen.once, epochs)
    got = Counter(seen.got)
    if got == expected:
        return seen
    line = next(line for line in [*expected, *got] if got[line] != expected[line])
    raise Wrong(
        f"From {plural(len(files), 'file')} in {plural(epochs, 'epoch')}, {plural(expected.total(), 'line')} should "
        f"come; {got.total()} came. {line!r} came {plural(got[line], 'time')}, not {expected[line]}.",
        seen,
    )


def _files(random: Random, lengths: Sequence[int]) -> list[list[str]]:
    return [[f"file {f} line {i} {random.randrange(10**6)}" for i in range(length)] for f, length in enumerate(lengths)]


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Every line comes once per epoch", points=4, seconds=_CHECK_SECONDS)
def complete(answer: Any, random: Random) -> None:
    first, second = random.randint(1, 9), random.randint(10, 15)
    rest = random.choice([prime for prime in (29, 31, 37) if prime > first + second]) - first - second
    files = _files(random, [first, 0, second, rest])  # no batches but those of 3 are all full
    files[2][random.randint(1, 8)] = ""  # a line, too
    files[3][0] = files[2][0] = files[0][0]  # and so is one that was there before
    files[2][9] = '  "é",  '
    seen = demand_lines(answer, files, 3)
    if reads_all_first(seen):
        raise Wrong(f"All {seen.total} lines were in the queue before the first was taken from it.", seen)


@q1.check("One epoch, one file, one line", points=2, seconds=_CHECK_SECONDS)
def small(answer: Any, random: Random) -> None:
    for lengths in ([random.randint(3, 20)], [1], [1, 1, 1]):
        demand_lines(answer, _files(random, lengths), 1)


@q1.check("If a file is missing, or can't be read, its error is raised", points=4, seconds=_CHECK_SECONDS)
def missing(answer: Any, random: Random) -> None:
    for folder in (False, True):
        seen = run(answer, _files(random, [3, 4, 2]), random.randint(1, 2), missing=True, folder=folder)
        if seen.error is None:
            observed = f"One of 4 files is {'a folder' if folder else 'missing'}. The program returned"
            expected = f"it should raise a {'FailedPrecondition' if folder else 'NotFound'}Error"
            raise Wrong(f"{observed} {plural(len(seen.got), 'line')}, as if all were well; {expected}.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def builds_in_the_callers_graph(seen: Seen) -> bool:
    """The ops are in the default graph of the caller, whatever that holds, and a second call finds those of the first.
    Make a graph for each call: with tf.Graph().as_default()."""
    return seen.callers_graph


@q1.mistake()
def reads_elsewhere(seen: Seen) -> bool:
    """The files are read, or looked for, next to the cluster: by Python itself, or in a session of another place. Read
    them with tf.TextLineReader, and make the session with tf.Session(server)."""
    return seen.elsewhere


@q1.mistake()
def reads_by_itself(seen: Seen) -> bool:
    """The program runs the reader itself, one line after the other: nobody reads ahead while it works. Put the lines
    into a queue, fill it by a tf.train.QueueRunner, whose threads run the reader, and take the lines from there."""
    return seen.unqueued


@q1.mistake()
def makes_an_error_of_its_own(seen: Seen) -> bool:
    """Whatever a thread has met, the program raises a NotFoundError. There are other reasons why a file can't be read:
    let coordinator.join(threads) raise the error of the thread."""
    return seen.folder and isinstance(seen.error, errors.NotFoundError)


@q1.mistake()
def puts_and_takes(seen: Seen) -> bool:
    """The program itself puts lines into the queue, and then takes them out again: a detour, in which nobody reads
    ahead. Give the enqueue op to a tf.train.QueueRunner, whose threads run it meanwhile."""
    return not seen.endless and not seen.error and seen.passed.by_hand


@q1.mistake()
def reads_all_first(seen: Seen) -> bool:
    """Nobody takes a line until all are in the queue: then it must be as large as all files together, and the program
    is idle while they are read. Take lines right after the threads were started, and join the threads at the end."""
    return Counter(seen.got) == _times(seen.once, seen.epochs) and seen.passed.before == seen.passed.put == seen.total


@q1.mistake()
def forgets_to_start(seen: Seen) -> bool:
    """Nobody starts the queue runners: the queue stays empty, and a dequeue blocks forever.
    tf.train.start_queue_runners(sess, coordinator) starts their threads."""
    return seen.starved


@q1.mistake()
def reads_forever(seen: Seen) -> bool:
    """The files are read again and again, and nobody ever closes the queue of their names. Without num_epochs,
    string_input_producer goes on forever. With num_epochs=epochs it closes its queue, and the others close in turn."""
    return seen.insatiable


@q1.mistake()
def asks_nobody_to_stop(seen: Seen) -> bool:
    """All lines were taken, and the program waits for somebody whom nobody asks to stop. A queue that is closed and
    empty raises OutOfRangeError: leave the loop there. Then coordinator.request_stop(), and only then
    coordinator.join(threads). coordinator.should_stop() is True after a request_stop() only."""
    return seen.endless and seen.passed.taken == seen.total


@q1.mistake()
def joins_too_early(seen: Seen) -> bool:
    """Lines are in the queue, and nobody takes them: coordinator.join waits for threads that wait for room. Take the
    lines first, until OutOfRangeError."""
    return seen.endless and seen.passed.put > 0 == seen.passed.taken


@q1.mistake()
def forgets_local_variables(seen: Seen) -> bool:
    """A variable has no value: string_input_producer counts its epochs in a local variable. Run
    tf.local_variables_initializer() before the queue runners start."""
    return isinstance(seen.error, errors.FailedPreconditionError) and "epochs" in str(seen.error)


@q1.mistake()
def reads_some_files(seen: Seen) -> bool:
    """Some of the files were never opened: their names are not among those that were given out. Give all `filenames` to
    string_input_producer, also those that are not there: coordinator.join then raises their error."""
    files = Counter(line for lines in seen.files if not set(lines).isdisjoint(seen.got) for line in lines)
    whole = bool(seen.got) and Counter(seen.got) == _times(files, seen.epochs)
    return whole and 0 < seen.passed.names < seen.epochs * (len(seen.files) + seen.missing)


@q1.mistake()
def swallows_errors(seen: Seen) -> bool:
    """A thread that reads has failed, and no error was raised: its queue was closed, which looks like the end.
    coordinator.join(threads) raises the error of the thread. It must be reached, and not be caught."""
    returned = not seen.endless and not seen.elsewhere and not seen.passed.by_hand and seen.error is None
    return seen.missing and returned and seen.passed.names > len(seen.files)


@q1.mistake()
def names_files_again(seen: Seen) -> bool:
    """The names of the files are given out more often than once per epoch. All threads take names of one
    string_input_producer, which gets `filenames` as they are and num_epochs=epochs."""
    often = seen.passed.names // (seen.epochs * len(seen.files))
    return often > 1 and Counter(seen.got) == _times(seen.once, seen.epochs * often)


@q1.mistake()
def returns_no_line_twice(seen: Seen) -> bool:
    """All epochs were read, but what is returned has no line twice. Collect the lines in a list, each time they come,
    not in a set or a dict."""
    each = Counter(set(seen.once))
    return each.total() < seen.total and Counter(seen.got) == each and seen.passed.taken == seen.total


@q1.mistake()
def one_epoch_only(seen: Seen) -> bool:
    """Each line came once, though there are more epochs. Give num_epochs to string_input_producer."""
    return seen.epochs > 1 and Counter(seen.got) == seen.once and seen.passed.put == seen.once.total()


@q1.mistake()
def skips_the_first_lines(seen: Seen) -> bool:
    """The first line of each file is missing. These files have no line of headings: leave skip_header_lines out."""
    first = Counter(lines[0] for lines in seen.files if lines)
    return bool(seen.got) and Counter(seen.got) == _times(seen.once - first, seen.epochs)


@q1.mistake()
def leaves_out_empty_lines(seen: Seen) -> bool:
    """All lines came but the empty ones. An empty text counts as false in Python: `if line`, or a loop `while line`,
    takes it for none. It is a line of the file, too."""
    some = Counter({line: count for line, count in seen.once.items() if line})
    return some != seen.once and Counter(seen.got) == _times(some, seen.epochs)


@q1.mistake()
def reads_whole_files(seen: Seen) -> bool:
    """Whole files came, each with all of its lines in one element. A tf.TextLineReader reads line by line."""
    return any("\n" in line.rstrip("\n") for line in seen.got)


@q1.mistake()
def loses_the_end(seen: Seen) -> bool:
    """Lines were put into the queue, and never taken out. A batch that is not full any more is lost with dequeue_many,
    and so is what is in the queue if you stop before it is empty. Take until OutOfRangeError; dequeue_up_to gives
    smaller batches."""
    ended = not seen.endless and not seen.missing and seen.error is None
    return ended and 0 < len(seen.got) == seen.passed.taken < seen.passed.put == seen.total


def _times(lines: Counter[str], epochs: int) -> Counter[str]:
    return Counter({line: count * epochs for line, count in lines.items()})
