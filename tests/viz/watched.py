"""A watch made up for a picture, and the things that are looked at in the picture."""

from __future__ import annotations

import base64
import json
import xml.etree.ElementTree as ET
import zlib

import dtflab as tf
from dtflab.base.events import Call, QueueEvent
from dtflab.cluster.resources_held import HeldQueue, HeldVariable
from dtflab.machine.watch import Watch
from dtflab.viz.drawing.style import MARGIN
from dtflab.viz.drawing.svg import text_width

PS, W0, W1 = (f"/job:{job}/replica:0/task:{n}" for job, n in (("ps", 0), ("worker", 0), ("worker", 1)))

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    return [text.text for text in ET.fromstring(picture.svg.encode()).iter(f"{SVG}text")]


def live(picture):
    """The data of a live picture, as its page has it."""
    written = json.loads(picture.html.partition('class="dtf-data">')[2].partition("</script>")[0])
    return json.loads(zlib.decompress(base64.b64decode(written))) if isinstance(written, str) else written


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
    seen = Watch()
    seen.calls += calls
    seen.queues += queues
    seen.uses.update(dict.fromkeys(uses))
    return seen


def event(at, what, elements, level, op="op", client="client", step=1, over=True, wants="", error="", queue="q", cap=4):
    return QueueEvent(at, f"{PS}/device:CPU:0", queue, what, elements, level, cap, op, client, step, over, wants, error)


def held(name="q", level=2, capacity=4, waiting=(), closed=False):
    return HeldQueue(f"{PS}/device:CPU:0", "localhost", name, "FIFOQueue", level, capacity, closed, waiting)


def variable(task=PS, name="w", nbytes=400, container="localhost", initialized=True):
    return HeldVariable(task, f"{task}/device:CPU:0", container, name, "float32", (10, 10), nbytes, initialized)


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
