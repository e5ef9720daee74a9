"""The magics of graphs and steps: thin skins over functions of the library. `%dtf_timeline?` shows the usage of one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from dtflab import viz
from dtflab.base import errors
from dtflab.base.nest import leaves
from dtflab.base.suggestions import did_you_mean
from dtflab.cluster.cluster import Cluster
from dtflab.grading import choices, grade
from dtflab.grading.catalogue import all_questions
from dtflab.graph import default_stacks, scopes
from dtflab.graph.graph import Graph
from dtflab.graph.operation import TWO_GRAPHS, Operation, Tensor
from dtflab.machine.smi import Smi, smi
from dtflab.notebook.arguments import argument, check, magic, split, words
from dtflab.protos.config_pb2 import RunMetadata, RunOptions
from dtflab.runtime.session import BaseSession, last_session
from dtflab.runtime.steps import Steps
from dtflab.viz.colouring import WAYS
from dtflab.viz.conformance import Conformance, conformance
from dtflab.viz.data.step_trace import read
from dtflab.viz.data.story import placement_of
from dtflab.viz.explain import Explanation, explain
from dtflab.viz.live import Redrawn

_Drawn = TypeVar("_Drawn")
# Arguments that several magics have.
_TRACED = argument(
    "fetches", nargs="*", help="what to run, traced: Python or names; or the RunMetadata of a traced run"
)
_FEED = argument("--feed", help="feed_dict for that run, a Python expression")
_SESSION = argument("--session", help="the session, a Python expression (default: the default one, or the newest)")
_COLOR_BY = argument("--color-by", help="device (default), job, time (of each op) or phase", values=lambda _: WAYS)


@magics_class
class DtfMagics(Magics):
    """The magics smi, placement, timeline, memory, style, grade, predict, explain, conformance, step.

    `clusters` are those of %dtf_cluster, by name.
    """

    def __init__(self, shell: Any, clusters: Mapping[str, Cluster]) -> None:
        super().__init__(shell)
        self.clusters = clusters
        self.steps: Steps | None = None

    @magic
    @argument("--period", type=float, default=0.0, help="seconds to measure GPU-Util (default: since the last call)")
    @argument("--live", action="store_true", help="keep drawing the cards while other cells run and they are in sight")
    @line_magic
    def dtf_smi(self, line: str) -> Smi | Redrawn:
        """Show all GPUs of this machine's processes, simulated or real, and the programs that hold their memory.

        %dtf_smi                  the cards of this process and of its clusters; below, those of other programs
        %dtf_smi --period 0.5     with GPU-Util of the next half second
        %dtf_smi --live           a picture of who holds what, also while the next cells run
        """
        found = words(self.dtf_smi, line)
        if found.live:
            return viz.live(lambda: viz.cards(smi())).follow()
        period = found.period
        if not 0 <= period < math.inf:
            raise UsageError(f"--period must be 0 or more seconds, not {period:g}. For example: %dtf_smi --period 0.5")
        return smi(period)

    @magic
    @argument("fetches", nargs="*", help="what to draw, with its inputs: Python or names (default: the whole graph)")
    @argument("--feed", help="feed_dict, in Python: for --color-by time, or to ask a TensorFlow server where ops are")
    @argument("--scope", help="draw only what is in this name scope")
    @argument("--max-boxes", help="about how many boxes there are at first (default: 12; up to 40 ops: a page of them)")
    @_COLOR_BY
    @_SESSION
    @no_var_expand
    @line_magic
    def dtf_placement(self, line: str) -> Any:
        """Draw the graph of a session, each op in the colour of its device, or of its job, time or phase.

        %dtf_placement                                    the whole graph
        %dtf_placement loss                               what loss needs
        %dtf_placement loss --session sess
        %dtf_placement loss --max-boxes 9                 an outline: click what you want to open
        %dtf_placement loss --scope rnn/while             the inside of one name scope
        %dtf_placement train --color-by phase             input, forward, loss, backward, update
        %dtf_placement train --color-by time --feed {x: 1.0}    runs it once, traced, to know how long each op takes

        A real TensorFlow server does not report where ops are. Then they are placed here, by the rules that dtflab's
        masters follow. With `--feed` the fetches are run once, and the partitions of that run say where they are.
        """
        texts, example = split(self.dtf_placement, line), self.dtf_placement.example
        most = _number(texts, "max-boxes", example)
        fetches, feed = self._fetches(texts), self._feed(texts)
        session = self._session(texts, example, fetches)
        by = _color_by(texts)
        step = None
        if by == "time":
            step = self._traced(texts, "%dtf_placement train --color-by time --feed {x: 1.0}", fetches)
        what, where = _placed(session, fetches, feed)
        phases = viz.phases(session.graph) if by == "phase" else None
        how = {"scope": texts.get("scope", ""), "max_boxes": most}
        return drawn(viz.placement, what, where, color_by=by, step=step, phases=phases, **how)

    @magic
    @_TRACED
    @_FEED
    @argument("--steps", help="run it that often, and draw the step whose length is the median (default: 1)")
    @_COLOR_BY
    @_SESSION
    @no_var_expand
    @line_magic
    def dtf_timeline(self, line: str) -> Any:
        """Draw what ran when: run something once, traced, or show the RunMetadata of a traced run.

        %dtf_timeline train --feed {images: x, labels: y}
        %dtf_timeline train --steps 5            of five steps the median: no step that something else held up
        %dtf_timeline run_metadata
        %dtf_timeline train --color-by phase     input, forward, loss, backward, update; or device, job, time
        """
        texts, example = split(self.dtf_timeline, line), self.dtf_timeline.example
        fetches, by = self._fetches(texts), _color_by(texts)
        step = self._traced(texts, example, fetches)
        graph = self._session(texts, example, None if step is fetches else fetches).graph if by == "phase" else None
        return drawn(viz.timeline, step, color_by=by, graph=graph)

    @magic
    @_TRACED
    @_FEED
    @_SESSION
    @no_var_expand
    @line_magic
    def dtf_memory(self, line: str) -> Any:
        """Draw how much memory each device uses in a step, and which tensors make the peak.

        %dtf_memory train --feed {images: x, labels: y}
        %dtf_memory run_metadata

        If a device runs out of memory, the picture shows how that came about; `%dtf_memory error` draws it for an
        error that was caught.
        """
        texts, example = split(self.dtf_memory, line), self.dtf_memory.example
        fetches = self._fetches(texts)
        if isinstance(fetches, errors.ResourceExhaustedError):
            return drawn(viz.memory, fetches)
        try:
            return drawn(viz.memory, self._traced(texts, example, fetches))
        except errors.ResourceExhaustedError as error:
            if error.exhausted is not None:
                display(viz.memory(error))
            raise

    def _traced(self, texts: dict[str, str], example: str, fetches: Any) -> Any:
        """The RunMetadata that a line names, or that of what it names: of several runs the median in length."""
        if fetches is None:
            raise UsageError(
                "Name what to run, traced: a tensor, an op, a list of them; or give the RunMetadata of a traced run. "
                f"For example: {example}"
            )
        if isinstance(fetches, RunMetadata):
            return fetches
        session, feed = self._session(texts, example, fetches), self._feed(texts)
        try:
            steps = [session.trace(fetches, feed) for _ in range(_number(texts, "steps", example) or 1)]
            return drawn(_median, steps) if len(steps) > 1 else steps[0]
        except errors.InvalidArgumentError as error:
            if "must feed a value" in error.message:
                error.add_note(f"The traced run is fed like this: {example}")
            raise

    @magic
    @argument("--projector", action="store_true", help="for a room: 16 pt text, 3 px lines, no thin grey")
    @argument("--default", action="store_true", help="for one reader")
    @line_magic
    def dtf_style(self, line: str) -> None:
        """Choose how all pictures from now on are drawn.

        %dtf_style --projector     for a room: large text, strong lines
        %dtf_style --default       for one reader

        The same in plain Python: dtflab.viz.style("projector"). Draw a picture again to see it in the new style.
        """
        args = words(self.dtf_style, line)
        if args.projector == args.default:
            raise UsageError("Choose one: %dtf_style --projector or %dtf_style --default")
        viz.style("projector" if args.projector else "default")

    @magic
    @argument(
        "question",
        nargs="?",
        default="",
        help="placement/q1, or just q1 (default: the questions that the notebook answers)",
        values=lambda _: [question.id for question in all_questions()],
    )
    @argument("--all", action="store_true", help="grade every question of the course")
    @argument("--hint", action="store_true", help="show a hint in place of the mark, the next one each time")
    @line_magic
    def dtf_grade(self, line: str) -> Any:
        """Grade answers of the notebook, or ask for a hint.

        %dtf_grade                   the questions whose functions you have written in the notebook
        %dtf_grade placement/q1      one question; q1 if that is enough
        %dtf_grade q1 --hint         a hint for it, a bigger one each time; the last one needs a try
        %dtf_grade --all             every question

        The same in plain Python: dtflab.grade("placement/q1").
        """
        args = words(self.dtf_grade, line)
        shell: Any = self.shell
        try:
            questions = grade.chosen(args.question, args.all, shell.user_ns)
            if args.hint and len(questions) > 1:
                names = ", ".join(question.id for question in questions)
                raise LookupError(f"A hint for which one? {names}. For example: %dtf_grade {questions[0].id} --hint")
        except LookupError as error:
            raise UsageError(str(error)) from None
        return grade.next_hint(questions[0]) if args.hint else grade.grade_all(questions, shell.user_ns)

    @magic
    @argument(
        "question",
        help="a question with letters to choose from, such as placement/q3",
        values=lambda _: [question.id for question in choices.with_choices()],
    )
    @argument("letters", nargs="*", help="the letters of all right sentences: CE, c e or C,E")
    @line_magic
    def dtf_predict(self, line: str) -> choices.Prediction:
        """Predict the answer before a run, and see what is right; it earns no points.

        %dtf_predict placement/q3 CE      the letters of all right sentences

        The same in plain Python: dtflab.predict("placement/q3", "CE").
        """
        args = words(self.dtf_predict, line)
        try:
            return choices.predict(args.question, " ".join(args.letters))
        except (LookupError, ValueError) as error:
            raise UsageError(str(error)) from None

    @magic
    @argument("fetches", nargs="*", help="what the step would fetch: Python, or names of ops and tensors")
    @argument("--feed", help="feed_dict, or a list of the tensors that would be fed, a Python expression")
    @_SESSION
    @no_var_expand
    @line_magic
    def dtf_explain(self, line: str) -> Explanation:
        """Tell the story of a step without running it: pruning, devices and why, transfers, counters, ready order.

        %dtf_explain loss --feed [images, labels]
        %dtf_explain [train, loss] --feed [images, labels]
        """
        texts, example = split(self.dtf_explain, line), self.dtf_explain.example
        fetches = self._fetches(texts)
        if fetches is None:
            raise UsageError(f"Name what the step would fetch. For example: {example}")
        session = self._session(texts, example, fetches) if "session" in texts else None
        return explain(fetches, self._value(texts.get("feed", "")), session)

    @magic
    @argument("fetches", nargs="*", help="what to run: Python, or names of ops and tensors")
    @argument("--feed", help="feed_dict for that run, a Python expression")
    @argument("--cluster", help="a cluster to use, in Python (default: one of the tasks that the graph's devices name)")
    @no_var_expand
    @line_magic
    def dtf_conformance(self, line: str) -> Conformance:
        """Run something once on dtflab and on TensorFlow's servers, and show both side by side.

        %dtf_conformance train --feed {images: x, labels: y}
        %dtf_conformance loss --cluster cluster     with the tasks of a cluster; on it if it has --engine tensorflow
        """
        texts, example = split(self.dtf_conformance, line), self.dtf_conformance.example
        fetches, cluster = self._fetches(texts), self._value(texts.get("cluster", ""))
        if fetches is None:
            raise UsageError(f"Name what to run. For example: {example}")
        if not isinstance(cluster, Cluster | None):
            raise UsageError(f"--cluster {texts['cluster']} is not a cluster but a {type(cluster).__name__}.")
        return conformance(fetches, self._feed(texts), cluster=cluster)

    @magic
    @argument("fetches", nargs="*", help="begin a step that fetches this, in Python (without it: run the next set)")
    @argument("--feed", help="feed_dict for that step, a Python expression")
    @_SESSION
    @argument("--all", action="store_true", help="run all that is left, and return the values")
    @no_var_expand
    @line_magic
    def dtf_step(self, line: str) -> Any:
        """Run a graph one set of ready nodes at a time, and see the counters fall.

        %dtf_step loss --feed {x: 1.0}      begin a step: what is ready first
        %dtf_step                           run what is ready, and nothing else
        %dtf_step --all                     run the rest; the value of loss
        """
        texts, example = split(self.dtf_step, line), self.dtf_step.example
        fetches = self._fetches(texts)
        if fetches is not None:
            session = self._session(texts, example, fetches)
            self.close_steps()
            self.steps = session.step_through(fetches, self._feed(texts))
        elif "feed" in texts or "session" in texts:
            raise UsageError(f"A step is fed when it begins. For example: {example}")
        elif self.steps is None or (self.steps.over and "all" not in texts):
            raise UsageError(f"No step is under way. Begin one: {example}")
        else:
            self.steps.next() if "all" not in texts else None
        return self.steps.finish() if "all" in texts else self.steps

    def close_steps(self) -> None:
        """Give up the step that is under way."""
        if self.steps is not None:
            self.steps.close()
            self.steps = None

    def _feed(self, texts: dict[str, str]) -> Any:
        feed = self._value(texts.get("feed", ""))
        if not isinstance(feed, Mapping | None):
            kind = type(feed).__name__
            raise UsageError(f"--feed {texts['feed']} must be a dict, not a {kind}. Feeds: --feed {{x: 1.0}}")
        return feed

    def _value(self, expression: str) -> Any:
        """The value of a Python expression in the user's namespace; None for no text."""
        shell: Any = self.shell
        try:
            return shell.ev(expression) if expression else None
        except SyntaxError as error:  # it points into this file, not into the cell
            message = f"{expression!r} is not a Python expression ({error.msg}). Feeds: --feed {{x: 1.0}}"
            raise UsageError(message) from None
        except NameError as error:
            raise UsageError(f"In {expression!r}: {error}.") from None

    def _fetches(self, texts: dict[str, str]) -> Any:
        """The fetches of a line: a Python expression, else a name in the graph, as pictures show it, else some of both.

        The graph is that of the session that is named, or the default graph. None for no text.
        """
        text = texts.get("", "")
        graph = getattr(self._value(texts.get("session", "")), "graph", scopes.get_default_graph())
        try:
            return self._value(text)
        except Exception as error:  # whatever `conv1/Conv2D` is as Python
            words = [word for word in re.split(r"[\s,]+", text.strip("[]()")) if word]
            found = [self._named(word, graph) for word in words]
            if all(one is not None for one in found):
                return found[0] if len(found) == 1 else found
            if not isinstance(error, UsageError):
                raise
            unknown = words[[one is None for one in found].index(True)]
            meant = did_you_mean(unknown, [*self._fetchable(), *(op.name for op in graph.get_operations())])
            raise UsageError(f"{error} And {unknown!r} is not an op or tensor of the graph.{meant}") from None

    def _fetchable(self) -> list[str]:
        """The user's names for ops and tensors."""
        shell: Any = self.shell
        return [name for name, value in shell.user_ns.items() if isinstance(value, Operation | Tensor)]

    def _named(self, word: str, graph: Graph) -> Any:
        """The value of a word in Python, if it can be fetched, else the op or tensor of that name; None for neither."""
        shell: Any = self.shell
        if hasattr(value := shell.user_ns.get(word), "graph"):
            return value
        try:
            return graph.as_graph_element(word)
        except (KeyError, ValueError):
            return None

    def _session(self, texts: dict[str, str], example: str, fetches: Any) -> BaseSession:
        """The session that is named, or the default one, or the newest one; it must have the graph of the fetches."""
        session = self._value(texts.get("session", "")) or default_stacks.get_default_session() or last_session()
        if session is None:
            shell: Any = self.shell
            # `_1` is `Out[1]`, not a name that somebody gave.
            named = any(isinstance(it, Cluster) and name[0] != "_" for name, it in shell.user_ns.items())
            first = "cluster = %dtf_cluster status, then " if self.clusters and not named else ""
            raise UsageError(f"No session is open. Open one: {first}sess = tf.Session(cluster.target), then {example}")
        if not isinstance(session, BaseSession):
            raise UsageError(f"--session {texts['session']} is not a session but a {type(session).__name__}.")
        if any(fetch.graph is not session.graph for fetch in leaves(fetches) if hasattr(fetch, "graph")):
            raise UsageError(f"The newest session has another graph than {texts['']}. {self._cure(texts[''], fetches)}")
        return session

    def _cure(self, what: str, fetches: Any) -> str:
        """The session of the graph of the fetches, if it has a name, or where a second graph comes from."""
        shell: Any = self.shell
        graphs = {fetch.graph for fetch in leaves(fetches) if hasattr(fetch, "graph")}
        named = (name for name, it in shell.user_ns.items() if isinstance(it, BaseSession) and {it.graph} == graphs)
        name = next((each for each in named if each[0] != "_"), "")  # `_1` is `Out[1]`, not a name that somebody gave
        return f"Name the right one: {what} --session {name}" if name else TWO_GRAPHS


def _number(texts: Mapping[str, str], name: str, example: str) -> int | None:
    """The number of an option, from 1; None without it."""
    text = texts.get(name)
    if text is not None and not (text.isdecimal() and int(text)):
        raise UsageError(f"--{name} must be a number from 1, not {text}. For example: {example} --{name} 9")
    return None if text is None else int(text)


def _median(steps: list[RunMetadata]) -> RunMetadata:
    return sorted(steps, key=lambda step: read(step).total)[len(steps) // 2]


def _color_by(texts: dict[str, str]) -> str:
    by = texts.get("color-by", "device")
    check("--color-by", by, WAYS, "--color-by phase")
    return by


def drawn(draw: Callable[..., _Drawn], *what: Any, **how: Any) -> _Drawn:
    """A picture, or in one line why there is nothing to draw."""
    try:
        return draw(*what, **how)
    except (ValueError, NotImplementedError) as error:
        raise UsageError(str(error)) from None


def _placed(session: BaseSession, fetches: Any, feed: Any) -> tuple[Any, Mapping[str, str]]:
    """The graph to draw, and its placement: the master's, or that of a run of it, or that of dtflab's rules."""
    try:
        return session.placed_nodes(fetches), placement_of(session)
    except NotImplementedError:
        if fetches is not None and feed is not None:
            return _placed_by_running(session, fetches, feed)
    print("The master is TensorFlow's: this is where dtflab's rules place ops. With --feed, the master is asked.")
    return session.graph if fetches is None else fetches, placement_of(session)


def _placed_by_running(session: BaseSession, fetches: Any, feed: Any) -> tuple[list[Any], dict[str, str]]:
    """The nodes of a step that was run to learn where they are, and their devices.

    A fed tensor's op did not run; it is where its value came in, at the node `_arg_<name>_<output>_<number>`.
    """
    metadata = RunMetadata()
    session.run(fetches, feed, RunOptions(output_partition_graphs=True), metadata)
    devices = {node.name: node.device for part in metadata.partition_graphs for node in part.node}
    fed = {match[1]: device for name, device in devices.items() if (match := re.match(r"_arg_(.+)_\d+_\d+$", name))}
    devices = {**fed, **devices}
    return [node for node in session.graph.nodes() if node.name in devices], devices
