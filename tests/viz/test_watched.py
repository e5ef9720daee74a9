"""Pictures of what a watch saw: calls, queues, clients, pipelines, variables; from one to many."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import dtflab as tf
from dtflab.cluster.holdings import HeldQueue, HeldVariable
from dtflab.graph.watch import Call, QueueEvent, Use, Watch
from dtflab.machine.clock import current
from dtflab.viz import pipeline, queue_course
from dtflab.viz.palette import GREY
from dtflab.viz.parties import party
from dtflab.viz.style import MARGIN
from dtflab.viz.svg import text_width

PS, W0, W1 = (f"/job:{job}/replica:0/task:{n}" for job, n in (("ps", 0), ("worker", 0), ("worker", 1)))
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    return [text.text for text in ET.fromstring(picture.svg.encode()).iter(f"{SVG}text")]


def fits(picture):
    """Everything lies within the picture: boxes, and the ends of texts as they are measured."""
    root = ET.fromstring(picture.svg.encode())
    width = float(root.get("viewBox").split()[2]) - 2 * MARGIN
    for rect in list(root.iter(f"{SVG}rect"))[1:]:
        assert float(rect.get("x", 0)) >= -0.01
        assert float(rect.get("x", 0)) + float(rect.get("width")) <= width + 0.5, ET.tostring(rect)
    for text in root.iter(f"{SVG}text"):
        class_ = (text.get("class") or "").split()
        size, x = (11.0 if "s11" in class_ else 12.0), float(text.get("x", 0))
        if "14px" not in (text.get("style") or ""):
            wide = text_width(text.text, size, bold="b" in class_)
            left = x - wide if "end" in class_ else x - wide / 2 if "mid" in class_ else x
            assert left >= -1.0 and left + wide <= width + 8, (text.text, left, wide, width)
    return True


def call(at, method, source, target, ended=None, nbytes=0, detail="", step=1, error="", turn=[0]):  # noqa: B006
    turn[0] += 2
    end = at if ended is None else ended
    return Call(at, method, source, target, nbytes, detail, end, 0, step, error, turn[0] - 1, turn[0])


def a_step(step, start, workers=(W1,)):
    """The calls of one step, in the order in which they become known."""
    pulled = [
        call(start + 2, "RecvTensor", W0, w, start + 3, 400, f"{w};1;{W0};edge_1_loss;0:0", step) for w in workers
    ]
    return [*(call(start + 1, "RunGraph", W0, w, step=step) for w in workers), *pulled,
            call(start, "RunStep", "client", W0, start + 4, 4, "loss:0", step)]  # fmt: skip


def seen_of(calls=(), queues=(), uses=()):
    seen = Watch(current)
    seen.calls += calls
    seen.queues += queues
    seen.uses.update(dict.fromkeys(uses))
    return seen


# ---- calls ----


def test_a_step_is_drawn_from_its_request_to_its_answer():
    picture = tf.viz.wire(seen_of(a_step(7, 0.0)))
    words = texts(picture)
    order = [
        word for word in words if word.split("  ")[0] in ("RunStep", "RunGraph", "RecvTensor", "loss", "RunStep ended")
    ]
    assert order[0].startswith("RunStep  loss:0") and order[-1].startswith("RunStep ended")
    assert "RecvTensor  loss" in words and "loss  400 B" in words
    assert "3 calls between 1 client and 2 tasks, 404 B of tensors" in picture.sentence
    assert fits(picture)


def test_a_dot_says_where_an_arrow_to_both_sides_begins():
    both = [call(0.0, "RunGraph", W1, PS), call(0.0, "RunGraph", W1, W0)]
    assert "<circle" in tf.viz.wire(both).svg
    assert "<circle" not in tf.viz.wire(both[:1]).svg


def test_one_step_of_several_is_chosen_by_its_number():
    calls = [*a_step(7, 0.0), *a_step(9, 10.0, (W1, PS)), *a_step(8, 20.0)]
    for number, nbytes in ((1, "404"), (2, "804"), (-2, "804"), (-1, "404")):
        assert nbytes in tf.viz.wire(calls, number).sentence
    with pytest.raises(ValueError, match="no step 4: 3 steps were watched, counted from 1"):
        tf.viz.wire(calls, 4)
    with pytest.raises(ValueError, match="Nothing was called"):
        tf.viz.wire([])


def test_graphs_are_registered_within_the_first_step():
    calls = [call(0.5, "RegisterGraph", W0, W1, step=0), *a_step(7, 0.0), *a_step(8, 10.0)]
    assert "RegisterGraph" in str(tf.viz.wire(calls, 1)) and "RegisterGraph" not in str(tf.viz.wire(calls, 2))


@pytest.mark.parametrize("look", ["default", "projector"])
def test_a_long_name_on_an_arrow_stays_between_its_columns(look):
    name = "gradients/layer1/weights/MatMul_grad/tuple/control_dependency"
    calls = [
        call(0.0, "RunStep", "client", W0, 4.0, detail="loss:0"),
        call(1.0, "RecvTensor", W1, PS, 2.0, 400, f"{PS};1;{W1};edge_1_{name};0:0"),
    ]
    tf.viz.style(look)
    try:
        picture = tf.viz.wire(calls)
    finally:
        tf.viz.style("default")
    root = ET.fromstring(picture.svg.encode())
    columns = sorted({float(path.get("d")[1:].split()[0]) for path in root.iter(f"{SVG}path")
                      if path.get("class") == "life"})  # fmt: skip
    long = [text for text in root.iter(f"{SVG}text") if re.search("(^|  )gr.*…", text.text)]
    assert [text.text.partition("  ")[0] == "RecvTensor" for text in long] == [True, False]
    for text in long:
        assert columns[2] < float(text.get("x")) and float(text.get("x")) + text_width(text.text, 11) < columns[3]
    assert any(text.text.endswith("  400 B") for text in long)
    assert f"RecvTensor {name}, worker:1 → ps:0" in picture.svg and name in [row[7] for row in picture.tables[1][2]]
    assert fits(picture)


def test_errors_stand_on_the_answer():
    words = texts(tf.viz.wire([call(0.0, "RunStep", "client", W0, 1.0, detail="train", error="AbortedError")]))
    assert "AbortedError: RunStep ended" in words


def test_many_calls_and_tasks_are_left_out_and_counted():
    tasks = [f"/job:worker/replica:0/task:{n}" for n in range(60)]
    picture = tf.viz.wire([one for step in range(1, 61) for one in a_step(step, step * 10.0, tasks[1:])])
    assert "(the first 60 of " in picture.sentence and "that call most have columns of their own" in picture.sentence
    assert len(picture.tables[1][2]) == 1000 and "first 1,000 of 7,140" in picture.tables[1][0]
    assert sum(row[3] for row in picture.tables[0][2]) == 60 * (59 * 2 + 1)
    assert fits(picture) and len(picture.svg) < 200_000


def test_long_names_do_not_leave_the_picture():
    name = "a/very/long/name/of/a/tensor/" * 8
    client = "a thread with quite a long name that nobody will ever read"
    picture = tf.viz.wire([call(0.0, "RunStep", client, W0, 1.0, detail=name), *a_step(5, 2.0)])
    assert fits(picture)


# ---- queues ----


def event(at, what, elements, level, op="op", client="client", step=1, over=True, wants="", error="", queue="q", cap=4):
    return QueueEvent(at, f"{PS}/device:CPU:0", queue, what, elements, level, cap, op, client, step, over, wants, error)


def a_wait(queue="q", start=0.0):
    return [
        event(start, "put", 4, 4, "put", "A", 1, queue=queue),
        event(start + 1.0, "wait", 0, 4, "put", "A", 2, False, "put", queue=queue),
        event(start + 3.0, "take", 1, 3, "take", "B", 3, queue=queue),
        event(start + 3.0, "put", 1, 4, "put", "A", 2, queue=queue),
    ]


def test_the_course_of_a_queue():
    (course,) = queue_course.courses(a_wait())
    assert (course.put, course.taken, course.most, course.capacity) == (5, 1, 4, 4)
    assert [(wait.seconds, wait.wants, wait.op, wait.open) for wait in course.waits] == [(2.0, "put", "put", False)]
    assert course.waited("put") == 2.0 and course.waited("take") == 0.0
    assert course.mean() == 4.0 and course.share_at(4) == 1.0


def test_who_still_waits_does_so_until_the_watch_ended():
    seen = seen_of(queues=[event(1.0, "wait", 0, 0, "take", "B", 3, False, "take")])
    seen.began, seen.ended, seen._own = 0.5, 9.0, current()
    (course,) = queue_course.courses(seen)
    assert [(wait.seconds, wait.open) for wait in course.waits] == [(8.0, True)]
    assert "still waits" in texts(tf.viz.queues(seen)) and "take still waits to take" in tf.viz.queues(seen).sentence


def test_a_queue_is_drawn_with_its_capacity_and_who_waits():
    picture = tf.viz.queues([*a_wait(), event(5.0, "close", 0, 4, "q_Close", "A", 5)])
    words = texts(picture)
    assert {"capacity 4", "closed", "5 put, 1 taken", "put · A", "0 elements"} <= set(words)
    assert fits(picture)


def test_a_wait_that_ends_badly_says_how():
    events = [
        event(0.0, "wait", 0, 0, "take", "B", 3, False, "take"),
        event(1.0, "end", 0, 0, "take", "B", 3, error="CancelledError"),
    ]
    assert "CancelledError" in texts(tf.viz.queues(events))


def test_no_limit_and_a_capacity_far_away():
    without = texts(tf.viz.queues([event(0.0, "put", 3, 3, cap=0), event(1.0, "put", 1, 4, cap=0)]))
    assert "4" in without and not any(word.startswith("capacity ") for word in without)
    assert "3 of 1,000" in texts(tf.viz.queues([event(0.0, "put", 3, 3, cap=1000), event(1.0, "take", 1, 2, cap=1000)]))


def test_a_queue_that_stays_empty_shows_no_level_that_it_never_had():
    wait = event(0.0, "wait", 0, 0, "take", "B", 3, False, "take", cap=100)
    words = texts(tf.viz.queues([wait, event(1.0, "close", 0, 0, cap=100)]))
    assert {"0 elements", "capacity 100"} <= set(words) and "1" not in words
    unlimited = texts(tf.viz.queues([wait._replace(capacity=0)]))
    assert "0 elements" in unlimited and "1" not in unlimited


def test_many_queues_events_and_waiters():
    many = [one for n in range(250) for one in a_wait(start=4.0 * n)]
    others = [one for n in range(9) for one in a_wait(f"queue_{n}", n)]
    crowd = [
        event(n / 10, "wait", 0, 4, f"put_{n}", f"client /job:worker/task:{n}", 1000 + n, False, "put")
        for n in range(60)
    ]
    picture = tf.viz.queues([*many, *others, *crowd])
    assert "(the 6 with most events are drawn)" in picture.sentence
    assert any("more waited" in word for word in texts(picture))
    assert "first 1,000 of 1,096" in picture.tables[2][0]
    assert fits(picture) and len(picture.svg) < 300_000


@pytest.mark.parametrize("short", [399, 599, 600, 601])
def test_of_very_many_waits_the_longest_and_the_open_one_are_drawn(short):
    """One op waits 3 s, then often for 1 ms, and waits still; what is left out are short ones, and they are counted."""
    events = []
    for n, seconds in enumerate([3.0, *[0.001] * short]):
        began = n if n == 0 else 3.0 + n * 0.01
        events += [event(began, "wait", 0, 0, "take", "B", n, False, "take"),
                   event(began + seconds, "take", 1, 0, "take", "B", n)]  # fmt: skip
    end = events[-1].at
    events += [event(end, "wait", 0, 0, "take", "B", -1, False, "take"), event(end + 2.0, "put", 1, 1, "put", "A", -2)]
    picture = tf.viz.queues(events)
    words, root = texts(picture), ET.fromstring(picture.svg.encode())
    assert words.count("still waits") == 1
    (lane,) = (g for g in root.iter(f"{SVG}g") if any("waited" in (t.text or "") for t in g.findall(f"{SVG}title")))
    bars = [(float(rect.get("x")), float(rect.get("width"))) for rect in lane.iter(f"{SVG}rect")]
    widths = sorted((width for _, width in bars), reverse=True)
    assert 200 < len(widths) <= 400 and widths[0] > 1.4 * widths[1] > 50 * widths[2]  # 3 s, 2 s (the open one), 1 ms
    assert all(b - (a + width) < 6 for (a, width), (b, _) in pairwise(bars))  # no time looks as if nobody waited
    assert f"{short + 2 - len(bars)} short waits are not drawn" in words
    assert fits(picture)


def test_nothing_at_queues_is_told():
    for draw in (tf.viz.queues, tf.viz.rates):
        with pytest.raises(ValueError, match="Nothing happened at a queue"):
            draw(seen_of())


def test_one_moment_is_enough_for_a_picture():
    assert fits(tf.viz.queues([event(1.0, "put", 1, 1)]))
    assert fits(tf.viz.rates(seen_of(queues=[event(1.0, "put", 1, 1)])))
    assert fits(tf.viz.wire([call(1.0, "RunStep", "client", W0)]))


# ---- queues now ----


def held(name="q", level=2, capacity=4, waiting=(), closed=False):
    return HeldQueue(f"{PS}/device:CPU:0", "localhost", name, "FIFOQueue", level, capacity, closed, waiting)


def test_queues_as_they_are_now():
    waiting = (("put", "put", "client /job:worker/task:1"), ("other", "put", ""))
    picture = tf.viz.queues_now([held(waiting=waiting), held("empty", 0, 0, closed=True)])
    assert {"2 of 4", "put waits to put (client of worker:1)", "other waits to put", "0, no limit, closed"} <= set(
        texts(picture)
    )
    assert fits(picture)
    with pytest.raises(ValueError, match="no queue yet"):
        tf.viz.queues_now([])


def test_many_queues_now():
    waiting = tuple((f"op{n}", "take", "") for n in range(60))
    picture = tf.viz.queues_now([held("a_long_name_" * 9 + str(n), waiting=waiting) for n in range(50)])
    assert "the first 20 are drawn" in " ".join(texts(picture)) and "and 56 more" in texts(picture) and fits(picture)
    assert len(picture.tables[0][2]) == 50


# ---- variables ----


def variable(task=PS, name="w", nbytes=400, container="localhost", initialized=True):
    return HeldVariable(task, f"{task}/device:CPU:0", container, name, "float32", (10, 10), nbytes, initialized)


def test_who_holds_which_variable():
    picture = tf.viz.variables(
        [
            variable(),
            variable(W0, "b", 100),
            variable(W0, "x", 300, "mine"),
            variable(name="u", nbytes=0, initialized=False),
        ]
    )
    assert {"400 B in 2 variables, 1 without a value", "400 B in 2 variables", "w"} <= set(texts(picture))
    assert "container mine" in picture.sentence and fits(picture)


def test_variables_of_a_cluster_and_of_a_session():
    with tf.Cluster(ps=2, worker=1) as cluster:
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            for n in range(3):
                tf.get_variable(f"w{n}", [10, n + 1])
        with tf.Session(cluster.target) as sess:
            with pytest.raises(ValueError, match="No variable is held yet"):
                tf.viz.variables(cluster)
            sess.run(tf.global_variables_initializer())
            assert tf.variables_of(sess) == cluster.variables()
            assert [(v.name, v.task[5:9], v.shape, v.nbytes) for v in cluster.variables()] == [
                ("w0", "ps/r", (10, 1), 40), ("w2", "ps/r", (10, 3), 120), ("w1", "ps/r", (10, 2), 80)
            ]  # fmt: skip
            assert str(tf.viz.variables(sess)) == str(tf.viz.variables(cluster))


def test_variables_of_a_local_session_and_of_resources():
    tf.get_variable("r", [3], use_resource=True)
    tf.get_variable("plain", [2])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sorted((v.name, v.nbytes, v.initialized) for v in tf.variables_of(sess)) == [
            ("plain", 8, True),
            ("r", 12, True),
        ]


def test_many_variables_on_many_tasks():
    tasks = [f"/job:ps/replica:0/task:{n}" for n in range(60)]
    picture = tf.viz.variables(
        [variable(task, f"layer{n}/a_long_name_of_weights", 100 * n) for task in tasks for n in range(40)]
    )
    assert "the 24 that hold most are drawn" in picture.sentence and "first 1,000 of 2,400" in picture.tables[1][0]
    assert fits(picture)


# ---- clients ----


def test_clients_tasks_and_what_they_share():
    device = f"{PS}/device:CPU:0"
    calls = [call(0.0, "RunStep", "A", W0), call(0.0, "RunStep", "B", W1)]
    uses = [Use("A", device, "", "x"), Use("B", device, "problem", "x")]
    events = [event(0.0, "put", 1, 1, client="A"), event(1.0, "take", 1, 0, client="B")]
    picture = tf.viz.clients(seen_of(calls, events, uses))
    rows = [row[:3] for row in picture.tables[0][2]]
    assert rows == [
        ["A", "has a session at", "worker:0"], ["B", "has a session at", "worker:1"], ["A", "uses", "x"],
        ["B", "uses", "problem/x"], ["A", "puts into", "q"], ["B", "takes from", "q"],
    ]  # fmt: skip
    assert "2 clients, 3 tasks, 2 variables, 1 queue" in picture.sentence
    assert {"client A", "client B", "x", "problem/x", "C1, C2"} <= set(texts(picture)) and fits(picture)


def test_clients_are_grey_with_their_letters_at_all_that_they_reach():
    calls = [call(0.0, "RunStep", "A", W0), call(0.0, "RunStep", "B", W0), call(0.0, "RunStep", "C", W1)]
    uses = [Use("A", f"{PS}/device:CPU:0", "", "x"), Use("C", f"{PS}/device:CPU:0", "", "y")]
    picture = tf.viz.clients(seen_of(calls, (), uses))
    words = texts(picture)
    badges = {party(task).colour.fill for task in (PS, W0, W1)}
    seen = set(re.findall(r"#[0-9A-Fa-f]{6}", picture.svg.partition("</style>")[2]))
    assert badges < seen and {colour.upper() for colour in seen - badges} <= {c.upper() for c in GREY} | {"#111111"}
    assert [words[words.index(name) + 1] for name in ("worker:0", "worker:1", "x", "y")] == ["C1, C3", "C2", "C1", "C2"]
    assert fits(picture)


def test_the_legend_of_clients_explains_what_is_there():
    calls = [call(0.0, "RunStep", "A", W0)]
    uses, puts = [Use("A", f"{PS}/device:CPU:0", "", "x")], [event(0.0, "put", 1, 1, client="A")]
    all_ways = {"session, at this master", "uses a variable", "puts into a queue", "takes from a queue"}
    for seen, drawn in ((seen_of(calls, (), uses), 2), (seen_of(calls, puts, uses), 3), (seen_of(calls), 1)):
        assert len(all_ways & set(texts(tf.viz.clients(seen)))) == drawn
    assert "puts into a queue" not in texts(tf.viz.clients(seen_of(calls, (), uses)))


def test_clients_that_do_the_same_are_one_and_so_are_things_used_alike():
    device = f"{PS}/device:CPU:0"
    clients = [f"client /job:worker/task:{n}" for n in range(60)]
    calls = [call(0.0, "RunStep", client, f"/job:worker/replica:0/task:{n}") for n, client in enumerate(clients)]
    uses = [Use(client, device, "", f"layer{n}/weights") for client in clients for n in range(20)]
    picture = tf.viz.clients(seen_of(calls, (), uses))
    words = texts(picture)
    assert "60 clients that do the same" in words and "20 variables " in words
    assert "worker:0 and 59 more, which hold nothing" in words
    assert "60 clients, 61 tasks, 20 variables" in picture.sentence
    assert len(picture.tables[0][2]) == 60 + 1200 and fits(picture)


def test_many_different_clients_are_left_out_and_counted():
    calls = [call(0.0, "RunStep", f"c{n}", W0) for n in range(20)]
    uses = [Use(f"c{n}", f"{PS}/device:CPU:0", "", f"v{n}") for n in range(20)]
    picture = tf.viz.clients(seen_of(calls, (), uses))
    assert "8 clients not drawn" in " ".join(texts(picture)) and "and 12 more" in texts(picture) and fits(picture)
    with pytest.raises(ValueError, match="No client asked"):
        tf.viz.clients(seen_of())


# ---- pipelines ----


def line(slow):
    """A line of three stages, one step per element: one stage takes 10 s for an element, the others 1 s.

    Virtual time's clock does the rest: each stage is the client of a task.
    """
    home = "/job:worker/task:0"
    with tf.Graph().as_default(), tf.Cluster(worker=3, clock="virtual") as cluster, tf.device(home):
        queues = [tf.FIFOQueue(2, [tf.int32], shapes=[[]], name=f"q{n}", shared_name=f"q{n}") for n in range(2)]
        ops = [
            queues[0].enqueue(1, name="read"), queues[1].enqueue(queues[0].dequeue(), name="decode"),
            queues[1].dequeue(name="train"),
        ]  # fmt: skip

        def work(client):
            with tf.Session(client.target, graph=ops[0].graph) as sess:
                for _ in range(12):
                    cluster.clock.sleep(10.0 if client.index == slow else 1.0)
                    sess.run(ops[client.index])

        with tf.watch() as seen:
            cluster.run(work)
    return seen


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_the_bottleneck_is_the_stage_that_works_most(slow):
    seen = line(slow)
    found = pipeline.pipeline(seen)
    name = ("read", "decode", "train")[slow]
    assert [stage.name for stage in found.stages] == ["read", "decode", "train"]
    assert found.bottleneck().name == name
    assert all(stage.steps == 12 and stage.workers == 1 for stage in found.stages)
    before, after = found.stages[:slow], found.stages[slow + 1 :]
    assert all(stage.waited_to_put > 5 * stage.waited_to_take for stage in before)
    assert all(stage.waited_to_take > 5 * stage.waited_to_put for stage in after)
    picture = tf.viz.rates(seen)
    assert f"The bottleneck is {name}: it was at work" in picture.sentence and "bottleneck" in texts(picture)
    assert picture.sentence.count("elements/s: 0.1") >= 3 and fits(picture)


def test_who_is_done_early_is_no_bottleneck():
    events = [event(0.1 * n, "put", 1, n + 1, "names", "A", n, queue="names", cap=10) for n in range(4)]
    for n in range(4):
        took = event(10.0 * n, "take", 1, 3 - n, "take", "B", 100 + n, queue="names", cap=10)
        events += [took, event(10.0 * n + 9.0, "put", 1, 1, "decode", "B", 100 + n)]
        events += [event(10.0 * n, "wait", 0, 0, "train", "C", 200 + n, False, "take"),
                   event(10.0 * n + 9.0, "take", 1, 0, "train", "C", 200 + n)]  # fmt: skip
    assert pipeline.pipeline(seen_of(queues=events)).bottleneck().name == "decode"


def test_steps_beside_each_other_are_workers_of_one_stage():
    events = []
    for n in range(3):
        events += [
            event(0.0, "wait", 0, 0, "take", f"T{n}", n, False, "take"),
            event(4.0 + n, "take", 1, 0, "take", f"T{n}", n),
        ]
    (stage,) = pipeline.pipeline(seen_of(queues=events)).stages
    assert stage.workers == 3 and stage.waited_to_take == 4 + 5 + 6
    assert "take × 3" in texts(tf.viz.rates(seen_of(queues=events)))


def test_no_bottleneck_where_nobody_waits_or_nobody_else_is():
    assert "No bottleneck: one stage alone" in str(tf.viz.rates(seen_of(queues=[event(0.0, "put", 1, 1)])))
    both = [event(0.0, "put", 1, 1, "a", "A", 1), event(1.0, "take", 1, 0, "b", "B", 2)]
    assert "No bottleneck: nobody waited" in str(tf.viz.rates(seen_of(queues=both)))


def test_a_circle_of_queues_and_many_stages():
    events = []
    for n in range(40):
        events += [
            event(n, "take", 1, 0, f"take{n}", "A", n, queue=f"q{n}"),
            event(n + 0.5, "put", 1, 1, f"stage{n}", "A", n, queue=f"q{(n + 1) % 40}"),
        ]
    picture = tf.viz.rates(seen_of(queues=events))
    assert "the first 24 of 80 are drawn" in picture.sentence and len(picture.tables[0][2]) == 40 and fits(picture)


# ---- in the style of a projector ----


@pytest.mark.parametrize("draw", ["wire", "queues", "clients", "rates", "variables", "queues_now"])
def test_all_fit_the_narrow_page_of_a_projector(draw, monkeypatch):
    seen = line(1)
    given = {"variables": [variable(), variable(W0, "x" * 80)], "queues_now": [held("q" * 80)]}
    tf.viz.style("projector")
    try:
        assert fits(getattr(tf.viz, draw)(given.get(draw, seen)))
    finally:
        tf.viz.style("default")
