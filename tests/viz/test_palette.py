"""Which task has which colour: ps and worker their own, no two in one picture the same, a task that is alone by
device.
"""

from __future__ import annotations

import threading

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.viz import colouring
from dtflab.viz.drawing import palette
from dtflab.viz.drawing.palette import Colour, look, together
from tests.viz.strokes import BACKGROUNDS, contrast, rgb


def task(job, number=0, device=""):
    return f"/job:{job}/replica:0/task:{number}{device}"


CPU, GPU = "/device:CPU:0", "/device:GPU:0"
EIGHT = [task("worker", n, GPU) for n in range(8)]


def every_colour():
    """The colours of devices and jobs, of phases and kinds, and of times."""
    named = [value for module in (palette, colouring) for value in vars(module).values()]
    listed = [one for value in named if type(value) in (tuple, list) for one in value]
    return sorted({value for value in (*named, *listed) if isinstance(value, Colour)}, key=lambda each: each.line)


@pytest.fixture(params=palette.PALETTES)
def each_palette(request):
    viz.palette(request.param)
    yield
    viz.palette("okabe-ito")


@pytest.mark.parametrize("colour", every_colour(), ids=lambda colour: colour.line)
def test_a_line_stands_out_from_every_page_and_text_from_its_area(each_palette, colour):
    """WCAG 2.1: 3:1 for what one needs to understand a picture (1.4.11), 4.5:1 for text (1.4.3)."""
    assert min(contrast(rgb(colour.line), rgb(page)) for page in BACKGROUNDS) >= 3
    assert contrast(rgb(colour.ink), rgb(colour.fill)) >= 4.5


def test_every_colour_that_pictures_use_was_tried():
    assert len(every_colour()) == 20
    with together(EIGHT):
        assert {look(device).colour for device in EIGHT} <= set(every_colour())


@pytest.mark.parametrize(
    "devices",
    [
        [*EIGHT, task("shared", 0, CPU)],
        [task(job) for job in ("files", "client", "data", "program", "worker", "ps")],
        [task("ps", n) for n in range(3)] + [task("worker", n) for n in range(6)],
        [task("chief"), *(task("worker", n) for n in range(4)), task("evaluator")],
    ],
)
def test_nine_tasks_of_any_jobs_have_nine_colours(each_palette, devices):
    with together(devices):
        assert len({look(device).colour for device in devices}) == len(devices)
        assert len({look(device).colour.line for device in devices}) == len(devices)


def test_ps_and_worker_keep_their_colours_whoever_is_there():
    own = {device: look(device).colour for device in (task("ps"), task("worker"), task("worker", 1))}
    for others in ([], ["chief"], ["a", "b", "c", "d", "e", "f", "g"]):
        with together([*(task(job) for job in others), *own]):
            assert {device: look(device).colour for device in own} == own


def test_a_job_alone_among_workers_has_the_same_colour_however_many_they_are():
    colours = set()
    for workers in (1, 3, 8):
        with together([*EIGHT[:workers], task("shared")]):
            colours.add(look(task("shared")).colour)
    assert len(colours) == 1


def test_more_tasks_than_colours_share_some_and_the_letters_tell_them_apart():
    many = [task("worker", n) for n in range(30)]
    with together(many):
        assert len({look(device).letter for device in many}) == 30
        assert len({look(device).colour for device in many}) == 9


def test_jobs_of_one_picture_have_colours_of_their_own():
    jobs = ["data", "files", "client", "worker", "ps"]
    with together(task(job, 3) for job in jobs):
        assert len({palette.job_look(task(job, 3)).colour for job in jobs}) == len(jobs)


def test_a_task_that_is_alone_is_coloured_by_device_as_a_local_session():
    cpu, gpu = task("worker", 0, CPU), task("worker", 0, GPU)
    with together([cpu, gpu]):
        alone = look(cpu), look(gpu)
    local = look("/job:localhost/task:0/device:CPU:0"), look("/job:localhost/task:0/device:GPU:0")
    for one, other in zip(alone, local, strict=True):
        assert (one.colour, one.letter, one.hatched) == (other.colour, other.letter, other.hatched)
    assert [one.label for one in alone] == ["worker:0 CPU:0", "worker:0 GPU:0"]
    with together([cpu, gpu, task("ps", 0, CPU)]):  # here colours are the tasks', and the label still says what it is
        assert look(cpu).colour == look(gpu).colour == look(task("worker")).colour
        assert [look(device).label for device in (cpu, gpu, task("ps", 0, CPU))] == [
            "worker:0 CPU:0", "worker:0 GPU:0", "ps:0",
        ]  # fmt: skip


def test_placement_and_timeline_of_one_task_tell_cpu_and_gpu_by_colour():
    with tf.Graph().as_default() as graph, tf.Cluster(worker=1, gpus=1, clock="virtual") as cluster:
        with tf.device("/cpu:0"):
            x = tf.ones([300, 300], name="x")
        with tf.device("/gpu:0"):
            y = tf.matmul(x, x, name="y")
        with tf.Session(cluster.target) as session:
            pictures = viz.placement(graph, session), viz.timeline(session.trace(y))
    for picture in pictures:
        assert f'fill="{palette.BLUE.fill}"' in picture.svg and f'fill="{palette.VERMILLION.fill}"' in picture.svg
        assert ">worker:0 CPU:0</text>" in picture.svg and ">worker:0 GPU:0</text>" in picture.svg


def test_a_picture_leaves_nothing_behind_not_even_for_another_thread():
    seen = []
    before = look(task("data"))
    with together([task("data", n) for n in range(3)] + [task("ps")]):
        within = look(task("data"))
        other = threading.Thread(target=lambda: seen.append(look(task("data"))))
        other.start()
        other.join(60)
    assert seen == [before] == [look(task("data"))] and within.colour != before.colour


def test_a_palette_is_that_of_all_pictures_from_then_on():
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"):
        tf.constant(1.0, name="a")
    before = viz.placement(graph)
    try:
        viz.palette("muted")
        assert "#332288" in viz.placement(graph).svg and "#0072B2" not in viz.placement(graph).svg
    finally:
        viz.palette("okabe-ito")
    assert viz.placement(graph).svg == before.svg and "#0072B2" in before.svg
    with pytest.raises(ValueError, match=r"no palette 'mutd'\. Did you mean muted\? There are 'okabe-ito', 'muted'"):
        viz.palette("mutd")
