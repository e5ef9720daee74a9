"""Hidden checks: they run here, in the grader's process, and the answer in its own. See `remote`.

Rule: a submission gets no more of a secret seed than the numbers that are drawn from it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from random import Random
from typing import Any

from dtflab.grading import judge, watchdog
from dtflab.grading.judge import Report, Result
from dtflab.grading.meter import LEAST
from dtflab.grading.questions import MOST, Check, Question
from dtflab.grading.remote import Gone, Late, Link, NotPlain

PATIENCE = MOST / LEAST  # seconds for a hidden check: on the busiest machine its answer's own take that long
_ROUNDS = 100_000  # so that nobody finds a short seed by trying: 50 ms for each student


@functools.lru_cache(maxsize=4096)
def seed_for(seed: str, student: str) -> str:
    """The seed that a student's process draws from: the public one as it is, a digest of a secret one."""
    if seed == judge.PUBLIC_SEED:
        return seed
    return hashlib.pbkdf2_hmac("sha256", seed.encode(), student.encode(), _ROUNDS).hex()


def report(
    question: Question,
    public: Report | None,
    answer: Any,
    link: Link,
    seed: str,
    student: str,
    begins: Callable[[Check], None] = lambda check: None,
) -> Report:
    """The report on all checks: those that `public` has, and the hidden ones, which ask `answer` there.

    `answer` is what the submission's process says of its answer; None if it has none. `begins` is called before each
    hidden check.
    """
    results = {result.check.name: result for result in public.results} if public else {}
    hidden = question.part(hidden=True)
    left, why = MOST, judge.after(list(results.values())) if public else ""
    for check in hidden.checks:
        if answer is None:
            results[check.name] = Result(check, False, unwritten=True)
        elif why:
            results[check.name] = Result(check, False, why, starved=why == judge.BUSY)
        else:
            begins(check)
            timed = check._replace(seconds=min(check.seconds, left))
            result = _judged(question, timed, link.value(answer), link, f"{seed}/{student}/{question.id}/{check.name}")
            left -= timed.seconds - link.seconds
            results[check.name] = result
            why = judge.after([result])
    every = [results[check.name] for check in question.checks]
    return judge.report_on(question, every, seed_for(seed, student), student, answer is not None)


def _judged(question: Question, check: Check, answer: Any, link: Link, seed: str) -> Result:
    """The result of one check."""
    outcome = watchdog.call(functools.partial(_run, check, answer, link, Random(seed)), PATIENCE)
    if isinstance(outcome.error, Gone):
        raise outcome.error
    if outcome.stopped:
        return Result(check, False, f"The check did not come to an end within {PATIENCE:g} s.", broken=True)
    if isinstance(outcome.error, NotPlain):
        return Result(check, False, f"{outcome.error}.", broken=True)
    if isinstance(outcome.error, Late):
        late, outcome.error = outcome.error, None
        outcome.stopped, outcome.starved, outcome.left_running = True, not late.endless, late.deaf
    result = judge.result_of(question, check, outcome)
    result.output, result.seconds = link.output, check.seconds - link.seconds
    return result


def _run(check: Check, answer: Any, link: Link, random: Random) -> Any:
    with link.connected(check.seconds):
        check.judge(answer, random)
