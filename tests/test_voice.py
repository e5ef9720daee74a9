"""The house's voice, as far as a machine can check it: plain sentences of an engineer who is a native speaker.

Every Python source, page and question is read: docstrings, comments, messages, lessons, solutions and tests. A
pattern is something that no native speaker writes, or that reads as a question where none is asked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests import house

THING = (
    "answer|array|buffer|call|card|client|consumer|device|edge|element|function|gpu|graph|kernel|link|machine|master|"
    "node|op|peer|process|producer|program|ps|queue|reader|replica|runner|scope|server|session|shard|step|task|tensor|"
    "thread|transfer|value|variable|waiter|worker|writer"
)
NO_QUESTION = r"(?!(?:[^.!;]|\.\d)*\?)"
PLACE = r"(?:an?|the|its?|them|this|that|those|their|others?|each|another|one|all|what|[A-Z]\w+|`\w*)"
PATTERNS = {  # what to look for, and what to write instead
    r"(?<!here )\b(?:is|are) no (?!longer|more|other|such)[a-z]": "is not a …",
    rf"\bWho(?:ever)?\b{NO_QUESTION}": "name the subject: a client that …, the thread that …",
    r"; who(?:ever)? |\bwhoever\b": "name the subject: a client that …, no matter which thread …",
    rf"\b(?i:{THING})s?,? who (?!else)": "that, which",
    rf"(?<!# )\bWhat (?:is|are|was|were|has|have|comes)\b{NO_QUESTION}": "a noun: the values that …, all ops that …",
    r"anew\b": "again, new, restart",
    r"\bthat lacks?\b|\blacks\b(?! (?:an?|the|its|their|one|any|some|only|[0-9])\b)": "is missing, without",
    r"[«»]": "quotation marks",
    rf"(?<![\w.])[Bb]eside (?={PLACE}\b)": "next to, as well as, compared with",
    r"\bfor ever\b": "forever",
    r"\bso many\b(?! that| as)": "that many",
    r"\b(?:is|are|was|were|be|been|being|is not|are not) told\b(?! apart)": "learns, is notified, reports, is asked to",
    r"\bcomes? to be\b": "is created, starts",
    r"\b[Ee]very so (?:many|often)\b": "every N seconds, now and then",
    r"\b\d+ %(?= [a-z]+[ .,]|[.,;:)])": "40%",
}
HEADLESS = re.compile(  # a docstring that begins like this can't be read alone
    r"(?:What|Whose|Who|It|Its|They|Those)\b|The same(?:[,;.:]| (?:along|as|but|for|from|in|of|when|where|with)\b)"
)
EXEMPT = {  # a file, and the text there that may stay
    ("dtflab/machine/console.py", '"«": \'"\', "»": \'"\''): "a table of characters that old consoles don't have",
    ("tests/machine/test_console.py", "«a»"): "characters that old consoles don't have",
    ("tests/grading/test_submissions.py", "# 100 % sure"): "a comment that looks like a magic",
}


def prose(text: str) -> str:
    """The text in one line: paragraphs, comments and adjacent string literals are joined."""
    return re.sub(r"\s*\n\s*(?:#:? )?\s*", " ", re.sub(r'"\s*\n\s*f?"', "", text))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    files = [
        path for path in house.tracked_files() if path.suffix in (".md", ".py", ".toml") and "_pb2" not in path.name
    ]
    texts = {house.name(path): path.read_text(encoding="utf-8") for path in files if path.name != "test_voice.py"}
    for file, quoted in EXEMPT:
        assert quoted in texts[file], f"{file} has {quoted} no more"
        texts[file] = texts[file].replace(quoted, "")
    return {name: prose(text) for name, text in texts.items()}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_text_says(pattern, pages):
    found = [
        f"{name}: …{text[max(0, hit.start() - 40) : hit.end() + 40]}…"
        for name, text in pages.items()
        for hit in re.finditer(pattern, text)
    ]
    assert found == [], f"write: {PATTERNS[pattern]}"


def openings(tree: ast.Module) -> Iterator[str]:
    """The first lines of all docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield (ast.get_docstring(node) or "").partition("\n")[0]


def test_docstrings_stand_alone():
    files = [path for path in house.tracked_files() if path.suffix == ".py" and "tests" not in path.parts]
    found = {house.name(path): [*filter(HEADLESS.match, openings(house.tree(path)))] for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}, "write: a noun, or a verb in the imperative"


@pytest.mark.parametrize(
    ("sentence", "heard"),
    [
        ("--feed is no dict but a list.", True),
        ("There is no queue yet.", False),
        ("Who comes later sets the counter to 0 again.", True),
        ("Who reaches a loss of 0.25 first?", False),
        ("A counter is told\n    # what it counts.", True),
        ('"a task that "\n    f"lacks"', True),
    ],
)
def test_patterns_hear_over_line_ends(sentence, heard):
    assert any(re.search(pattern, prose(sentence)) for pattern in PATTERNS) == heard
