"""The magics about state and traffic: variables and their tasks, queues, calls, stale gradients."""

from __future__ import annotations

import contextlib
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from dtflab import viz
from dtflab.cluster.cluster import Cluster
from dtflab.graph import default_stacks
from dtflab.machine.watch import Watch, watch
from dtflab.notebook.arguments import argument, magic, split
from dtflab.notebook.magics import DtfMagics, drawn
from dtflab.runtime.session import BaseSession, last_session
from dtflab.train.replicas.staleness_log import StalenessLog, log_at
from dtflab.virtual.deadlock import DeadlockError
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.live import Redrawn

_HELD = argument("held", nargs="?", help="a cluster or session, a Python expression (default: the newest session)")


@magics_class
class StateMagics(Magics):
    """The magics vars, queues, wire, staleness; their lines are read as those of `DtfMagics`."""

    def __init__(self, shell: Any, lines: DtfMagics) -> None:
        super().__init__(shell)
        self._lines = lines

    @magic
    @_HELD
    @no_var_expand
    @line_magic
    def dtf_vars(self, line: str) -> Picture:
        """Draw which task holds which variable: bytes per device, a segment for each variable.

        %dtf_vars             of the tasks that the newest session reaches
        %dtf_vars cluster     of all tasks of a cluster
        """
        return drawn(viz.variables, self._held(line, self.dtf_vars))

    @magic
    @argument(
        "held",
        nargs="?",
        help="a cluster or session, what a tf.watch() saw, or a deadlock's error (default: the newest session)",
    )
    @argument("--live", action="store_true", help="keep drawing them while other cells run and they are in sight")
    @no_var_expand
    @line_magic
    def dtf_queues(self, line: str) -> Picture | Redrawn:
        """Draw how full queues are, and who waits for whom: now, or while they were watched.

        %dtf_queues           as they are now, on the tasks that the newest session reaches
        %dtf_queues cluster   as they are now, on all tasks of a cluster
        %dtf_queues seen      their history: with tf.watch() as seen: …
        %dtf_queues --live    as they are now, and as they are while the next cells run
        %dtf_queues error     the deadlock that virtual time found: except tf.errors.InternalError as error: …
        """
        held = self._held(line, self.dtf_queues, Watch, DeadlockError)
        if isinstance(held, DeadlockError):
            return drawn(viz.waits, held)
        if isinstance(held, Watch):
            return drawn(viz.queues, held)
        if "live" in split(self.dtf_queues, line):
            return viz.live(lambda: viz.queues_now(held)).follow()
        with contextlib.suppress(NotImplementedError):  # nobody says who waits
            waiting = viz.waits(held)
            display(waiting) if waiting.tables else None
        return drawn(viz.queues_now, held)

    @magic
    @argument("fetches", nargs="*", help="what to run once and watch: Python, or names; or what a tf.watch() saw")
    @argument("--feed", help="feed_dict for that run, a Python expression")
    @argument("--step", help="of a watch: only the step with this number, from 1; -1 is the last")
    @argument("--session", help="the session, a Python expression (default: the default session, or the newest one)")
    @no_var_expand
    @line_magic
    def dtf_wire(self, line: str) -> Picture:
        """Draw which task called which: run something once and show its calls, or show those of a watch.

        %dtf_wire train --feed {images: x, labels: y}
        %dtf_wire seen --step -1
        """
        texts, example = split(self.dtf_wire, line), self.dtf_wire.example
        what, lines = self._lines._fetches(texts), self._lines
        if what is None:
            raise UsageError(f"Name the fetches to run, or the result of a tf.watch(). For example: {example}")
        if isinstance(what, Watch):
            return drawn(viz.wire, what, _number(texts.get("step")))
        if "step" in texts:
            raise UsageError("--step chooses a step of a watch, not of a line. For example: %dtf_wire seen --step -1")
        session, feed = lines._session(texts, example, what), lines._feed(texts)
        with watch() as seen:
            session.run(what, feed)
        return drawn(viz.wire, seen)

    @magic
    @argument("log", nargs="?", help="a StalenessLog or an optimizer, in Python (default: the log on the cluster)")
    @argument("--name", help="the name of its StalenessOptimizer (default: staleness)")
    @argument("--where", help="the device of its global step (default: /job:ps/task:0)")
    @argument("--session", help="the session whose cluster is asked (default: the default session, or the newest one)")
    @no_var_expand
    @line_magic
    def dtf_staleness(self, line: str) -> Picture:
        """Draw how old the gradients of a training were: a histogram, and each of them over time.

        %dtf_staleness              the log that a StalenessOptimizer keeps on the cluster of the newest session
        %dtf_staleness optimizer    that of one optimizer
        %dtf_staleness log          one that was read before
        """
        texts = split(self.dtf_staleness, line)
        given = self._lines._value(texts.get("", ""))
        if isinstance(given, StalenessLog):
            return drawn(viz.staleness, given)
        session = self._lines._session(texts, "%dtf_staleness", None)
        if given is not None:
            if not hasattr(given, "read"):
                kind = type(given).__name__
                raise UsageError(f"{texts['']} is neither a StalenessOptimizer nor the log of one, but a {kind}.")
            return drawn(lambda: viz.staleness(given.read(session)))
        target = session.sess_str.decode()
        if not target:
            raise UsageError("The newest session has no cluster. Name the optimizer: %dtf_staleness optimizer")
        where, name = texts.get("where", "/job:ps/task:0"), texts.get("name", "staleness")
        return drawn(lambda: viz.staleness(_noted(target, where, name)))

    def _held(self, line: str, magic: Any, *kinds: type) -> Any:
        """The cluster or session, or object of `kinds`, that a line names; else the newest session or only cluster."""
        texts = split(magic, line)
        if texts[""]:
            held = self._lines._value(texts[""])
            if not isinstance(held, (Cluster, BaseSession, *kinds)):
                what = " nor ".join(("neither a cluster", "a session", *(f"a {kind.__name__}" for kind in kinds)))
                raise UsageError(f"{texts['']} is {what}, but a {type(held).__name__}. For example: {magic.example}")
            return held
        found = default_stacks.get_default_session() or last_session()
        if found is None and len(self._lines.clusters) == 1:
            (found,) = self._lines.clusters.values()
        if found is None:
            raise UsageError(f"No session is open. Name what to look at, for example: {magic.example}")
        return found


def _noted(target: str, where: str, name: str) -> StalenessLog:
    """The log of a training on a cluster; UsageError, which names the magic's options, if it is empty."""
    log = log_at(target, where, name)
    if not len(log):
        raise UsageError(
            f"No gradient was recorded on {where} under the name {name!r}. Has the training begun? If so, "
            "--name must name its StalenessOptimizer, and --where the device of its global step."
        )
    return log


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise UsageError(f"--step {text}? Give the number of a step, from 1; -1 is the last.") from None
