"""Questions on the memory of GPUs.

q1: CUDA_ERROR_OUT_OF_MEMORY when a program starts. The answer says with which settings programs run next to each other;
the checks start them, each as a program of its own on one simulated machine, let each fill what it needs, and see.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself
from dtflab.graph.graph import Graph
from dtflab.machine.cards import CONTEXT_BYTES, IDLE_BYTES, MIB
from dtflab.machine.visible import cuda_visible, listed
from dtflab.ops.arrays.functions import zeros
from dtflab.ops.variables.variable import Variable
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.runtime.session import Session

_SMALL = MIB // 16  # of what it needs, a program keeps this for small tensors

q1 = from_toml(__file__)


class Case(NamedTuple):
    """Copies of one program, for a machine; sizes in MiB. `why` none of them can help, as it was drawn; "" if some do.

    Each reason holds where those before it don't: `alone`, tensors that are larger than a card; `context`, with the
    program's own context; `idle`, with what is in use on an idle card, too; `together`, with another program.
    """

    programs: int
    cards: int
    need: int
    memory: int
    why: str = ""

    def __str__(self) -> str:
        return (
            f"{plural(self.programs, 'program')} with tensors of {self.need} MiB each, on "
            f"{plural(self.cards, 'card')} of {self.memory} MiB"
        )


class Setting(NamedTuple):
    """How a program is started: the cards that it sees, the part of each that it takes (0: all), if it grows."""

    sees: Sequence[int]
    fraction: float
    grows: bool


class Seen(NamedTuple):
    """The settings of an answer; None if it gave up. `given` are the reasons for None where it gave some all the same.

    `asked` are the reasons of all cases that it was asked about.
    """

    case: Case
    settings: Sequence[Setting] | None
    given: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    def on_card(self, card: int) -> list[Setting]:
        return [one for one in self.settings or () if card in one.sees]


def _settings(case: Case, value: Any) -> list[tuple[str | None, Any]]:
    """The pairs that an answer gave; Wrong if they are not pairs."""
    expected = "expected: one pair per program, a string for CUDA_VISIBLE_DEVICES and a tf.ConfigProto."
    if not isinstance(value, list | tuple):
        raise Wrong(f"For {case}, settings gave {shown(value)}; {expected}")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Wrong(f"For {case}, one of the settings is {shown(pair)}; {expected}")
        for part, kind, what in zip(pair, (str | None, ConfigProto | None), ("text", "tf.ConfigProto"), strict=True):
            if not isinstance(part, kind):
                raise Wrong(f"For {case}, a setting has {shown(part)}, which is not a {what}; {expected}")
    pairs = [(visible, config or ConfigProto()) for visible, config in value]
    if len(pairs) != case.programs:
        seen = _seen(case, pairs) if len(pairs) == 1 else None
        raise Wrong(f"For {case}, settings gave {plural(len(pairs), 'pair')}; {expected}", seen)
    return pairs


def _seen(case: Case, pairs: Sequence[tuple[str | None, Any]]) -> Seen:
    found = []
    for visible, config in pairs:
        options = config.gpu_options
        shown = cuda_visible(visible, case.cards)
        sees = [shown[i] for i in listed(options.visible_device_list, len(shown))]
        found.append(Setting(sees, options.per_process_gpu_memory_fraction, options.allow_growth))
    return Seen(case, found)


def _start(case: Case, pairs: Sequence[tuple[str | None, Any]]) -> tuple[int, str] | None:
    """Start the programs one after the other, all of them go on; the first that fails, and why."""
    machine = f"machine.of-{os.getpid()}"  # no other process has cards there
    with contextlib.ExitStack() as running:
        log = io.StringIO()  # CUDA's lines, one for each size that was tried: the error says it in one
        running.enter_context(contextlib.redirect_stdout(log))
        running.enter_context(contextlib.redirect_stderr(log))
        for number, (visible, config) in enumerate(pairs, start=1):
            jobs = {"program": [f"{machine}:{2222 + number}"]}
            program = Cluster(
                jobs, gpus=case.cards, gpu_memory=case.memory * MIB, config=config, name=f"program {number}",
                visible_devices={"program": [visible]},
            )  # fmt: skip
            running.enter_context(program)
            with Graph().as_default() as graph, graph.device("/gpu:0"):
                held = Variable(zeros([(case.need * MIB - _SMALL) // 4]), name="model")
            session = running.enter_context(contextlib.closing(Session(program.target, graph=graph)))
            try:
                session.run(held.initializer)
            except errors.OpError as error:
                return number, error.message.replace(machine, "the machine").replace("/job:program/task:0 of ", "")
    return None


def _in_short(why: str) -> str:
    """The memory refused, and the holders of the card: the beginnings of the error's lines, without its advice."""
    lines = {line.partition(" ")[0]: line for line in why.split("\n")}
    what = lines.get("failed") or lines.get("OOM") or lines.get("Cannot") or why.partition("\n")[0]
    parts = [what.partition(" on /job")[0].partition(". ")[0], lines.get("Of", "")]
    return " ".join(f"{part.removesuffix('.')}." for part in parts if part)


def _demand_running(answer: Any, case: Case) -> None:
    """Wrong unless all programs run next to each other with the answer's settings."""
    value = by_itself(answer, case.programs, case.cards, case.need * MIB, case.memory * MIB)
    if value is None:
        why = "settings returned None, but settings exist with which these programs run"
        raise Wrong(f"For {case}, {why}.", Seen(case, None))
    pairs = _settings(case, value)
    failed = _start(case, pairs)
    if failed is not None:
        number, why = failed
        raise Wrong(f"{case}: program {number} stopped: {_in_short(why)}", _seen(case, pairs))


# -- what is checked -----------------------------------------------------------------------------------------


_ODD = (59, 60)  # MiB of 256: as a fraction that is rounded to two or three decimals, too little
_ODD_OF_128 = (45, 49, 53, 54, 58, 59)  # MiB: with two decimals, too little


@q1.check("As many cards as programs", points=2)
def apart(answer: Any, random: Random) -> None:
    count = random.randint(2, 3)
    _demand_running(answer, Case(count, count, random.choice(_ODD_OF_128), 128))


@q1.check("Several programs share one card", points=3)
def shared(answer: Any, random: Random) -> None:
    for programs, need in ((2, random.choice(_ODD)), (3, random.randint(24, 30))):
        _demand_running(answer, Case(programs, 1, need, 256))


@q1.check("More programs than cards, or fewer, and more cards than one", points=2)
def both(answer: Any, random: Random) -> None:
    need = random.choice(_ODD)
    _demand_running(answer, Case(3, 2, need, 256))
    _demand_running(answer, Case(4, 2, need, 256))
    _demand_running(answer, Case(5, 3, random.randint(58, 62), 256))  # two on the fullest card
    _demand_running(answer, Case(1, random.randint(2, 3), random.randint(140, 150), 256))


@q1.check("Programs that are too large for the cards are known as such, and one that isn't runs", points=3)
def too_large(answer: Any, random: Random) -> None:
    """Each reason for None, and then the largest program that settings exist for, and nearly the largest that runs.

    It may be 143 MiB of 192, with a fraction of need / memory; with 1.02 of that 140, with 1.05 only 136.
    """
    cases = [Case(programs, cards, random.randint(*needs), 256, why) for programs, cards, needs, why in _TOO_LARGE]
    values = [by_itself(answer, case.programs, case.cards, case.need * MIB, case.memory * MIB) for case in cases]
    given = {case: _settings(case, value) for case, value in zip(cases, values) if value is not None}
    if given:
        case, pairs = next(iter(given.items()))
        why, asked = frozenset(one.why for one in given), frozenset(one.why for one in cases)
        seen = _seen(case, pairs)._replace(given=why, asked=asked)
        raise Wrong(f"For {case}, settings gave {plural(len(pairs), 'pair')}, but none can help; expected: None.", seen)
    largest = Case(1, 1, 143, 192)
    if by_itself(answer, largest.programs, largest.cards, largest.need * MIB, largest.memory * MIB) is None:
        raise Wrong(f"For {largest}, settings returned None, but with its context, and what is in use, it just fits.")
    _demand_running(answer, Case(1, 1, random.randint(137, 140), 192))
    _demand_running(answer, Case(4, 1, 16, 256))  # 11 MiB are in use on the card, not for each


_TOO_LARGE = (  # programs, cards, the least and the most that each needs of 256 MiB, the reason
    (1, 1, (260, 500), "alone"),
    (2, 2, (260, 500), "alone"),
    (2, 2, (220, 250), "context"),
    (1, 1, (209, 216), "idle"),
    (3, 2, (104, 120), "together"),
    (4, 3, (91, 100), "together"),  # with one context on each card, they would run
)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def gives_one_pair_for_all(seen: Seen) -> bool:
    """One pair was given for all programs. Each is started on its own, with its own CUDA_VISIBLE_DEVICES and
    ConfigProto: the list has a pair for each of `programs`, in a loop."""
    return seen.settings is not None and len(seen.settings) == 1 < seen.case.programs


@q1.mistake()
def gives_up_too_early(seen: Seen) -> bool:
    """None was returned where there is room for all. Programs can share a card if each takes only its part, with
    per_process_gpu_memory_fraction, or grows. Add up what the fullest card has to hold: 11 MiB, and for each of its
    programs 38 MiB and `need`."""
    return seen.settings is None


@q1.mistake()
def promises_too_much(seen: Seen) -> bool:
    """Settings were given where none can help. A program that needs more than the card has fails even on its own: only
    a smaller model or batch helps, or a larger card. Return None there."""
    return seen.given == seen.asked != frozenset()


@q1.mistake()
def forgets_the_context(seen: Seen) -> bool:
    """A program that needs nearly all memory of a card fails, too, even on its own: 38 MiB are for its context, and 11
    MiB of a card are in use before any program starts. Only what is left can hold its tensors."""
    return bool(seen.given) and seen.asked - seen.given == {"alone"}


@q1.mistake()
def forgets_what_is_in_use(seen: Seen) -> bool:
    """The contexts were counted, but not what is in use on an idle card. It is 11 MiB: only the rest can hold contexts
    and tensors."""
    return seen.given == {"idle"}


@q1.mistake()
def forgets_the_others(seen: Seen) -> bool:
    """A program fits on a card of its own, but not together with the others that it has to share a card with. Count how
    many programs the fullest card has; each of them needs memory for its tensors and for its context."""
    return seen.given == {"together"}


@q1.mistake()
def runs_out_of_cards(seen: Seen) -> bool:
    """A program sees no card. CUDA_VISIBLE_DEVICES is a list of their numbers, "0" or "1,0", counted from 0; it ends
    before the first that is not a card. There are more programs than cards: after the last card start again at 0, p %
    cards."""
    return any(not one.sees for one in seen.settings or ())


@q1.mistake()
def all_on_the_first_card(seen: Seen) -> bool:
    """All programs compute on their /gpu:0, and that is the same card for all: the first one that they see. Let them
    see different cards."""
    firsts = Counter(one.sees[0] for one in seen.settings or ())
    return seen.case.cards > 1 and max(firsts.values(), default=0) > -(-seen.case.programs // seen.case.cards)


@q1.mistake()
def takes_a_part_of_every_card(seen: Seen) -> bool:
    """A program takes its part of each card that it sees, also of those on which others compute. Let it see its own
    card alone: CUDA_VISIBLE_DEVICES with one number."""
    if all(len(one.sees) == 1 for one in seen.settings or ()) or _is_full(seen, lambda one: one.sees[:1]):
        return False
    return _is_full(seen, lambda one: one.sees)


@q1.mistake()
def takes_all(seen: Seen) -> bool:
    """A program without any setting takes the whole card, however little it needs, and nothing is left for the others.
    Give each its part with per_process_gpu_memory_fraction, or let it grow with allow_growth."""
    cards = map(seen.on_card, range(seen.case.cards))
    return any(len(card) > 1 and any(not one.fraction and not one.grows for one in card) for card in cards)


@q1.mistake()
def takes_too_little(seen: Seen) -> bool:
    """A program gets a smaller part of the card than its tensors need. The part is need / memory, on any card."""
    parts = [one.fraction * seen.case.memory * MIB for one in seen.settings or () if one.fraction and not one.grows]
    return any(part < seen.case.need * MIB - _SMALL for part in parts)


@q1.mistake()
def leaves_no_room_for_contexts(seen: Seen) -> bool:
    """The parts of a card (1 is all of it) add up to so much that nothing is left for the contexts: besides the memory
    for its tensors, each program takes 38 MiB of a card. Give each only what it needs: need / memory."""
    return _is_full(seen, lambda one: one.sees)


def _is_full(seen: Seen, takes: Callable[[Setting], Sequence[int]]) -> bool:
    """Whether a card has no room for the contexts and parts of all programs, each of which takes these cards."""
    memory, held = seen.case.memory * MIB, Counter[int]()
    for one in seen.settings or ():
        for card in takes(one):
            held[card] += int(one.fraction * memory) + CONTEXT_BYTES
    return any(size > memory - IDLE_BYTES for size in held.values())
