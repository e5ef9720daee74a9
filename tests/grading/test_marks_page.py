"""The page of a class: its figures, its examples, and no HTML that a submission wrote."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from dtflab.grading import answer_cells, batch, isolation, report_pages as pages
from dtflab.grading.batch import SHIPPED, Graded
from dtflab.grading.catalogue import find
from dtflab.grading.class_figures import ABSENT, CRASHED, ENDLESS, UNKNOWN, Class, classes
from dtflab.grading.judge import NOT_TRIED, Report, Result, judge
from dtflab.grading.mark_sheets import text
from dtflab.grading.marks_page import html
from dtflab.grading.students import NOTHING
from dtflab.grading.submissions import Submission
from dtflab.viz.loads import loads

Q1 = find("placement/q1")
KINDS, BALANCED, TYPES, RESOURCES, EDGES = (check.name for check in Q1.checks)
STUB = '''def balance_by_bytes(ps_tasks, worker):
    """A device function that spreads variables."""
    # YOUR CODE HERE
    raise NotImplementedError()'''
WRITTEN = "def balance_by_bytes(ps_tasks, worker):\n    return lambda op: worker"


def result(check, **facts):
    return Result(check, **{"passed": not facts, "message": "seen", **facts})


def file(student, lost=(), assignment="ex1", code=WRITTEN, **facts):
    """A file that lost those checks, with the facts of their results."""
    failed = {"passed": False, **facts}
    report = Report(Q1, [result(check, **failed if check.name in lost else {}) for check in Q1.checks], "0", student)
    return Graded(Submission(Path("x.py"), student, assignment, ""), [report], answers={Q1.id: code})


@pytest.fixture
def some():
    """Eight students, five of them with an answer that was judged."""
    shipped, missing = file("shipped", [check.name for check in Q1.checks]), file("missing", [KINDS])
    shipped.notes, missing.notes, missing.handed_in = [SHIPPED], [NOTHING], False
    return [
        file("ada"),
        file("bob", [TYPES, RESOURCES], mistake="counts_elements", hint="Elements.", code=WRITTEN + "\n# long"),
        file("cyd", [TYPES], mistake="counts_elements", hint="Elements."),
        file("dan", [BALANCED], stopped=True),
        file("eve", [EDGES]),
        shipped,
        missing,
        batch.none(Submission(Path("x"), "fay", "ex1", ""), [Q1], "It is not a notebook."),
    ]


def test_the_figures_of_a_class(some):
    (one,) = classes(some)
    assert [graded.submission.student for graded in one.judged] == ["ada", "bob", "cyd", "dan", "eve"]
    assert (one.most, one.mean, one.median) == (10, (10 + 7 + 8 + 7 + 9) / 5, 8)
    bars = [(bar.least, bar.most, bar.judged, bar.others) for bar in one.bars()]
    assert bars[0] == (0, 0, 0, 2) and bars[7:] == [(7, 7, 2, 1), (8, 8, 1, 0), (9, 9, 1, 0), (10, 10, 1, 0)]
    assert [(lost.check.name, lost.students, lost.of, lost.unjudged) for lost in one.lost()] == [
        (KINDS, 0, 5, 0), (BALANCED, 0, 4, 1), (TYPES, 2, 5, 0), (RESOURCES, 1, 5, 0), (EDGES, 1, 5, 0),
    ]  # fmt: skip
    made = [(made.name, len(made.shown), made.example.file.submission.student) for made in one.made()]
    assert made == [("counts_elements", 2, "cyd"), (ENDLESS, 1, "dan"), (UNKNOWN, 1, "eve")]


def test_a_check_that_an_answer_never_reached_is_not_judged_and_not_lost():
    """Nothing is known about later checks of an answer that hangs, or any check of one that ends its process."""
    hangs, ends = file("a", [KINDS, BALANCED]), file("b", [check.name for check in Q1.checks], crashed=True)
    hangs.reports[0].results[1:] = [
        result(Q1.checks[1], passed=False, stopped=True),
        *(result(check, passed=False, message=NOT_TRIED[1]) for check in Q1.checks[2:]),
    ]
    lost = Class("ex1", [hangs, ends]).lost()
    assert [(one.students, one.of, one.unjudged) for one in lost] == [(1, 1, 1)] + [(0, 0, 2)] * 4
    page = html([hangs, ends])
    assert "not judged</th>" in page and page.count(">0 of 0</td>") == 4


def test_who_handed_in_no_answer_that_can_be_judged_is_counted_apart_and_the_tables_say_why():
    every = [check.name for check in Q1.checks]
    endless, gone = file("bob", every, stopped=True), file("cyd", every, crashed=True)
    unwritten = file("dan", every, unwritten=True)
    files = [file("ada"), endless, gone, unwritten]
    page, table = html(files), text(files)
    assert "4 students, 1 with an answer that could be judged: 10.0 of 10 points on average" in page
    others = [f"1 with an answer that {how}" for how in sorted((CRASHED, ENDLESS))]
    assert f"The others: {', '.join(others)}, 1 without an answer." in page
    for name, how in (("bob", ENDLESS), ("cyd", CRASHED), ("dan", ABSENT)):
        assert f'<td class="remark">balance_by_bytes: {how}.</td>' in page
        assert re.search(rf"{name} +0/10 .*\n +balance_by_bytes: {how}\.", table), table


def test_a_class_is_an_assignment_of_two_files_that_count(some):
    other = file("ada", assignment="ex2")
    copy = file("bob", assignment="ex2")
    copy.counts = False
    assert [one.assignment for one in classes([*some, other, copy])] == ["ex1"]


def test_what_may_follow_from_a_known_mistake_is_no_mistake_of_its_own():
    report = Report(Q1, [result(check) for check in Q1.checks], "0", "ada")
    report.results[0] = result(Q1.checks[0], passed=False)
    report.results[2] = result(Q1.checks[2], passed=False, mistake="counts_elements", hint="Elements.")
    one = Graded(Submission(Path("x.py"), "ada", "ex1", ""), [report])
    assert [made.name for made in Class("ex1", [one]).made()] == ["counts_elements"]


def test_an_answer_whose_cell_failed_is_no_answer_to_judge():
    one = file("ada", [check.name for check in Q1.checks], message="", unwritten=True)
    one.reports[0].next_step = "balance_by_bytes does not exist."
    (made,) = Class("ex1", [one]).made()
    assert made.name == ABSENT and "<p>balance_by_bytes does not exist.</p>" in html([one, file("bob")])


def test_the_commonest_mistake_comes_first_and_an_unknown_one_last():
    files = [file("a", [KINDS]), file("b", [KINDS]), file("c", [KINDS])]
    for number, name in enumerate(("counts_elements", "round_robin", "round_robin")):
        files.append(file(f"d{number}", [TYPES], mistake=name))
    files += [file(name, [KINDS], stopped=True) for name in ("e", "f", "g", "h")]
    names = [made.name for made in Class("ex1", files).made()]
    assert names == ["round_robin", "counts_elements", ENDLESS, UNKNOWN], "also where more answers never end"


def test_an_answer_that_ends_its_process_has_a_line_of_its_own_and_no_answer_comes_last():
    gone = [file(name, [check.name for check in Q1.checks], unwritten=True) for name in ("a", "b")]
    ended = file("c", [check.name for check in Q1.checks], message="It ended.", crashed=True)
    one = Class("ex1", [*gone, ended, file("d", [KINDS])])
    assert [made.name for made in one.made()] == [CRASHED, UNKNOWN, ABSENT]
    assert "<p>It ended.</p>" in html(one.files)


def test_an_answer_that_is_wrong_first_and_never_ends_later_never_ends():
    one = file("a", [TYPES])
    one.reports[0].results[3] = result(Q1.checks[3], passed=False, stopped=True)
    assert [made.name for made in Class("ex1", [one]).made()] == [ENDLESS]


def test_what_stands_in_backquotes_is_code():
    assert pages.with_code("<a> `x < y`, `z`") == "&lt;a&gt; <code>x &lt; y</code>, <code>z</code>"
    assert pages.with_code("one ` of x") == "one ` of x"
    files = [file("ada"), file("bob", [KINDS], mistake="counts_elements", message="Not `b`.")]
    assert html(files).count("Not <code>b</code>.") == 2, "among the mistakes, and in the report"


def test_shares_are_of_those_whose_file_asks_the_question():
    files = [file("ada"), file("bob", [KINDS]), file("cyd", [TYPES], mistake="counts_elements")]
    q2 = find("placement/q2")
    files += [
        Graded(Submission(Path("x.py"), "dan", "ex1", ""), [Report(q2, [result(c) for c in q2.checks], "0", "dan")])
    ]
    one = Class("ex1", files)
    assert {(lost.question.id, lost.of) for lost in one.lost()} == {(Q1.id, 3), (q2.id, 1)}
    assert [(made.name, made.of) for made in one.made()] == [("counts_elements", 3), (UNKNOWN, 3)]
    assert "1 of 3" in html(files) and "0 of 1" in html(files)


def test_many_points_are_drawn_in_bars_of_several():
    one = file("ada")
    one.reports *= 9
    bars = list(Class("ex1", [one]).bars())
    assert len(bars) <= 21 and bars[0][:2] == (0, 4) and bars[-1] == (90, 90, 1, 0)
    assert all(before.most + 1 == after.least for before, after in pairwise(bars))


def test_the_page_opens_with_the_class_and_names_nobody_in_it(some):
    page = html(some)
    opening, _, rest = page.partition("All marks")
    (counts,) = (mistake for mistake in Q1.mistakes if mistake.name == "counts_elements")
    example = f"One example: balance_by_bytes in the check “{Q1.checks[2].title}”"
    for words in ("8 students, 5 with an answer", "8.2 of 10 points on average, median 8", counts.diagnosis, "2 of 5",
                  counts.cure, "The answer was stopped after", "in a way that the catalogue", example):  # fmt: skip
        assert words in re.sub(r"<[^>]+>", "", opening), words
    assert "The others: 1 as shipped, 1 could not be graded, 1 handed in nothing." in opening
    assert not {"ada", "bob", "cyd", "dan", "eve"} & set(re.findall(r"\w+", opening))
    assert page.count("to the top") == len(some) and ">remarks<" in rest


def test_of_several_assignments_there_is_a_list_that_leads_to_each(some):
    page = html([*some, file("ada", assignment="ex2"), file("bob", assignment="ex2")])
    assert re.sub(r"</?bdi>", "", page).count('<a href="#class-1">ex2</a>') == page.count('<h2 id="class-1">') == 1
    assert "Assignments: " in page and "Assignments: " not in html(some)


def test_the_code_that_is_a_files_own_stands_below_its_reports():
    shared = {1: "import dtflab", 3: 'dtflab.grade("placement/q1")'}
    files = [file(name) for name in ("ada", "bob", "cyd")]
    for one in files:
        one.others = {**shared}
    files[2].others |= {4: "os.kill(0, 9)", 2: "open('<seed>')"}
    killed = batch.none(Submission(Path("x"), "dan", "ex1", ""), [Q1], "It was killed.", ["spy()", WRITTEN, "pass"])
    other = batch.none(Submission(Path("x"), "eve", "ex2", ""), [Q1], "It was killed.", ["import dtflab"])
    shown = [articles_words(html([*files, killed, other]), number) for number in range(5)]
    assert ["few files" in words for words in shown] == [False, False, True, True, True]
    assert "2 cells that few files have cell 4 os.kill(0, 9) cell 2 open('<seed>')" in shown[2]
    assert "2 cells that few files have cell 1 spy() cell 3 pass" in shown[3] and shared[3] not in shown[2]
    assert "1 cell that few files have cell 1 import dtflab" in shown[4], "no other file of ex2 has it"


def articles_words(page, number):
    article = page.partition(f'id="file-{number}"')[2].partition("</article>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", article)).split())


def test_next_to_a_report_stand_its_picture_and_its_code():
    taken = file("ada")
    taken.reports = [judge(Q1, {Q1.answer: spread}, "0", "ada")]
    _, _, beside = html([taken]).partition('<div class="beside">')
    table, picture, code = (beside.index(part) for part in ("<table", "<img", "<details"))
    assert table < picture < code < beside.index("</article>")


def test_a_long_line_of_code_goes_on_further_in_than_it_begins():
    (pre,) = re.findall(r"<pre>.*?</pre>", html([file("ada", code="def f(x):\n\n    return x < 3\n")]), re.DOTALL)
    assert re.findall(r'style="--in:(\d+)ch">', pre) == ["4", "5", "8"], "its indentation, and four columns"
    assert unescape(re.sub(r"<[^>]+>", "", pre)) == "def f(x):\n\n    return x < 3\n"


class Links(HTMLParser):
    """The names of elements, the ids, and where links lead."""

    def __init__(self, page):
        super().__init__()
        self.found, self.ids, self.links = set(), set(), set()
        self.open = []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.found.add(name)
        given = dict(attributes)
        self.ids.add(given.get("id"))
        if "href" in given:
            self.links.add(given["href"].removeprefix("#"))
        if name not in ("meta", "img"):
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        assert name in ("img", "td", "th", "tr", "tbody", "thead"), f"<{name}/> would stay open"
        self.found.add(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name


HOSTILE = "<b onclick=x>\n\u202e</style><script>alert(1)</script><img src=http://x>"


def test_nothing_that_a_submission_says_is_html(some):
    plain = Links(html(some))
    some += [file(HOSTILE, [TYPES], assignment=HOSTILE, message=HOSTILE, output=HOSTILE, code=HOSTILE)]
    some[-1].output, some[-1].notes, some[-1].others = HOSTILE, [HOSTILE], {1: HOSTILE}
    plain.found |= {"details"}
    some += [batch.none(Submission(Path(HOSTILE), HOSTILE, HOSTILE, ""), [Q1], HOSTILE)]
    page = Links(html(some))
    assert page.found == plain.found and page.open == [] and page.links <= page.ids
    assert "default-src &#x27;none&#x27;" in html(some) or "default-src 'none'" in html(some)


# -- what comes from the process of a submission -----------------------------------------------------------


def spread(ps_tasks, worker):
    return lambda op: "/job:ps/task:0" if op.type in ("Variable", "VariableV2", "VarHandleOp") else worker


def test_the_picture_travels_as_an_image():
    report = judge(Q1, {Q1.answer: spread}, "0", "ada")
    taken = pages.report_of(json.loads(json.dumps(pages.sent(report))), Q1)
    (drawn,) = [one.picture for one in taken.results if one.picture is not None]
    assert drawn.svg == pages._picture(report).svg and pages.drawn(taken).startswith('<img src="data:image/svg+xml;')
    assert "<svg" not in pages.drawn(taken) and "svg" not in json.dumps(pages.data(report))
    assert [one.cure for one in taken.results] == [one.cure for one in report.results] != [""] * 5


def test_a_picture_that_is_none_or_too_large_is_left_out():
    large = loads("x" * pages._MOST, {"yours": {"/job:ps/task:0": 1.0}})
    report = Report(Q1, [Result(check, True, picture=large) for check in Q1.checks], "0", "ada")
    found = pages.sent(report)
    assert all("picture" not in check for check in found["checks"])
    found["checks"][0]["picture"] = [large.svg, ""]
    assert pages.report_of(found, Q1).results[0].picture is None
    found["checks"][0]["picture"] = 3
    with pytest.raises(ValueError, match="no report on placement/q1"):
        pages.report_of(found, Q1)


# -- processes that end ---------------------------------------------------------------------------------------


def blamed(error):
    """The file whose process ended like this while an answer was judged."""
    work = batch._Work(Submission(Path("x"), "ada", "ex1", ""), [WRITTEN], [Q1], batch.Options())
    work._now = ("judging", Q1.id, 0.0)
    work._blame(error)
    return work.graded(1.0)


def test_an_answer_whose_process_does_not_react_is_not_said_to_have_ended_it():
    deaf, crashed = blamed(isolation.DEAF), blamed("It crashed: signal SIGSEGV.")
    assert [(r.stopped, r.crashed) for r in deaf.reports[0].results] == [(True, False)] * 5
    assert [(r.stopped, r.crashed) for r in crashed.reports[0].results] == [(False, True)] * 5
    reacts = "its process did not react for 25 s. Look for an endless loop or thread."
    assert f"balance_by_bytes was stopped: {reacts}" in deaf.reports[0].next_step
    ended = "balance_by_bytes was being judged when its process ended. It crashed: signal SIGSEGV."
    assert crashed.reports[0].next_step == ended and html([deaf, crashed]).count("does not end in time") >= 1


def test_a_file_whose_process_goes_on_after_its_last_answer_has_a_note(monkeypatch):
    """A program that stops its parent does that."""

    def run(*_, heard, given, **__):
        heard(json.dumps([json.loads(given)["token"], "end", None, None]))
        return isolation.Ended("Stopped after 30 s: it did not come to an end.", "", 30.0)

    monkeypatch.setattr(isolation, "run", run)
    one = batch.grade(Submission(Path("x"), "ada", "ex1", ""), [WRITTEN], [], batch.Options())
    ended = "Stopped after 30 s: it did not come to an end."
    assert f"Everything was judged, but its process did not end by itself. {ended}" in one.notes


# -- as shipped ----------------------------------------------------------------------------------------------


def noted(*code, skip=(), errors=None):
    """The notes on a file with these cells, of which none has defined an answer, and what to do next."""
    work = batch._Work(Submission(Path("x"), "ada", "ex1", ""), list(code), [Q1], batch.Options())
    work.skip, work.errors = list(skip), errors or {}
    work.reports[Q1.id] = judge(Q1, {}, "0", "ada")
    graded = work.graded(1.0)
    return graded.notes, graded.reports[0].next_step


def test_only_the_stub_is_as_shipped():
    assert noted("x = 1", STUB)[0] == [SHIPPED]
    assert noted(STUB.replace("Error()", "Error"))[0] == [SHIPPED]
    assert noted(STUB.replace("# YOUR", "lines = []  # YOUR"), errors={2: "NotImplementedError"})[0] == [SHIPPED]
    began = STUB.replace("    # YOUR CODE HERE", "    held = [0]\n    size = 3")
    for cell in (WRITTEN, WRITTEN.replace("def", "def)"), began, STUB.replace("raise", "return 3  # raise")):
        assert SHIPPED not in noted(cell)[0], cell


def test_a_crash_or_a_hang_is_never_as_shipped():
    notes, next_step = noted(f"{STUB}\nwhile True: pass", errors={1: "stopped after 4 s"})
    assert notes == ["Cell 1: stopped after 4 s"]
    assert next_step == "balance_by_bytes does not exist: cell 1, which should define it, failed (stopped after 4 s)."
    next_step = noted(f"{STUB}\nos._exit(3)", skip=[1])[1]
    assert next_step.endswith("cell 1, which should define it, ended its process and was left out.")
    assert SHIPPED not in noted("import os; os._exit(3)", STUB, skip=[1])[0]


def test_an_answer_that_no_cell_defines_is_told():
    assert noted("x = 1")[0] == ["No cell defines balance_by_bytes."]


CELLS = {
    "def f(x):\n    return x": True, "async  def f(x): pass": True, "class f:\n    pass": True, "f = len": True,
    "if True:\n    f: object = len": True, "def f(x) broken": True, "f == 3": False, "def ff(): pass": False,
    "g(f=3)": False, "# def f(x)": False,
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_which_cell_defines_an_answer(cell):
    assert answer_cells.cell_of(["x = 1", cell, "f(3)"], "f") == (2 if CELLS[cell] else 0)


def test_the_last_cell_counts_and_a_long_one_is_cut():
    assert answer_cells.shown(["f = 1", "\n\nf = 2\n"], "f") == "f = 2"
    long = answer_cells.shown(["f = 1\n" + "#" * 30_000], "f")
    assert long.endswith("\n… and 10,006 characters more") and answer_cells.shown(["g = 1"], "f") == ""


def test_of_the_other_cells_there_is_as_much_as_people_read():
    assert answer_cells.others(["a", "f = 1", " \n", "\nb\n"], ["f"]) == {1: "a", 4: "b"}
    many = answer_cells.others(["#" * 19_990, "f = 1", "#" * 20, "c", "d"], ["f"])
    assert [*many] == [1, 3] and many[3] == "#" * 10 + "\n… and 10 characters more"
    assert answer_cells.others(["#" * 20_000], []) == {1: "#" * 20_000}
