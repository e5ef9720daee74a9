"""Questions on queues.

q1: sentences of different lengths in padded batches, each of sentences of similar length. An answer is three things to
run: `put`, `take`, `close`. The checks put sentences whose lengths they know, take as soon as a batch must be there,
and look at what is in it; which queues there are, and which batch comes first of several, is up to the answer.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.simulated import Stage, stage
from dtflab.graph import dtypes
from dtflab.ops.arrays.functions import placeholder
from dtflab.virtual.deadlock import DeadlockError

Sentence = tuple[int, ...]
ROOM = 100  # sentences
LONG = 300  # words more than the last bound

q1 = from_toml(__file__)


# -- the rule ------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """The demand on the answer, and the sentences that go through."""

    bounds: Sequence[int]
    batch_size: int
    sentences: Sequence[Sentence]

    def kind(self, sentence: Sequence[int]) -> int:
        """How many bounds it is longer than."""
        return sum(len(sentence) > bound for bound in self.bounds)

    def text(self, kind: int) -> str:
        """`4 to 7`, the words of a kind."""
        edges = [0, *self.bounds]
        if kind == len(self.bounds):
            return f"over {edges[kind]}"
        first, last = edges[kind] + 1, edges[kind + 1]
        return f"{first} to {last}" if first < last else str(last)


class Seen(NamedTuple):
    """The batches that came out after `arrived` sentences: the evidence."""

    task: Task
    arrived: int
    batches: Sequence[Sequence[Sentence]]
    open: bool  # sentences still come
    waits: str = ""  # put, take or close, if that would wait forever
    error: str = ""  # what the session said, if that says which mistake it is
    shape: Sequence[int] = ()  # of a batch that is not a table
    too_wide: bool = False  # a batch
    more: Sequence[Sentence] = ()  # the batch that take gave of many sentences like the last one, after it had waited
    endless: bool = False  # batches come, though all sentences are out

    @property
    def sentences(self) -> list[Sentence]:
        """All that came out."""
        return [row for batch in self.batches for row in batch]

    @property
    def of_several_kinds(self) -> bool:
        """Whether the sentences that arrived are of two kinds or more. If not, a wait shows little."""
        return len({self.task.kind(one) for one in self.task.sentences[: self.arrived]}) > 1

    def one_kind(self, kind: Callable[[Sentence], int]) -> bool:
        """Whether no batch holds sentences of two kinds."""
        return all(len({kind(row) for row in batch}) <= 1 for batch in self.batches)


def drawn(random: Random, longest: int = 6, more: int = 0) -> Task:
    """Two or three bounds, and `more`; a batch of sentences of each kind and some more, mixed, only the first as long
    as its bound.

    A kind in the middle comes first: the first batch is there while those before and after it have less than one.
    """
    bounds = [3 * i + random.randint(0, 1) for i in range(1, 1 + more + random.randint(2, 3))]
    batch_size = random.randint(2, 4) + 3 * more
    edges = [0, *bounds, bounds[-1] + longest]
    kinds = [1, 0, *range(2, len(edges) - 1)]
    sentences = []
    for turn in range(len(kinds) * (batch_size + 1) + random.randrange(2)):
        kind = kinds[turn % len(kinds)]
        most = edges[kind + 1]
        length = most if turn < len(kinds) else random.randint(edges[kind] + 1, most - 1)
        sentences.append(tuple(random.randint(1, 999) for _ in range(length)))
    return Task(bounds, batch_size, sentences)


class Pipeline:
    """An answer at work on a simulated cluster."""

    def __init__(self, answer: Any, task: Task, on: Stage) -> None:
        self.task, self.open, self._on = task, True, on
        self._arrived = 0
        self._batches: list[list[Sentence]] = []
        self._sentence = placeholder(dtypes.int32, [None], name="sentence")
        made = answer(self._sentence, list(task.bounds), task.batch_size)
        if not isinstance(made, tuple | list) or len(made) != 3:
            raise Wrong(f"Three things (put, take, close) are expected, not {shown(made)}.")
        self._put, self._take, self._close = made

    def put(self, sentence: Sentence) -> None:
        self._run("put", self._put, f"with {self._arrived} sentences before it", {self._sentence: sentence})
        self._arrived += 1

    def close(self) -> None:
        self.open = False
        self._run("close", self._close, "after all sentences")

    def take(self) -> Seen:
        """One more batch. OutOfRangeError is the end."""
        some = f"though {self.task.batch_size} sentences of one kind are there"
        batch = np.asarray(self._run("take", self._take, some if self.open else "though the queues should be closed"))
        if batch.dtype == np.int32 and batch.ndim == 1:
            message = f"A batch is an int32 of shape [sentences, words], not of {list(batch.shape)}."
            raise Wrong(message, self.seen()._replace(shape=batch.shape))
        self._batches.append(rows_of(batch, self.seen()))
        return self.seen()

    def seen(self, waits: str = "", error: str = "") -> Seen:
        return Seen(self.task, self._arrived, list(self._batches), self.open, waits, error)

    def _waiting(self, what: str) -> Seen:
        """The evidence of a wait; with the batch that take gives of many sentences, if it gives one."""
        seen = self.seen(what)
        if what == "take" and self.open:
            with contextlib.suppress(DeadlockError, errors.OpError, Wrong):
                # The take that waits goes on, and has its part of them.
                for sentence in [self.task.sentences[self._arrived - 1]] * (3 * self.task.batch_size):
                    self._on.session.run(self._put, {self._sentence: sentence})
                return seen._replace(more=rows_of(np.asarray(self._on.session.run(self._take)), seen))
        return seen

    def _run(self, what: str, fetches: Any, when: str, feed: Any = None) -> Any:
        try:
            return self._on.session.run(fetches, feed)
        except DeadlockError:
            raise Wrong(f"{what} waits forever, {when}.", self._waiting(what)) from None
        except errors.InvalidArgumentError as error:
            seen = self.seen(error=error.message)
            if not (takes_by_the_sentence(seen) or forgets_the_longest(seen) or gives_no_shapes(seen)):
                raise
            raise Wrong(f"{what} fails: {error.message.splitlines()[0]}", seen) from None


def rows_of(batch: Any, seen: Seen) -> list[Sentence]:
    """The rows of a batch without padding; Wrong unless it is a table of whole numbers as wide as its longest row."""
    if batch.dtype == object:
        raise Wrong("take gives no batch. Is it the second of the three that are returned, (put, take, close)?")
    if batch.ndim != 2 or batch.dtype != np.int32:
        raise Wrong(f"A batch is an int32 of shape [sentences, words], not {batch.dtype} of {list(batch.shape)}.")
    rows = [tuple(int(word) for word in row[row != 0]) for row in batch]
    longest = max(map(len, rows), default=0)
    if batch.shape[1] != longest:
        message = f"A batch is as wide as its longest sentence, {longest} words; this one is {batch.shape[1]} wide."
        raise Wrong(message, seen._replace(too_wide=True))
    return rows


def run(answer: Any, task: Task) -> Iterator[Seen]:
    """Put all sentences, take a batch as soon as there must be one; then close, and take what is left.

    Yields what is known after each batch.
    """
    with stage(worker=1) as on:
        pipeline = Pipeline(answer, task, on)
        arrived = Counter[int]()
        for sentence in task.sentences:
            pipeline.put(sentence)
            arrived[task.kind(sentence)] += 1
            if arrived[task.kind(sentence)] % task.batch_size == 0:
                yield pipeline.take()
        pipeline.close()
        with contextlib.suppress(errors.OutOfRangeError):
            for _ in range(len(task.sentences) + 1):
                yield pipeline.take()
            seen = pipeline.seen()._replace(endless=True)
            raise Wrong("After close, batches come without end; expected: OutOfRangeError.", seen)
        yield pipeline.seen()


def demand_one_kind(seen: Seen) -> None:
    """Wrong if the last batch holds sentences of two kinds."""
    task = seen.task
    if not seen.one_kind(task.kind):
        words = ", ".join(str(len(row)) for row in seen.batches[-1])
        kinds = ", or ".join(map(task.text, range(len(task.bounds) + 1)))
        observed = f"Bounds {list(task.bounds)}: a batch holds sentences of {words} words"
        raise Wrong(f"{observed}; expected: sentences of one kind, {kinds} words.", seen)


def demand_room(answer: Any, task: Task) -> None:
    """Wrong unless 100 sentences of any one kind find room while nobody takes them, and many give a batch."""
    for kind in range(len(task.bounds) + 1):
        with stage(worker=1) as on:
            pipeline = Pipeline(answer, task, on)
            for _ in range(ROOM):
                pipeline.put(next(one for one in task.sentences if task.kind(one) == kind))
        with stage(worker=1) as on:
            alone = next(one for one in task.sentences if task.kind(one) != kind)  # too few for a batch
            many = [one for one in task.sentences if task.kind(one) == kind]
            pipeline = Pipeline(answer, task._replace(sentences=[alone, *many, *many, *many]), on)
            for sentence in pipeline.task.sentences:
                pipeline.put(sentence)
            _demand_full(pipeline.take())


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Every sentence comes out once, as it went in", points=1)
def complete(answer: Any, random: Random) -> None:
    task = drawn(random, LONG)
    *_, seen = run(answer, task)
    lost = [one for one in task.sentences if one not in seen.sentences]
    if lost or len(seen.sentences) != len(task.sentences):
        example = f"; one of {plural(len(lost[0]), 'word')} is missing: {shown(list(lost[0]))}" if lost else ""
        raise Wrong(f"{len(task.sentences)} sentences went in, {len(seen.sentences)} came out{example}.", seen)


@q1.check("A batch holds sentences between the same two bounds", points=4)
def alike(answer: Any, random: Random) -> None:
    for task in (drawn(random), drawn(random)):
        for seen in run(answer, task):
            demand_one_kind(seen)


@q1.check("While sentences come, each batch is full, and of one kind", points=3)
def full(answer: Any, random: Random) -> None:
    task = drawn(random)
    for each in (task, task._replace(bounds=task.bounds[:1]), task._replace(bounds=[]), drawn(random, more=2)):
        for seen in run(answer, each):
            _demand_full(seen)
            demand_one_kind(seen)


def _demand_full(seen: Seen) -> None:
    got, expected = len(seen.batches[-1]), seen.task.batch_size
    if got > expected or (seen.open and got < expected):
        raise Wrong(f"A batch holds {plural(got, 'sentence')}; expected: {expected}.", seen)


@q1.check("There is room for 100; after close what is left comes out, then OutOfRangeError", points=2)
def ends(answer: Any, random: Random) -> None:
    task = drawn(random)
    demand_room(answer, task)
    short = [one for one in task.sentences if task.kind(one) == 0]
    for count in (task.batch_size + 1, 1, 0):
        *_, seen = run(answer, task._replace(sentences=short[:count]))
        if len(seen.sentences) != count:
            message = f"Of {plural(count, 'sentence')} in batches of {task.batch_size}, {len(seen.sentences)} came out."
            raise Wrong(message, seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def ends_with_the_first_kind(seen: Seen) -> bool:
    """When sentences of the first kind have run out, that is taken for the end, although others are left. At the end
    take from whatever queue still holds some; only if all are empty it is over."""
    task = seen.task
    left = Counter(task.kind(one) for one in (Counter(task.sentences) - Counter(seen.sentences)).elements())
    rest = {kind: count % task.batch_size for kind, count in Counter(map(task.kind, task.sentences)).items()}
    first = rest.pop(0, 0)  # these came
    return not (seen.open or seen.waits or seen.error) and first > 0 < left.total() and left == Counter(rest)


@q1.mistake()
def gives_empty_batches(seen: Seen) -> bool:
    """At the end, batches without any sentence come, forever: the program can't know that it is over. A dequeue of a
    queue that is closed and empty raises OutOfRangeError: let take come to one."""
    return seen.endless and not any(seen.batches[-1])


@q1.mistake()
def takes_by_the_sentence(seen: Seen) -> bool:
    """take depends on `sentence`, but it is run without one. Let the queues themselves say which one it takes from: by
    their sizes."""
    return "You must feed a value for placeholder" in seen.error


@q1.mistake()
def forgets_the_longest(seen: Seen) -> bool:
    """A queue is missing: two bounds make three kinds. The last one is for sentences that are longer than all
    bounds."""
    return " is not in [0, " in seen.error


@q1.mistake()
def gives_no_shapes(seen: Seen) -> bool:
    """A queue that makes batches must know the shapes of its elements. A FIFOQueue can't pad sentences of different
    lengths; tf.PaddingFIFOQueue(capacity, [tf.int32], shapes=[[None]]) can."""
    return "require the components to have specified shapes" in seen.error


@q1.mistake()
def takes_one_sentence(seen: Seen) -> bool:
    """A batch has a row for each sentence. With dequeue(), take gives only one of them: dequeue_up_to(batch_size) gives
    several, padded to one length. With enqueue_many, each word is an element: enqueue puts in a whole sentence."""
    return len(seen.shape) == 1


@q1.mistake()
def pads_too_far(seen: Seen) -> bool:
    """A batch is wider than its longest sentence: sentences, or batches, were padded to some fixed length. With
    shapes=[[None]], a tf.PaddingFIFOQueue takes sentences as they are, and pads when it makes a batch."""
    return seen.too_wide


@q1.mistake()
def cuts_sentences(seen: Seen) -> bool:
    """Long sentences have lost their ends: they were cut to some length before they went into a queue. Put in
    `sentence` as it is."""
    longest, arrived = max(map(len, seen.sentences), default=0), seen.task.sentences[: seen.arrived]
    cut = Counter(sentence[:longest] for sentence in arrived)
    return not seen.open and Counter(seen.sentences) == cut != Counter(arrived)


@q1.mistake()
def asks_for_too_many(seen: Seen) -> bool:
    """take asks for more than batch_size sentences, and waits though a whole batch is there. A batch has batch_size of
    them: dequeue_up_to(batch_size)."""
    return any(len(batch) > seen.task.batch_size for batch in (*seen.batches, seen.more))


@q1.mistake()
def bound_off_by_one(seen: Seen) -> bool:
    """A sentence exactly as long as a bound was taken for a longer one. Up to a bound means: with it. Compare with >,
    not with >=."""

    def kind(sentence: Sentence) -> int:
        return sum(len(sentence) >= bound for bound in seen.task.bounds)

    here = Counter(map(kind, seen.task.sentences[: seen.arrived]))
    here.subtract(map(kind, seen.sentences))
    if seen.open and seen.waits == "take":
        return seen.of_several_kinds and max(here.values()) < seen.task.batch_size and len({*map(kind, seen.more)}) == 1
    return not seen.one_kind(seen.task.kind) and seen.one_kind(kind)


@q1.mistake()
def one_queue(seen: Seen) -> bool:
    """The batches are those of one queue: sentences in the order in which they came, short next to long. Make one queue
    for each kind, and choose with tf.QueueBase.from_list."""
    return not seen.one_kind(seen.task.kind) and seen.sentences == list(seen.task.sentences[: len(seen.sentences)])


@q1.mistake()
def takes_from_one_queue_only(seen: Seen) -> bool:
    """take waits for a queue that has no batch, while another one has. Look at the sizes of all queues when take runs,
    and take from the one that holds most."""
    return seen.open and seen.waits == "take" and seen.of_several_kinds


@q1.mistake()
def leaves_a_queue_open(seen: Seen) -> bool:
    """After close, take waits forever for more sentences: a queue is still open. Close each of them; tf.group makes one
    thing to run of several."""
    return not seen.open and seen.waits == "take"


@q1.mistake()
def loses_the_rest(seen: Seen) -> bool:
    """The elements left at the end are lost: dequeue_many gives a full batch or, when the queue is closed, an error.
    dequeue_up_to gives what there is."""
    full = all(len(one) == seen.task.batch_size for one in seen.batches)
    return full and not seen.open and not seen.waits and len(seen.sentences) < seen.arrived


@q1.mistake()
def too_small(seen: Seen) -> bool:
    """put waits: a queue is full. While sentences of one kind come, others may wait for long to be a batch; give each
    queue room for 100 sentences."""
    return seen.waits == "put" and seen.arrived > 0
