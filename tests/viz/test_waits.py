"""Waits: circles, chains, and what merely hangs on them; as data, in words and as a picture."""

from __future__ import annotations

import threading

import pytest

import dtflab as tf
from dtflab.machine.clock import REAL
from dtflab.runtime.standstill import InLine, Owed, Program, Reserving, Resting, Silent, Uses
from dtflab.viz.data.waits_for import sentences, waits_for
from tests.viz.watched import PS, W0, W1, fits, texts

W2 = W1.replace("task:1", "task:2")
HERE = f"{PS}/device:CPU:0"


def in_line(step, queue, needs):
    wants, level = ("room for 1 more", "5 of 5 elements") if needs == "take" else ("1 more", "0 of 5 elements")
    op = f"{'put' if needs == 'take' else 'take'}_{queue}"
    return InLine(step, op, HERE, "localhost", queue, False, needs, wants, level)


def program(master, steps, ran="", could=""):
    """The session at a master; `ran` and `could` name ops as `put:images take:labels`."""
    uses = [(each, True) for each in ran.split()] + [(each, False) for each in could.split()]
    split = [(*each.split(":"), has_run) for each, has_run in uses]
    found = tuple(Uses(f"{does}_{queue}", does, HERE, "localhost", queue, has_run) for does, queue, has_run in split)
    return Program(f"{master}{steps}", master, "", tuple(steps), found)


def two_clients(loader=1, trainer=2):
    """The loader is blocked in one step, the trainer in another; each graph has all four ops."""
    return [
        in_line(loader, "images", "take"), in_line(trainer, "labels", "put"),
        program(W0, [loader], "put:images", "put:labels take:images take:labels"),
        program(W1, [trainer], "take:images take:labels", "put:images put:labels"),
    ]  # fmt: skip


CIRCLE = [Owed(2, W1, PS, "take_labels"), *two_clients()]


def names(found, keys):
    return [found.waiters[key].name for key in keys]


def test_two_clients_and_two_queues_are_a_circle():
    found = waits_for(CIRCLE)
    (circle,) = found.circles
    assert names(found, circle) == ["put_images", "images", "take_labels", "labels"]
    assert len(found.stuck) == 5, "worker:1 waits for the circle without being in it"
    (said,) = sentences(found)
    assert said == (
        "A circle: client of worker:0 (put_images) waits until client of worker:1 takes from images, "
        "client of worker:1 (take_labels) until client of worker:0 puts into labels. "
        "None of them can move by itself."
    )
    assert sentences(waits_for(CIRCLE, proved=True))[0].endswith("Nobody can move.")


def test_the_picture_marks_the_circle_and_draws_beside_it_what_hangs_on_it():
    picture = tf.viz.waits(CIRCLE)
    assert picture.svg.count("way ring") == 4 + 1, "four arrows, and the legend's"
    assert {
        "put_images",
        "images",
        "take_labels",
        "labels",
        "worker:1",
        "room for 1 more",
        "a put by put_labels",
    } <= set(texts(picture))
    assert fits(picture) and "worker:1 (client of worker:1) waits for take_labels: take_labels" in texts(
        tf.viz.waits(CIRCLE, width=480)
    )
    (table,) = picture.tables
    assert [row[5] for row in table[2]] == ["yes", "yes", "yes", "yes", ""]


def in_threads(third=False):
    """Two threads of one session, each with `enqueue(dequeue())` by way of a worker; a third just takes."""
    here, steps = program(W0, [1, 2, 3], "take:left take:right"), [(1, "left", W0), (2, "right", W1), (3, "left", W0)]
    uses = [Uses("a", "put", HERE, "localhost", "right", True), Uses("b", "put", HERE, "localhost", "left", True)]
    facts = [here._replace(uses=(*here.uses, *uses))]
    for step, queue, worker in steps[: 2 + third]:
        line = in_line(step, queue, "put")
        facts += [line._replace(op=f"{line.op}{step}"), Owed(step, worker, PS, f"{line.op}{step}")]
    return [*facts, Owed(1, PS, W0, "add"), Owed(2, PS, W1, "add_1")]


def test_threads_of_one_session_are_told_apart_by_their_ops():
    (said,) = sentences(waits_for(in_threads()))
    assert said == (
        "A circle: client of worker:0 (take_left1) waits until b puts into left, "
        "client of worker:0 (take_right2) until a puts into right. None of them can move by itself."
    )


def three(offset=0, masters=(W0, W1, W2)):
    """Each of three clients takes from the queue that the one before it would fill."""
    queues = [f"q{offset + i}" for i in range(3)]
    facts = []
    for i, master in enumerate(masters):
        step = offset + i + 1
        facts += [in_line(step, queues[i], "put"), program(master, [step], "", f"put:{queues[i - 1]}")]
    return facts


def test_three_in_a_circle():
    found = waits_for(three())
    (circle,) = found.circles
    assert names(found, circle) == ["take_q0", "q0", "take_q1", "q1", "take_q2", "q2"]
    assert fits(tf.viz.waits(three()))


def test_two_circles_are_two_parts():
    masters = tuple(W0.replace("task:0", f"task:{n}") for n in (3, 4, 5))
    found = waits_for([*three(), *three(10, masters)])
    assert [len(circle) for circle in found.circles] == [6, 6] and not set(found.circles[0]) & set(found.circles[1])
    assert fits(tf.viz.waits([*three(), *three(10, masters)]))


def test_a_queue_that_nobody_fills_ends_a_chain():
    facts = [in_line(1, "empty", "put"), program(W0, [1], "take:empty"), program(W1, [])]
    found = waits_for(facts)
    assert not found.circles and len(found.stuck) == 2
    assert sentences(found) == [
        "take_empty (client of worker:0) waits for empty, and no open session has an op that puts into it."
    ]
    picture = tf.viz.waits(facts)
    assert fits(picture) and picture.svg.count("way ring") == 0 and "nobody" in picture.text


def test_a_client_that_could_still_come_is_no_standstill():
    facts = [in_line(1, "q", "put"), program(W0, [1], "take:q"), program(W1, [], "put:q")]
    found = waits_for(facts)
    assert not found.stuck and sentences(found) == ["No circle: client of worker:1 can still move."]
    assert waits_for(facts, proved=True).stuck == set(found.waiters)


def test_who_filled_a_queue_before_is_asked_before_who_only_could():
    idle = program(W2, [], "", "take:images put:labels")
    assert waits_for([*CIRCLE, idle]).circles == [], "nobody has put labels yet: worker 2 might"
    assert len(waits_for([*CIRCLE, program(W2, [], "", "take:images")]).circles) == 1


def test_a_client_may_wait_for_itself():
    private = in_line(1, "q", "take")._replace(private=True)
    alone = [private, program(W0, [1], "put:q", "take:q"), program(W1, [], "take:q")]
    assert waits_for(alone).circles == [], "another thread of it may come"
    proved = waits_for(alone, proved=True)
    assert proved.stuck == set(proved.waiters), "in virtual time, none will come"
    stepping = alone[1]._replace(client="client")  # a session's, which a thread of the program has made
    found = waits_for([private, stepping, Resting("MainThread", "step 1")], proved=True)
    said = [(waiter.name, waiter.about) for waiter in found.waiters.values()]
    assert said[0] == ("put_q", "MainThread") and said[2] == ("MainThread", "in this step itself"), "one name for it"
    facts = [Reserving("client /job:worker/task:0", "1 GPU", ("client /job:worker/task:0",))]
    found = waits_for(facts)
    assert names(found, found.circles[0]) == ["client of worker:0"] and "waits for itself" in sentences(found)[0]
    assert fits(tf.viz.waits(facts))


def test_clients_that_hold_what_others_want():
    facts = [
        Reserving("client A", "2 GPUs", ("client A", "client B")),
        Reserving("client B", "2 GPUs", ("client A", "client B")),
    ]
    found = waits_for(facts)
    assert names(found, found.circles[0]) == ["client A", "client B"] and fits(tf.viz.waits(facts))


def test_tasks_that_owe_each_other_tensors_of_a_step_compute():
    """Tensors of a step never wait in a circle, though a healthy step that computes may look like one."""
    pair = [program(W0, [1]), Owed(1, W0, PS, "sum"), Owed(1, PS, W0, "gradient")]
    for facts in (pair, [*pair, Owed(1, W1, PS, "w"), Owed(1, PS, W1, "gradient_1"), Owed(1, W1, W0, "loss")]):
        found = waits_for(facts)
        assert not found.circles and not found.stuck and "can still move" in sentences(found)[0]


def test_a_queue_that_holds_up_tasks_that_owe_each_other_is_at_the_end_of_all_arrows():
    pair = [Owed(2, W0, W2, "sum"), Owed(2, W2, W0, "gradient"), Owed(2, W2, PS, "take_labels")]
    found = waits_for([*CIRCLE, *pair])
    (circle,) = found.circles
    assert names(found, circle) == ["put_images", "images", "take_labels", "labels"]
    arrows = {(found.waiters[arrow.source].name, found.waiters[arrow.target].name) for arrow in found.arrows}
    assert arrows > {("worker:0", "worker:2"), ("worker:2", "take_labels"), ("worker:1", "take_labels")}
    assert ("worker:2", "worker:0") not in arrows
    assert "does not answer" not in " ".join(sentences(found))


def test_a_silent_task_and_one_at_work():
    owed = Owed(1, W0, PS, "w")
    assert not waits_for([owed, program(W0, [1])]).stuck
    gone = waits_for([owed, program(W0, [1]), Silent(PS, "stopped")])
    assert names(gone, gone.waiters) == ["worker:0", "ps:0"] and len(gone.stuck) == 2
    assert sentences(gone) == ["ps:0, for which others wait, does not answer: stopped"]
    assert fits(tf.viz.waits([owed, program(W0, [1]), Silent(PS, "stopped")]))


def test_a_step_that_nothing_is_known_to_block_may_wait_for_a_task_that_does_not_answer():
    paused = waits_for([program(W0, [1]), program(W2, []), Silent(W1, "it is paused")])
    assert [(paused.waiters[a.source].name, paused.waiters[a.target].name, a.what) for a in paused.arrows] == [
        ("client of worker:0", "worker:1", "perhaps its part of a step")
    ]
    assert sentences(paused) == ["worker:1, for which a step may wait, does not answer: it is paused"]
    blocked = waits_for([program(W0, [1]), Owed(1, W0, PS, "w"), Silent(W1, "it is paused")])
    assert [blocked.waiters[arrow.target].name for arrow in blocked.arrows] == ["ps:0"], "that is known"


def test_a_paused_task_answers_nothing():
    with tf.Cluster(ps=1, worker=1) as cluster:
        cluster.tasks[1].pause()
        try:
            (silent,) = (fact for fact in cluster.standstill() if isinstance(fact, Silent))
            assert silent.task == W0 and "is paused" in silent.why
        finally:
            cluster.tasks[1].go_on()
        assert not any(isinstance(fact, Silent) for fact in cluster.standstill())


def test_a_thread_that_waits_for_another_one():
    late = Resting("client /job:worker/task:2", "the end of thread 'late'")
    clients = [program(W0, [1], "put:images", "put:labels"), program(W1, [2], "take:labels")]
    facts = [*CIRCLE[1:3], *clients, program(W2, [], "take:images"), late]
    found = waits_for(facts, proved=True)
    assert "client of worker:2" in names(found, found.stuck) and not found.circles


def test_nobody_waits():
    picture = tf.viz.waits([program(W0, [])])
    assert "Nothing to draw yet" in picture.svg and picture.sentence.startswith("Nobody waits: no op for a queue")


# -- on clusters ------------------------------------------------------------------------------------------------


def two_queues(client, room=1):
    """The loader puts two images before two labels; the trainer takes an image, a label, and again."""
    with tf.device("/job:ps/task:0"):
        images = tf.FIFOQueue(room, [tf.float32], [[]], shared_name="images", name="images")
        labels = tf.FIFOQueue(room, [tf.float32], [[]], shared_name="labels", name="labels")
    loads = [images.enqueue(0.0, name="put_image")] * 4 + [labels.enqueue(0.0, name="put_label")] * 4
    trains = [images.dequeue(name="take_image"), labels.dequeue(name="take_label")] * 4
    with tf.Session(client.target) as sess:
        for step in loads if client.index == 0 else trains:
            sess.run(step)


def test_a_deadlock_in_virtual_time_brings_its_circle():
    with tf.Cluster(ps=1, worker=2, clock="virtual") as cluster, pytest.raises(tf.errors.InternalError) as raised:
        cluster.run(two_queues)
    picture = tf.viz.waits(raised.value)
    assert picture.sentence.endswith("Nobody can move.") and picture.svg.count("way ring") == 5
    assert "client of worker:0 (put_image) waits until client of worker:1 takes from images" in picture.sentence


def test_a_line_without_a_circle_in_virtual_time_says_that_nobody_is_left():
    """The queue stays empty where the threads that fill it were never started."""

    def takes(client):
        queue = tf.FIFOQueue(5, [tf.float32], [[]], name="batches")
        queue.enqueue(0.0, name="put")
        with tf.Session(client.target) as sess:
            sess.run(queue.dequeue(name="take"))

    with tf.Cluster(worker=1, clock="virtual") as cluster, pytest.raises(tf.errors.InternalError) as raised:
        cluster.run(takes)
    said = tf.viz.waits(raised.value).sentence
    assert "nobody is left who helps. At the end of the line: " in said and "outside" not in said, said


@pytest.mark.parametrize("engine", ["inprocess", pytest.param("process", marks=pytest.mark.processes)])
def test_a_deadlock_in_real_time_is_seen_while_it_lasts(engine):
    ended = []
    with tf.Cluster(ps=1, worker=2, engine=engine) as cluster:
        clients = REAL.thread(lambda: ended.append(_outcome(lambda: cluster.run(two_queues))))
        clients.start()
        while not (found := waits_for(cluster.standstill())).circles:
            assert clients.is_alive()
        assert sorted(names(found, found.circles[0])) == ["images", "labels", "put_image", "take_label"]
        assert "client of worker:1 (take_label)" in sentences(found)[0]
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess, tf.device("/job:ps/task:0"):
            queues = [tf.FIFOQueue(1, [tf.float32], [[]], shared_name=name) for name in ("images", "labels")]
            assert tf.viz.waits(sess).svg.count("way ring") == 5, "a session finds its cluster"
            for queue in queues:
                sess.run(queue.close(cancel_pending_enqueues=True))
        clients.join(60)
    assert ended == [tf.errors.CancelledError] or ended == [tf.errors.OutOfRangeError]


def _outcome(work):
    try:
        work()
    except tf.errors.OpError as error:
        return type(error)


def test_a_local_session_that_waits_for_a_queue_nobody_fills():
    queue = tf.FIFOQueue(3, [tf.float32], [[]], name="empty")
    take = queue.dequeue(name="take")
    with tf.Session() as sess:
        waiter = threading.Thread(target=lambda: _outcome(lambda: sess.run(take)))
        waiter.start()
        while not waits_for(standing := _standing(sess)).waiters:
            assert waiter.is_alive()
        sess.run(queue.close())
        waiter.join(60)
    assert sentences(waits_for(standing)) == [
        "take (client) waits for empty, and no open session has an op that puts into it."
    ]


def _standing(sess):
    from dtflab.runtime import standstill

    master = sess.master_session().master
    return standstill.facts(master.worker, master)
