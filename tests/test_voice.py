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
THERE = r"(?<!here)(?<!here )" + "".join(f"(?<!here {may} )" for may in ("can", "may", "must", "will", "would"))
BE = r"(?:is|are|was|were|be|been|being)"
PATTERNS = {  # what to look for, and what to write instead
    rf"(?i){THERE}(?:\b{BE}|['’](?:s|re)) no (?!longer|more|other|such)[a-z]": "is not a …",
    rf"\bno such(?! [`\w'\"{{])|\b(?:if it|it|that|they|which) {BE} none\b(?! of)": "an unknown …, not a …",
    r"(?i)\b(?:is|are|was|were) none of\b": "is not one of …, no … has …",
    r"(?i)\btakes? no notice\b|\bat the begin\b|\bthe like of\b": "does not track, at the beginning, one like",
    rf"\bWho(?:so)?(?:ever)?\b{NO_QUESTION}": "name the subject: a client that …, the thread that …",
    r"(?i); who(?:ever)? |\bwho(?:so)?ever\b|\bones? who\b": "name the subject: a client that …, any thread that …",
    rf"\b(?i:{THING})s?,? who (?!else)": "that, which",
    rf"(?<!# )\bWhat (?:is|are|was|were|has|have|comes)\b{NO_QUESTION}": "a noun: the values that …, all ops that …",
    r"(?i)anew\b": "again, new, restart",
    r"(?i)\b(?:that lacks?|an? lacking)\b": "is missing, without",
    r"\blacks\b(?! (?:an?|the|its|their|one|any|some|only|[0-9])\b)": "is missing, without",
    r"[«»]": "quotation marks",
    rf"(?<![\w.])[Bb]eside (?={PLACE}\b)": "next to, as well as, compared with",
    r"(?i)\bfor ever\b": "forever",
    r"(?i)\bso (?:many|few)\b(?! that| as)|\bso much\b(?!(?: \w+){0,3} that| as)": "that many, that much",
    rf"(?i)\b(?:{BE}|gets?|getting|got)(?:n['’]t)?(?: (?:not|never|also|only))? told\b(?! apart)": "learns, reports",
    r"(?i)\b(?:(?:do|does) not|(?:do|does)n['’]t) tell\b(?!”)": "does not say, show or report",
    r"(?i)\bcomes? to be\b": "is created, starts",
    r"\bin the mean\b": "on average",
    r"(?i)\b(?:tells?|told) of\b|(?<!“)\b(?:do|does|did)(?:n['’]t| not) tell\b": "reports, names, shows",
    r"(?i)\bevery so (?:many|often)\b": "every N seconds, now and then",
    r"(?<![\w.])\d[\d.,]* %(?=[ .,;:)\"'!?]|$)(?! \w+[(),\]])": "40%",
    r"(?i)\b[a-z]{2,}(?:al|an|ar|er|il|im|ogn|or|ron)is(?:e[drs]?|ing|ations?|able)\b": "initialize: -ize",
    r"(?i)\b(?:behavior|flavor|honor|neighbor)(?:s|ed|ing|hood)?\b|\bdefense(?!\.md)": "behaviour, neighbour, defence",
}
HEADLESS = re.compile(  # a docstring that begins like this can't be read alone
    r"(?:What|Whose|Who|It|Its|They|Those|Of|Raises|With|Without|Whether it|As if|One of these|How (?:full|it))\b"
    r"|As (?!few|many)[`a-z]"
    r"|The same(?:[,;.:]| (?:along|as|but|for|from|in|of|when|where|with)\b)"
)
EXEMPT = {  # a file, and the text there that may stay
    ("dtflab/machine/console.py", '"«": \'"\', "»": \'"\''): "a table of characters that old consoles don't have",
    ("tests/machine/test_console.py", "«a»"): "characters that old consoles don't have",
    ("tests/grading/test_submissions.py", "# 100 % sure"): "a comment that looks like a magic",
    ("tests/graph/oracle/test_shape_rules.py", "a name that is none"): "the name of a record",
    ("tests/graph/test_missing.py", "GradientDescentOptimiser"): "a name that a program misspells",
}


NOT_OURS = {".json", ".npz", ".proto", ".pyi", ".svg", ".txt", ".typed", ".webp", ".xz"}  # data, and what tools write
FENCED = re.compile(r"^ *```.*?^ *```|<!--.*?-->|(`+)[^`]*?\1|<[^>]*>|\]\([^)]*\)", re.M | re.S)


def our_texts() -> dict[str, str]:
    """All text files of the repository that people write, by name; notebooks are made of some of them."""
    others = ("LICENSE", "test_voice.py")
    files = [path for path in house.tracked_files() if path.suffix not in NOT_OURS | {".ipynb"}]
    return {
        house.name(path): path.read_text(encoding="utf-8")
        for path in files
        if path.name not in others and "_pb2" not in path.name
    }


def sentences(name: str, text: str) -> str:
    """The text of a page, or of a lesson's markdown cells, without code."""
    if name.endswith(".py"):
        cells = re.findall(r"^# %% \[markdown\]\n((?:#.*\n)*)", text, re.M)
        text = re.sub(r"^# ?", "", "\n".join(cells), flags=re.M)
    return FENCED.sub("", text)


def prose(text: str) -> str:
    """The text in one line: paragraphs, comments and adjacent string literals are joined."""
    return re.sub(r"\s*\n\s*(?:#:? )?\s*", " ", re.sub(r'"\s*\n\s*f?"', "", text))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    texts = our_texts()
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
    files = [path for path in house.tracked_files() if path.suffix == ".py"]
    found = {house.name(path): [*filter(HEADLESS.match, openings(house.tree(path)))] for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}, "write: a noun, or a verb in the imperative"


def test_marks_are_a_typesetters():
    for name, text in our_texts().items():
        if name.endswith(".md") or re.match(r"(?:notebooks/src|solutions)/\w+\.py", name):
            found = re.findall(r".*(?:\"|(?<![-|])--(?![-|])|\.\.\.).*", sentences(name, text))
            assert found == [], f"{name}: write “quotes”, – and … outside code"


@pytest.mark.parametrize(
    "sentence",
    [
        "--feed is no dict but a list.",
        "--feed: it's no list.",
        "Where it is no list,",
        "They were no dicts.",
        "ValueError if it has no such.",
        "An error for a handle that is none.",
        "Who comes later sets the counter to 0 again.",
        "Whosoever calls is answered.",
        "It waits for the one who holds it.",
        "A client isn't told.",
        "It gets told at once.",
        "Its master does not tell.",
        "A counter is told\n    # what it counts.",
        '"a task that "\n    f"lacks"',
        "a lacking key",
        "So many seconds.",
        "if so much is not free",
        "In 40 % Of the steps",
        "It takes 12 %",
        "The workers are initialised.",
        "TypeError if it is none of these.",
        "At the end, or at the begin of a function.",
        "Its behavior",
        "holds 9 of 10 in the mean",
        "a host that nobody told of",
        "CUDA doesn't tell.",
    ],
)
def test_patterns_hear(sentence):
    assert any(re.search(pattern, prose(sentence)) for pattern in PATTERNS)


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no queue yet.",
        "There's no queue yet, and it is no longer needed.",
        "There would be no exercises.",
        "Who reaches a loss of 0.25 first?",
        "No such file; they are told apart by their colour.",
        "so much at once that all wait",
        "2 % len(tasks)",
        "A promise arises otherwise.",
    ],
)
def test_patterns_let_pass(sentence):
    assert not any(re.search(pattern, prose(sentence)) for pattern in PATTERNS)


def test_files_without_a_suffix_are_read(pages):
    assert {"Makefile", ".ci/run", ".pre-commit-config.yaml", "environment.yml", "pyproject.toml"} <= pages.keys()


def test_code_in_a_page_is_not_prose():
    page = 'Say “a–b”: `x = "a"`\n```\n"--b" ...\n```\n<a href="x">y</a> [z](a--b)\n'
    assert not re.search(r'"|--|\.\.\.', sentences("a.md", page))
    assert sentences("a.py", '# %% [markdown]\n# Say "a".\n\n# %%\nx = "b"\n') == 'Say "a".\n'
