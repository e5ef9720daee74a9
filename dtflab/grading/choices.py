"""`dtflab.predict("placement/q3", "CE")`: choose sentences before a run, and be answered. It gives no points.

    placement/q3: not yet
      ✗ A  Yes, all of them: the first GPU is the default device.
           Read the last column of the run from top to bottom. …
      ✓ C  Ops without a GPU kernel are placed on the CPU.
      1 right letter is missing.

Each wrong letter gets the line of the run below that shows it. A right one that is missing is only counted at the first
try; the second says where to look for it, and with the third there are all letters with their reasons.

Rule: only a choice that differs from those before counts as a try, so that a notebook that runs twice says the same.
Tries are counted in memory, and nothing is written. The sentences are those of the question (`Question.choice`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dtflab.grading import report_pages as pages
from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.questions import Choice, Question
from dtflab.viz.drawing.svg import Markup, join, tag

_LAST = 3  # the try that is answered in full
_SIGNS = {True: "✓", False: "✗"}
_WORDS = {True: "right", False: "wrong"}
_tried: dict[str, set[frozenset[str]]] = {}  # what was chosen of each question


@dataclass(frozen=True, repr=False)
class Prediction:
    """The verdict on `letters`, the `tries`-th choice of a question. A notebook shows it as a table."""

    question: Question
    letters: frozenset[str]
    tries: int

    @property
    def right(self) -> bool:
        """True if these are all right letters, and no others."""
        return self.letters == {choice.letter for choice in self.question.choices if choice.right}

    @property
    def text(self) -> str:
        return "\n  ".join([self._headline, *self._lines(), *self._end()])

    @property
    def html(self) -> str:
        rows = join(_html_row(*row) for row in self._rows())
        table = tag("table", tag("tbody", rows), style="border-collapse:collapse;margin:6px 0") if rows else ""
        end = [tag("div", pages.with_code(sentence), style=pages.NOTE) for sentence in self._end()]
        return tag("div", tag("b", self._headline), table, *end, class_="dtf-prediction", style=pages.ROOT)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": self.text, "text/html": self.html}

    @property
    def _missing(self) -> list[Choice]:
        return [choice for choice in self.question.choices if choice.right and choice.letter not in self.letters]

    @property
    def _explains_all(self) -> bool:
        """Whether all letters are explained: the choice is right, or was made for the third time."""
        return self.right or self.tries >= _LAST

    @property
    def _headline(self) -> str:
        if not self.letters:
            return f"{self.question.id}: choose first"
        if not self._explains_all:
            return f"{self.question.id}: not yet"
        answer = "".join(choice.letter for choice in self.question.choices if choice.right)
        chosen = "" if self.right else f", you chose {''.join(sorted(self.letters))}"
        return f"{self.question.id}: {answer} is right{chosen}"

    def _rows(self) -> Iterator[tuple[Choice, str]]:
        """Each sentence that is shown, and what is said of it."""
        for choice in self.question.choices:
            if self.letters and self._explains_all:
                yield choice, choice.why
            elif choice.letter in self.letters:
                yield choice, "" if choice.right else choice.look

    def _lines(self) -> Iterator[str]:
        for choice, note in self._rows():
            yield f"{_SIGNS[choice.right]} {choice.letter}  {choice.text}"
            if note:
                yield f"     {note}"

    def _end(self) -> Iterator[str]:
        """The sentences below the letters."""
        if not self.letters:
            one = _only_one(self.question)
            which = "letter of the sentence that you think is" if one else "letters of all sentences that you think are"
            yield (
                f"Write the {which} right between the quotes, and run this cell again: {_example(self.question)}. It "
                "is for you alone: it gives no points, and costs none."
            )
        elif not self._explains_all:
            count = len(self._missing)
            if count:
                yield f"{count} right letter{' is' if count == 1 else 's are'} missing."
            if self.tries > 1:
                yield from (f"Where to look: {choice.look}" for choice in self._missing)
            yield "Run the cells below, and look. Then change your letters here, and run this cell again."


def predict(id: str, letters: str = "") -> Prediction:
    """Judge the chosen letters, `"CE"` or `"e, c"`. `.right` of the result is True or False.

    `id` is a question's, `placement/q3`, or its end if that is enough. LookupError lists the questions if none has
    that id, or if it has nothing to choose from; ValueError names letters that it does not have; TypeError is for
    a value that is not a text.
    """
    question = _question(id)
    chosen = _letters(question, letters)
    tried = _tried.setdefault(question.id, set())
    if chosen:
        tried.add(chosen)
    return Prediction(question, chosen, len(tried))


def with_choices() -> list[Question]:
    """The questions that have something to choose from."""
    return [question for question in all_questions() if question.choices]


def _question(id: Any) -> Question:
    if not isinstance(id, str):
        example = _example(with_choices()[0])
        raise TypeError(f"A question is named by its id, a text: {example}, not {type(id).__name__}")
    return find(id)


def _letters(question: Question, text: Any) -> frozenset[str]:
    """The letters in a text, in any order and case, with spaces or commas between them or none."""
    if not question.choices:
        names = ", ".join(one.id for one in with_choices())
        raise LookupError(f"{question.id} has no letters to choose from. dtflab.predict is for {names}")
    if not isinstance(text, str):
        raise TypeError(f"The letters are a text: {_example(question)}, not {type(text).__name__}")
    chosen = frozenset(re.sub(r"[\s,;]", "", text).upper())
    known = [choice.letter for choice in question.choices]
    if strange := sorted(chosen.difference(known)):
        unknown = f"{question.id} has no {', '.join(strange)}. Its letters are {', '.join(known)}"
        raise ValueError(f"{unknown}: {_example(question)}")
    return chosen


def _only_one(question: Question) -> bool:
    """Whether one sentence is right, as its notebook says: "Choose one"."""
    return sum(choice.right for choice in question.choices) == 1


def _example(question: Question) -> str:
    """A call with that many letters as are asked for, one or several; not the right ones."""
    if _only_one(question):
        letters = next(choice.letter for choice in question.choices if not choice.right)
    else:
        letters = question.choices[0].letter + question.choices[-1].letter
    return f'dtflab.predict("{question.id}", "{letters}")'


def _html_row(choice: Choice, note: str) -> Markup:
    mark = pages.badge(choice.right, f"{_SIGNS[choice.right]} {_WORDS[choice.right]}")
    sentence = tag("div", pages.with_code(choice.text), style=pages.SOFT if note else None)  # the note is what is new
    cells = (tag("b", choice.letter), mark, join([sentence, *([tag("div", pages.with_code(note))] if note else [])]))
    return tag("tr", *(tag("td", cell, style=pages.CELL) for cell in cells))
