"""StalenessLog: the worth of each gradient: its worker, the step of its variables, the update that used it.

Stands for nothing in TensorFlow 1. While the training runs, the rows are elements of a queue that stands next to the
global step; so they outlive sessions, are shared by all workers, and every client that can reach the task can read
them.

Rule: reading changes nothing: in one step, which Ctrl-C can't stop halfway, the rows are taken out and put back. A
queue that holds `keep` rows drops its oldest ones before it takes new ones.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, device, name_scope
from dtflab.machine.clock import CURRENT, Event
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math
from dtflab.ops.queues.functions import FIFOQueue
from dtflab.ops.summaries.functions import timestamp
from dtflab.protos.summary_pb2 import HistogramProto, Summary
from dtflab.runtime.session import Session

_GRACE = 2.0  # seconds, for a reading step to end after Ctrl-C
COLUMNS = ("worker", "computed", "arrived", "seconds", "used", "aggregated")


@dataclass(frozen=True)
class StalenessLog:
    """One entry per gradient, in the order in which they arrived at the parameter servers.

    `worker` computed it from the variables of global step `computed`; it arrived at step `arrived`, `seconds` after the
    first one, and was `used` or dropped. All are arrays `[gradients]`.
    """

    worker: NDArray[np.int64]
    computed: NDArray[np.int64]
    arrived: NDArray[np.int64]
    seconds: NDArray[np.float64]
    used: NDArray[np.bool_]

    @staticmethod
    def of_rows(rows: NDArray[np.float64]) -> StalenessLog:
        """From rows of COLUMNS, as the queue holds them: what comes while somebody reads stands before the rest."""
        rows = rows[np.argsort(rows[:, 3], kind="stable")]
        worker, computed, arrived = rows[:, :3].T.astype(np.int64)
        seconds = rows[:, 3] - rows[0, 3] if len(rows) else rows[:, 3]
        used = (rows[:, 4] > 0) & _within(computed, rows[:, 5])
        # A gradient that comes during an update comes before the step is counted, and too late.
        arrived = np.where((rows[:, 5] > 0) & ~used, np.maximum(arrived, computed + 1), arrived)
        return StalenessLog(worker, computed, arrived, seconds, used)

    @property
    def staleness(self) -> NDArray[np.int64]:
        """int64 `[gradients]`: how many steps were applied between the reading of the variables and the arrival."""
        return self.arrived - self.computed

    @property
    def workers(self) -> list[int]:
        """The workers from which there are gradients, in order."""
        return [int(worker) for worker in np.unique(self.worker)]

    @property
    def dropped(self) -> int:
        """How many gradients came for nothing."""
        return int(np.count_nonzero(~self.used))

    def of(self, worker: int) -> StalenessLog:
        """The part of one worker: its trace."""
        own = self.worker == worker
        return StalenessLog(*(getattr(self, name)[own] for name in self.__dataclass_fields__))

    def mean(self) -> float:
        """The mean staleness of all gradients; NaN if there are none."""
        return float(self.staleness.mean()) if len(self) else float("nan")

    def histogram(self) -> NDArray[np.int64]:
        """int64 `[largest staleness + 1]`: how many gradients were 0, 1, 2, … steps old."""
        return np.bincount(self.staleness).astype(np.int64)

    def summary(self, tag: str = "staleness") -> Summary:
        """For TensorBoard: a histogram over all gradients, and each worker's mean; `writer.add_summary(…, step)`."""
        values = [Summary.Value(tag=tag, histo=_histogram_proto(self.staleness))] if len(self) else []
        means = {f"{tag}/worker_{worker}": self.of(worker).mean() for worker in self.workers}
        return Summary(value=[*values, *(Summary.Value(tag=name, simple_value=mean) for name, mean in means.items())])

    def __len__(self) -> int:
        return len(self.worker)

    def __repr__(self) -> str:
        return (
            f"<StalenessLog: {len(self)} gradients of {len(self.workers)} workers, mean staleness {self.mean():.2f}, "
            f"{self.dropped} dropped>"
        )


def _within(computed: NDArray[np.int64], aggregated: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True for the first `aggregated` gradients of a step, which accumulators sum; everywhere without accumulators."""
    order = np.argsort(computed, kind="stable")
    _, first, counts = np.unique(computed[order], return_index=True, return_counts=True)
    rank = np.empty(len(computed), np.int64)
    rank[order] = np.arange(len(computed)) - np.repeat(first, counts)
    return (aggregated == 0) | (rank < aggregated)


def _histogram_proto(staleness: NDArray[np.int64]) -> HistogramProto:
    """One bucket for each whole number, up to and including it."""
    counts, values = np.bincount(staleness), staleness.astype(np.float64)
    return HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=np.square(values).sum(),
        bucket_limit=[float(limit) for limit in range(len(counts))], bucket=[float(count) for count in counts],
    )  # fmt: skip


class LogQueue:
    """The queue of a training's log, in the default graph. One `name` on one device: one queue, for all graphs.

    What makes operations is called where these belong: on the device of the global step.
    """

    def __init__(self, keep: int, name: str = "staleness") -> None:
        self._keep = keep
        with name_scope(""):
            self._queue = FIFOQueue(-1, dtypes.float64, [[len(COLUMNS)]], shared_name=f"{name}_log", name=f"{name}_log")

    def add(self, worker: int, computed: Tensor, arrived: Tensor, used: Tensor, aggregated: int) -> Operation:
        """Note one gradient, now."""
        with control_dependencies([arrived.op]):
            now = timestamp()
        row: Sequence[Any] = (float(worker), computed, arrived, now, used, float(aggregated))
        too_many = math.maximum(self._queue.size() - self._keep + 1, 0)
        with control_dependencies([self._queue.dequeue_many(too_many)]):
            return self._queue.enqueue(arrays.stack(row))

    def read(self) -> Tensor:
        """All rows, float64 `[n, 6]`; they stay."""
        rows: Tensor = self._queue.dequeue_many(self._queue.size())
        with control_dependencies([self._queue.enqueue_many(rows)]):
            kept: Tensor = arrays.identity(rows)
        return kept


def read_staleness(target: str, where: str = "/job:ps/task:0", name: str = "staleness") -> StalenessLog:
    """The log of a training by StalenessOptimizer, from outside of its programs, while it runs or later.

    `target` is a session target of the cluster, `where` the device of the global step, `name` that of the optimizer.
    ValueError if there is no gradient in it.
    """
    log = log_at(target, where, name)
    if not len(log):
        raise ValueError(
            f"no gradient was recorded on {where} under the name {name!r}. Has the training begun? If so, "
            "name= must name its StalenessOptimizer, and where= the device of its global step."
        )
    return log


def log_at(target: str, where: str = "/job:ps/task:0", name: str = "staleness") -> StalenessLog:
    """The log that `read_staleness` reads; it may be empty."""
    with Graph().as_default(), device(where):
        rows = LogQueue(keep=1, name=name).read()
        with Session(target) as session:
            return log_of(session, rows)


def log_of(session: Session, rows: Tensor) -> StalenessLog:
    """The log, whose rows `session` reads on a separate thread: Ctrl-C, which only the main thread sees, waits."""
    if threading.current_thread() is not threading.main_thread():
        return StalenessLog.of_rows(session.run(rows))
    done, outcome = CURRENT.event(), Future[NDArray[np.float64]]()
    try:
        CURRENT.spawn(_run, session, rows, outcome, done, name="reader of a log")
        done.wait()
    except KeyboardInterrupt:
        done.wait(_GRACE)
        raise
    return StalenessLog.of_rows(outcome.result())


def _run(session: Session, rows: Tensor, outcome: Future[NDArray[np.float64]], done: Event) -> None:
    try:
        outcome.set_result(session.run(rows))
    except BaseException as error:  # for the waiting thread
        outcome.set_exception(error)
    finally:
        done.set()
