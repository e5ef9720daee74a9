"""Which phase of a training step an op belongs to: input, forward, loss, backward, update; read from the graph alone.

The rule, in this order:
- backward: what stands in a scope of gradients, one that holds `N_grad` for an op N of the graph;
- update: what uses a gradient (accumulators, clipping, optimizers, the train op), and what nothing but the update
  needs: learning rates, moments, counters;
- the losses are the ops that have a gradient and feed no other such op. What they need is input, forward or loss:
  - input: placeholders, queues, files, variables that are not trained (without these: constants), and what
    is made of them without a trained variable;
  - loss: of what comes after the last use of weights, all from where a target joins (all of it, if none does), and
    the regularizers, what is made of variables alone and has been summed up, and the losses themselves;
  - forward: the rest, variables with it; but what is made of none of these (the checks of `tf.losses`, a loop's
    counter) is loss where most of the ops around it are: in the nearest scope that holds input, forward or loss;
- input, too, is what fills the queues that feed it;
- other: what no training step needs: initializers, savers, summaries, accuracy.
A graph without gradients has no loss: then all that depends on no variable but on an input, or feeds one, is input, and
what depends on a variable is forward.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dtflab.base.grouping import grouped
from dtflab.viz.data.graph_ops import Op, ops_of

PHASES = ("input", "forward", "loss", "backward", "update", "other")

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp", "TemporaryVariable", "AutoReloadVariable")
_READS = ("Identity", "ReadVariableOp")
_SOURCES = re.compile(r"_Arg|Placeholder|.*(Dequeue(Many|UpTo)?|GetNext|Unstage|ReaderRead(UpTo)?|ReadFile)(V2)?$")
_ENQUEUES = re.compile(r"QueueEnqueue|Stage$|MakeIterator")
_REDUCES = ("L2Loss", "Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm")
# They write, or are of no step.
_OFF_PATH = re.compile(r"Assign|.*Apply|Scatter|Save|Restore|.*Summary|.*Initialized|QueueClose")
_GRADIENT_OF = re.compile(r"_grad(?:_\d+)?/")


def phases(graph: Any = None) -> dict[str, str]:
    """The phase of every op by its name, one of `PHASES`, by the rule that stands at the head of `viz/phases.py`.

    `graph` is what `digraph` takes. Give the whole graph: of fetches alone the gradients may be missing, and with them
    the loss.
    """
    ops = ops_of(graph)
    return _Phases(ops).found


class _Phases:
    """The ops by phase, found in the order of the rule."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = {op.name: op for op in ops}
        self.before = {op.name: [n for n in (*_names(op.inputs), *op.controls) if n in self.ops] for op in ops}
        edges = ((source, name) for name, sources in self.before.items() for source in sources)
        self.after = grouped(edges, self.ops)
        self.found: dict[str, str] = {}
        differentiated = self._backward()
        ends = (name for name in differentiated if not any(after in differentiated for after in self.after[name]))
        losses = [name for name in ends if not (self._after([name]) - {name}) & differentiated]
        self._update()
        self._model(losses, self._upstream(losses) if losses else self._fetchable())
        self.found = {name: self.found.get(name, "other") for name in self.ops}

    # -- walking ------------------------------------------------------------------------------------------

    def _upstream(self, names: Iterable[str]) -> set[str]:
        return self._reached(names, self.before, lambda name: name not in self.found)

    def _reached(
        self, names: Iterable[str], links: Mapping[str, Sequence[str]], passes: Callable[[str], bool]
    ) -> set[str]:
        """The names and all that their links lead to, by way of those that pass."""
        seen, todo = set(), [name for name in names if passes(name)]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += [other for other in links[name] if other not in seen and passes(other)]
        return seen

    def _mark(self, names: Iterable[str], phase: str) -> None:
        for name in names:
            self.found.setdefault(name, phase)

    def _readers(self, name: str) -> Iterator[str]:
        """The ops that need an op in a step."""
        for reader in self.after[name]:
            idle = self.ops[reader].op in _READS and all(map(self._is_off_path, self.after[reader]))
            if reader in self.found or not (idle or self._is_off_path(reader)):
                yield reader

    def _is_off_path(self, name: str) -> bool:
        return _OFF_PATH.match(self.ops[name].op) is not None

    # -- the rule ------------------------------------------------------------------------------------------

    def _backward(self) -> set[str]:
        """Mark what stands in scopes of gradients; the ops that have gradients there."""
        pairs = {pair for name in self.ops for pair in _gradients_of(name) if pair[1] in self.ops}
        scopes = {scope for scope, _ in pairs}
        self._mark((n for n in self.ops if any(prefix in scopes for prefix in _prefixes(n))), "backward")
        return {name for _, name in pairs if name not in self.found}

    def _update(self) -> None:
        """Mark what uses gradients, also by way of an accumulator, and what is there for that alone."""
        used = self._after(list(self.found))
        gathered = [b for name in used for b in self.before[name] if self.ops[b].op.endswith("Accumulator")]
        self._mark(used | self._after(gathered), "update")
        self._only_for("update")

    def _after(self, names: Iterable[str]) -> set[str]:
        """All that follows, as far as it has no phase and is not a summary."""

        def passes(name: str) -> bool:
            return name not in self.found and not self.ops[name].op.endswith("Summary")

        return self._reached((after for name in names for after in self.after[name]), self.after, passes)

    def _only_for(self, phase: str) -> None:
        """Mark what is needed for this phase first; initializers and savers, and reads for nobody, don't count."""
        waiting = [name for name, p in self.found.items() if p == phase]
        later = PHASES[PHASES.index(phase) :]
        while waiting:
            for name in self.before[waiting.pop()]:
                if name not in self.found and all(self.found.get(r) in later for r in self._readers(name)):
                    self.found[name] = phase
                    waiting.append(name)

    def _fetchable(self) -> set[str]:
        """The ops of a graph without gradients: all but those that write, and those that only these need."""
        return self._upstream(n for n in self.ops if not self.after[n] and not self._is_off_path(n))

    def _model(self, losses: Sequence[str], needed: set[str]) -> None:
        """Tell input, forward and loss apart among what the losses need."""
        kind = self._kinds(needed)
        uses = [n for n in needed if kind[n] == "model" and any(kind.get(b) == "weights" for b in self.before[n])]
        inner = self._reached(uses, self.before, lambda name: name in needed)
        tail = {name for name in needed if kind[name] == "model" and name not in inner}
        joins = [name for name in tail if any(kind.get(b) == "input" for b in self.before[name])]
        loss = self._reached(joins, self.after, lambda name: name in tail) or tail
        if losses:
            self._mark([*losses, *(n for n in needed if n in loss or kind[n] == "regularizer")], "loss")
        self._mark((n for n in needed if kind[n] == "input"), "input")
        self._mark(self._upstream(n for n, op in self.ops.items() if _ENQUEUES.match(op.op)), "input")
        self._mark((n for n in needed if kind[n] in ("model", "weights")), "forward")
        for phase in ("input", "forward", "loss"):
            self._only_for(phase)
        self._mark(self._among_losses(needed - self.found.keys()), "loss")
        self._mark(needed, "forward")  # counters of loops

    def _among_losses(self, names: Iterable[str]) -> list[str]:
        """The ops with more loss around them than input or forward, in the nearest scope that holds any of these."""
        around: dict[str, Counter[str]] = defaultdict(Counter)
        for name, phase in self.found.items():
            if phase in ("input", "forward", "loss"):
                for scope in _prefixes(name):
                    around[scope][phase] += 1
        nearest = {name: [scope for scope in _prefixes(name) if scope in around][-1:] for name in names}
        return [name for name, scopes in nearest.items() if scopes and _is_loss(around[scopes[0]])]

    def _kinds(self, needed: set[str]) -> dict[str, str]:
        """The kind of each op: "input", "weights", "regularizer" (of weights, summed up), "model" (both), ""."""
        variables = [n for n in needed if self.ops[n].op in _VARIABLES]
        trained = [n for n in variables if any(self.found.get(after) == "update" for after in self.after[n])]
        weights = self._reached(trained or variables, self.after, lambda name: name in needed)
        starts = [n for n in needed if _SOURCES.match(self.ops[n].op)]
        starts += [n for n in variables if trained and n not in trained]
        starts = starts or [n for n in needed if self.ops[n].op == "Const"]
        data = self._reached(starts, self.after, lambda name: name in needed)
        alone = weights - data
        summed = self._reached((n for n in alone if self.ops[n].op in _REDUCES), self.after, alone.__contains__)
        return {
            name: "model" if name in weights & data
            else "input" if name in data
            else "regularizer" if name in summed
            else "weights" if name in weights
            else ""
            for name in needed
        }  # fmt: skip


def _names(inputs: Iterable[tuple[str, int]]) -> Iterator[str]:
    return (name for name, _ in inputs)


def _is_loss(counts: Counter[str]) -> bool:
    return counts["loss"] > counts["input"] + counts["forward"]


def _prefixes(name: str) -> Iterator[str]:
    """The scopes that an op stands in."""
    parts = name.split("/")[:-1]
    return ("/".join(parts[: i + 1]) for i in range(len(parts)))


def _gradients_of(name: str) -> Iterator[tuple[str, str]]:
    """Each way to read a name as `scope/N_grad/…`: the scope and N."""
    for match in _GRADIENT_OF.finditer(name):
        parts = name[: match.start()].split("/")
        for i in range(1, len(parts)):
            yield "/".join(parts[:i]), "/".join(parts[i:])
