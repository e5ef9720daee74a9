"""Question shared/q2: rows of a table that several parameter servers hold.

The table is real variables on the ps tasks of a cluster of this process. What the answer looks up is compared with the
table, and what left the parameter servers is counted from the cluster's own record of calls: a right answer lets no
more rows travel than were asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself
from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.nn.embedding import embedding_lookup
from dtflab.ops.variables.functions import assign, global_variables_initializer
from dtflab.ops.variables.variable import Variable
from dtflab.runtime.session import Session
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.units import byte_size
from dtflab.viz.loads import loads

Find = Callable[[int], int]  # a number from that of a row
WORKER = "/job:worker/task:0"
COLUMNS = 32

q2 = from_toml(__file__)


class Case(NamedTuple):
    """A table on `tasks` parameter servers, dealt out in blocks of `block_rows` rows, and what is asked of it."""

    tasks: int
    block_rows: int
    table: np.ndarray
    ids: Sequence[int]
    shift: int = 0  # the first shard is on this task

    def server(self, shard: int) -> str:
        return f"/job:ps/task:{(shard + self.shift) % self.tasks}"

    def home(self, row: int) -> tuple[int, int]:
        """The task that holds a row, and the row's number there."""
        block = row // self.block_rows
        return block % self.tasks, block // self.tasks * self.block_rows + row % self.block_rows

    def shards(self) -> list[np.ndarray]:
        rows = range(len(self.table))
        held = [sorted((self.home(r)[1], r) for r in rows if self.home(r)[0] == t) for t in range(self.tasks)]
        return [self.table[[row for _, row in mine]] for mine in held]

    @property
    def order_of_tasks(self) -> list[int]:
        """The ids, sorted by the task that holds them."""
        return sorted(self.ids, key=lambda row: self.home(row)[0])

    def found_at(self, places: Iterable[tuple[int, int]]) -> list[int]:
        """The rows that are in these places, each a task and a number there; -1 for a place that no shard has."""
        where = {self.home(row): row for row in range(len(self.table))}
        return [where.get(place, -1) for place in places]

    def rows_of(self, task: int) -> int:
        """The number of rows that a task holds: the last block may be a short one."""
        return sum(self.home(row)[0] == task for row in range(len(self.table)))

    def first_outside(self, task: int, rows: Sequence[int]) -> tuple[int, int] | None:
        """The first of these numbers, with its place among them, that the task's shard does not have."""
        return next(((i, row) for i, row in enumerate(rows) if row >= self.rows_of(task)), None)

    def places(self, task: Find | None = None, number: Find | None = None) -> list[tuple[int, int]]:
        """The places of the ids, as `home` finds them but for another way to the task, or to the number there."""
        homes = ((row, *self.home(row)) for row in self.ids)
        return [(task(row) if task else home, number(row) if number else place) for row, home, place in homes]


class Seen(NamedTuple):
    """The rows that an answer looked up, by number (None: no such row), and the bytes that each task sent.

    If it looked for a row that a shard does not have, `outside` is its place in the list asked for and its number, and
    there is nothing else.
    """

    case: Case
    rows: Sequence[int | None] = ()
    sent: Sequence[int] = ()
    outside: tuple[int, int] | None = None
    beyond: tuple[int, int] | None = None  # such a place and number, of a task that is not there
    needs_length: bool = False  # it ends with an error if the number of ids is not known beforehand, and only then


def _draw(random: Random, tasks: int, block_rows: int, rest: int = 0) -> Case:
    """A case in which each wrong order, place or block gives other rows; an id is there twice. The tasks hold equally
    many rows, but for a `rest`, whose last row is asked for.
    """
    count = tasks * max(block_rows, 2) * random.randint(4, 6) + rest
    table = np.array([[random.random() for _ in range(COLUMNS)] for _ in range(count)], np.float32)
    while True:
        ids = [random.randrange(count) for _ in range(random.randint(6, 9))]
        case = Case(tasks, block_rows, table, [*ids, *[count - 1] * bool(rest), ids[0]])
        wrongs = [case._replace(block_rows=n).places() for n in (case.rows_of(0), 1 if block_rows > 1 else 2)]
        wrongs += [case.places(number=find) for find in (lambda row: row, lambda row: row % block_rows)]
        if block_rows > 1:
            wrongs += [case.places(lambda row: row % tasks), case.places(number=lambda row: row // tasks)]
        homes = {case.home(row)[0] for row in case.ids}
        found = {*map(tuple, (case.ids, case.order_of_tasks, *map(case.found_at, wrongs)))}
        if len(found) == 2 + len(wrongs) and len(case.ids) * tasks != count and len(homes) == tasks:
            return case


def _run(answer: Any, case: Case, is_length_known: bool = True) -> Seen:
    """Look the rows up on a cluster, from its worker."""
    with Cluster(ps=case.tasks, worker=1) as cluster, Graph().as_default() as graph:
        shards = []
        for task, rows in enumerate(case.shards()):
            with graph.device(case.server(task)):
                shards.append(Variable(np.zeros_like(rows), name=f"shard{task}"))
        with graph.device(WORKER):
            ids = placeholder(dtypes.int32, [len(case.ids) if is_length_known else None], name="ids")
            found = _built(answer, shards, ids, case)
        if not isinstance(found, Tensor):
            raise Wrong(f"lookup returned {shown(found)}; expected: a tensor, the rows of `ids` in their order.")
        with Session(cluster.target) as session:
            session.run(global_variables_initializer())
            session.run([assign(shard, rows) for shard, rows in zip(shards, case.shards())])
            before = len(cluster.calls())
            values = _looked_up(session, found, {ids: case.ids}, case)
            calls = cluster.calls()[before:]
    pulled = [call for call in calls if call.method == "RecvTensor"]  # by the worker, or by another ps task
    servers = [case.server(task).replace("ps", "ps/replica:0") for task in range(case.tasks)]
    sent = [sum(call.nbytes for call in pulled if call.target.endswith(server)) for server in servers]
    seen = Seen(case, _numbers(case, values), sent)
    if len(seen.rows) != len(case.ids):
        raise Wrong(_of_shape(case, values), seen)
    return seen


def _built(answer: Any, shards: list[Variable], ids: Tensor, case: Case) -> Any:
    """The answer's tensor; Wrong if it only works where the number of ids is known while the graph is built."""
    try:
        return by_itself(answer, list(shards), ids, case.block_rows)
    except Wrong:
        raise
    except Exception as error:
        if ids.shape[0].value is None and _works_with_a_length(answer, shards, case):
            told = f"{type(error).__name__}: {str(error).partition(chr(10))[0].rstrip('.')}"
            message = f"With ids of shape [None] lookup ends with {told}. With ids of shape [{len(case.ids)}] it works."
            raise Wrong(message, Seen(case, needs_length=True)) from error
        raise


def _works_with_a_length(answer: Any, shards: list[Variable], case: Case) -> bool:
    try:
        answer(list(shards), placeholder(dtypes.int32, [len(case.ids)], name="ids"), case.block_rows)
    except Exception:
        return False
    return True


def _looked_up(session: Session, found: Tensor, feed: Any, case: Case) -> Any:
    """The value; Wrong if a shard does not have the row that it was asked for."""
    try:
        return session.run(found, feed)
    except errors.InvalidArgumentError as error:
        if not (told := re.search(r"(indices|partitions)\[(\d+)\S*\] = (\d+) is not in \[0, \d+\)", error.message)):
            raise
        number = int(told[2]), int(told[3])
        if told[1] == "partitions":
            raise Wrong(f"There is no such parameter server: {told[0]}.", Seen(case, beyond=number)) from None
        message = f"A parameter server was asked for a row that it does not have: {told[0]}."
        raise Wrong(message, Seen(case, outside=number)) from None


def _numbers(case: Case, values: Any) -> list[int | None]:
    """Which rows of the table these are."""
    if values.ndim != 2 or values.shape[1] != COLUMNS:
        raise Wrong(_of_shape(case, values))
    known = {row.tobytes(): number for number, row in enumerate(case.table)}
    return [known.get(row.tobytes()) for row in values]


def _of_shape(case: Case, values: Any) -> str:
    expected = f"expected: one row of {COLUMNS} numbers per id, shape {[len(case.ids), COLUMNS]}"
    return f"lookup gave a tensor of shape {list(values.shape)}; {expected}."


def _demand_rows(seen: Seen) -> None:
    if list(seen.rows) != list(seen.case.ids):
        case = seen.case
        rows = ["none of the table" if row is None else str(row) for row in seen.rows]
        raise Wrong(
            f"Asked for the rows {', '.join(map(str, case.ids))} of a table of {len(case.table)}, dealt out to "
            f"{case.tasks} ps tasks in blocks of {plural(case.block_rows, 'row')}, it gave {', '.join(rows)}.",
            seen,
        )


def _picture(seen: Seen) -> Picture:
    case = seen.case
    needed = [sum(case.home(row)[0] == task for row in case.ids) * COLUMNS * 4 for task in range(case.tasks)]
    ways = {"yours": seen.sent, "the rows asked for": needed}
    return loads(
        "What leaves the parameter servers",
        {name: {case.server(t): nbytes for t, nbytes in enumerate(way)} for name, way in ways.items()},
    )


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("Blocks of one row: the rows that tf.nn.embedding_lookup finds", points=3)
def like_the_library(answer: Any, random: Random) -> None:
    for tasks in (2, 3):
        case = _draw(random, tasks, block_rows=1)
        assert list(_run(lambda shards, ids, _: embedding_lookup(shards, ids, "mod"), case).rows) == list(case.ids)
        _demand_rows(_run(answer, case))


@q2.check("Larger blocks, and a number of ids that only a step knows", points=4)
def blocks(answer: Any, random: Random) -> None:
    for tasks in (2, 3):
        rows = random.randint(2, 4)
        case = _draw(random, tasks, rows, rest=random.randrange(1, rows))  # the first shard ends with a short block
        _demand_rows(_run(answer, case, is_length_known=tasks == 2))


@q2.check("No more leaves a parameter server than the rows asked for", points=3)
def traffic(answer: Any, random: Random) -> Picture:
    seen = _run(answer, _draw(random, 3, random.randint(2, 4))._replace(shift=random.randint(1, 2)))
    _demand_rows(seen)
    rows, picture = len(seen.case.ids) * COLUMNS * 4, _picture(seen)
    if sum(seen.sent) > rows + 16 * len(seen.case.ids):  # and perhaps a place and a number with each
        observed = f"{len(seen.case.ids)} rows have {byte_size(rows)}, but {byte_size(sum(seen.sent))}"
        raise Wrong(f"{observed} left the parameter servers.", seen, picture)
    return picture


# -- mistakes ------------------------------------------------------------------------------------------------


def _found(seen: Seen, rows: Sequence[int]) -> bool:
    """Whether these are the rows that were found; -1 stands for those that no shard has."""
    return list(seen.rows) == list(rows) != list(seen.case.ids)


def _looked_at(seen: Seen, places: Sequence[tuple[int, int]]) -> bool:
    """Whether the rows were looked for in these places, each a task and a number there."""
    if seen.outside:
        asked = {here: [row for task, row in places if task == here] for here in range(seen.case.tasks)}
        return seen.outside in itertools.starmap(seen.case.first_outside, asked.items())
    return _found(seen, seen.case.found_at(places))


@q2.mistake()
def gives_each_row_once(seen: Seen) -> bool:
    """An id that is there twice has only one row in the result. A lookup gives a row for each id, as often as it is
    asked for: after tf.unique, let tf.gather with its second output repeat them."""
    return len(seen.rows) == len(set(seen.case.ids)) and set(seen.rows) == set(seen.case.ids)


@q2.mistake()
def ends_after_the_last_task(seen: Seen) -> bool:
    """Each task was given one block, and there are more blocks than tasks. After the last task comes the first one
    again: block b is on task b % len(shards)."""
    blocks = (row // seen.case.block_rows for row in seen.case.ids)
    return seen.beyond == next(((i, block) for i, block in enumerate(blocks) if block >= seen.case.tasks), ())


@q2.mistake()
def needs_a_static_length(seen: Seen) -> bool:
    """How many ids there are was taken from their static shape, where it may be unknown. A step knows it: tf.size(ids),
    or tf.shape(ids)[0]."""
    return seen.needs_length


@q2.mistake()
def knows_two_tasks(seen: Seen) -> bool:
    """The table was looked up as if two parameter servers held it, and there are more. How many there are is
    len(shards)."""
    return seen.case.tasks > 2 and _looked_at(seen, seen.case._replace(tasks=2).places())


@q2.mistake()
def forgets_the_places(seen: Seen) -> bool:
    """The rows come in the order of the tasks, not of the ids. Keep the places with them (tf.dynamic_partition of
    tf.range), and put the rows there with tf.dynamic_stitch."""
    return _found(seen, seen.case.order_of_tasks)


@q2.mistake()
def one_shard_after_the_other(seen: Seen) -> bool:
    """The first rows were looked for on the first task, the next ones on the second, as partition_strategy='div' deals
    them. But blocks go to the tasks in turn: block b is on task b % len(shards)."""
    return _looked_at(seen, seen.case._replace(block_rows=seen.case.rows_of(0)).places())


@q2.mistake()
def ignores_the_blocks(seen: Seen) -> bool:
    """Single rows were dealt out to the tasks in turn, as partition_strategy='mod' does it. Here blocks of block_rows
    rows are: the block of a row is id // block_rows."""
    return _looked_at(seen, seen.case._replace(block_rows=1).places())


@q2.mistake()
def finds_the_task_by_the_row(seen: Seen) -> bool:
    """The task was found by the number of the row, as if single rows were dealt out to the tasks in turn. Whole blocks
    are: with block = id // block_rows, the task is block % len(shards)."""
    return _looked_at(seen, seen.case.places(lambda row: row % seen.case.tasks))


@q2.mistake()
def counts_single_rows_in_the_shard(seen: Seen) -> bool:
    """The task is right, but the row's number in the shard was counted as if single rows were dealt out. A shard holds
    whole blocks: the number is block // len(shards) * block_rows + id % block_rows."""
    return _looked_at(seen, seen.case.places(number=lambda row: row // seen.case.tasks))


@q2.mistake()
def forgets_the_blocks_before(seen: Seen) -> bool:
    """The rows are those of the first block on each task. A shard has several blocks, one after the other: before a
    row's own come block // len(shards) others, of block_rows rows each."""
    return _looked_at(seen, seen.case.places(number=lambda row: row % seen.case.block_rows))


@q2.mistake()
def takes_ids_for_rows_of_a_shard(seen: Seen) -> bool:
    """The number of a row in the table was taken for its number in the shard, which has only a part of the rows. In the
    shard it is block // len(shards) * block_rows + id % block_rows."""
    return _looked_at(seen, seen.case.places(number=lambda row: row))


@q2.mistake()
def asks_everyone(seen: Seen) -> bool:
    """Each task sends a row for every id, and most are thrown away. Ask each only for the rows that it holds: cut the
    ids by task first, with tf.dynamic_partition."""
    return list(seen.rows) == list(seen.case.ids) and set(seen.sent) == {len(seen.case.ids) * COLUMNS * 4}


@q2.mistake()
def puts_together_on_a_ps(seen: Seen) -> bool:
    """The rows are put together on a parameter server, and leave a server twice: first for there, then for the worker.
    Gather where the shards are, and put the parts together outside of these blocks, on the worker."""
    found, row, more = list(seen.rows) == list(seen.case.ids), COLUMNS * 4, 16 * len(seen.rows)
    here = [sum(seen.case.home(id)[0] == task for id in seen.case.ids) for task in range(seen.case.tasks)]
    ways = [[*here[:task], len(seen.rows), *here[task + 1 :]] for task in range(seen.case.tasks)]
    return found and any(all(0 <= got - row * n <= more for got, n in zip(seen.sent, way)) for way in ways)


@q2.mistake()
def sends_whole_shards(seen: Seen) -> bool:
    """Whole shards travel to another task, which then takes some rows of them. Let tf.gather run where the shard is,
    whichever task that is: with tf.device(shard.device)."""
    return list(seen.rows) == list(seen.case.ids) and sum(seen.sent) >= seen.case.table.nbytes
