"""The thread behind a FileWriter: order, waiting, failures, files that go away, writers that nobody closed."""

from __future__ import annotations

import gc
import logging
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import dtflab as tf
from dtflab.files.events import EventsWriter

LIMIT_S = 60.0


def steps(folder: Path, pattern: str = "*tfevents*") -> list[list[int]]:
    """The steps of the events in each file, without the first, which says what the file is."""
    files = [list(tf.train.summary_iterator(str(path))) for path in sorted(folder.glob(pattern))]
    assert all(events[0].file_version == "brain.Event:2" for events in files)
    return [[event.step for event in events[1:]] for events in files]


class Gate:
    """Stands before an EventsWriter: events wait here until the gate is open, then go on or fail."""

    def __init__(self, writer: Any, error: Exception | None = None) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        worker = writer.event_writer._worker
        write = worker._ev_writer.WriteEvent

        def gated(event: Any) -> None:
            self.reached.set()
            assert self.open.wait(LIMIT_S)
            if error is not None:
                raise error
            write(event)

        worker._ev_writer.WriteEvent = gated


@pytest.fixture
def quiet():
    """Suppress the line that the thread logs when it fails."""
    logging.getLogger("tensorflow").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("tensorflow").setLevel(logging.NOTSET)


def test_events_come_in_order_through_a_short_queue(tmp_path):
    with tf.summary.FileWriter(str(tmp_path), max_queue=1) as writer:
        for step in range(200):
            writer.add_event(tf.Event(step=step))
            if step == 100:
                writer.flush()
                assert steps(tmp_path) == [list(range(101))]
    assert steps(tmp_path) == [list(range(200))]


@pytest.mark.parametrize("max_queue", [2, 0])
def test_a_full_queue_makes_the_program_wait(tmp_path, max_queue):
    writer = tf.summary.FileWriter(str(tmp_path), max_queue=max_queue)
    gate = Gate(writer)
    added = []

    def add():
        for step in range(6):
            writer.add_event(tf.Event(step=step))
            added.append(step)

    adding = threading.Thread(target=add)
    adding.start()
    assert gate.reached.wait(LIMIT_S)
    if max_queue == 0:
        adding.join(LIMIT_S)  # however slow the disk is
        assert added == [*range(6)]
    else:
        assert len(added) <= max_queue + 1  # one with the thread, two in the queue
    gate.open.set()
    adding.join(LIMIT_S)
    writer.close()
    assert steps(tmp_path) == [[*range(6)]]


@pytest.mark.parametrize("call", ["flush", "close", "add_event"])
def test_what_goes_wrong_in_the_thread_is_raised_by_the_next_call(tmp_path, quiet, call):
    writer = tf.summary.FileWriter(str(tmp_path))
    gate = Gate(writer, OSError("the disk is full"))
    writer.add_event(tf.Event())
    gate.open.set()
    if call == "add_event":
        writer.event_writer._worker.join()
    with pytest.raises(OSError, match="the disk is full"):
        getattr(writer, call)(*[tf.Event()] * (call == "add_event"))
    writer.close()  # nothing is left to do, and nothing is raised twice


def test_a_call_that_waits_for_a_place_hears_of_the_failure(tmp_path, quiet):
    writer = tf.summary.FileWriter(str(tmp_path), max_queue=1)
    gate = Gate(writer, OSError("the disk is full"))
    writer.add_event(tf.Event())
    assert gate.reached.wait(LIMIT_S)
    writer.add_event(tf.Event())
    raised = []

    def add():
        try:
            writer.add_event(tf.Event())
        except OSError as error:
            raised.append(str(error))

    adding = threading.Thread(target=add)
    adding.start()
    gate.open.set()
    adding.join(LIMIT_S)
    assert raised == ["the disk is full"]


def test_a_flush_that_waits_hears_of_the_failure(tmp_path, quiet):
    writer = tf.summary.FileWriter(str(tmp_path))
    gate = Gate(writer, OSError("the disk is full"))
    writer.add_event(tf.Event())
    writer.add_event(tf.Event())
    threading.Thread(target=lambda: gate.reached.wait(LIMIT_S) and gate.open.set()).start()
    with pytest.raises(OSError, match="the disk is full"):
        writer.flush()


def test_a_writer_that_is_forgotten_is_closed(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path), flush_secs=1000)
    for step in range(50):
        writer.add_event(tf.Event(step=step))
    del writer
    gc.collect()
    assert steps(tmp_path) == [[*range(50)]]


def test_a_program_that_closes_nothing_loses_nothing(tmp_path):
    program = """
import sys
import dtflab as tf
writer = tf.summary.FileWriter(sys.argv[1])
for step in range(300):
    writer.add_event(tf.Event(step=step))
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=LIMIT_S)
    assert steps(tmp_path) == [[*range(300)]]


def test_reopening_makes_a_new_file_even_within_a_second(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=".mine")
    for step in range(4):
        writer.add_event(tf.Event(step=step))
        writer.close()
        writer.reopen()
        writer.reopen()
    writer.close()
    assert steps(tmp_path, "*.mine") == [[0], [1], [2], [3]]


def test_a_file_that_disappears_is_made_again(tmp_path, caplog):
    writer = EventsWriter(str(tmp_path / "events"))
    writer.WriteEvent(tf.Event(step=1))
    Path(writer.FileName()).unlink()
    writer.WriteEvent(tf.Event(step=2))
    writer.Close()
    writer.Close()
    assert steps(tmp_path) == [[2]]
    assert "has disappeared" in caplog.text


def test_a_folder_that_disappears_takes_its_events_along(tmp_path, caplog):
    folder = tmp_path / "deleted"
    writer = tf.summary.FileWriter(str(folder))
    writer.add_event(tf.Event(step=1))
    writer.flush()
    shutil.rmtree(folder)
    writer.add_event(tf.Event(step=2))
    writer.flush()
    assert not folder.exists()
    assert "could not be opened" in caplog.text and str(folder) in caplog.text
    folder.mkdir()
    writer.add_event(tf.Event(step=3))
    writer.close()
    assert steps(folder) == [[3]]


def test_writers_of_one_session_share_a_file(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    with tf.Session() as session, tf.Session() as other:
        writers = [tf.summary.FileWriter(str(folder), session=session) for folder in (here, here, there)]
        writers.append(tf.summary.FileWriter(str(here), session=other))
        for step, writer in enumerate(writers):
            writer.add_event(tf.Event(step=step))
            writer.flush()
        writers[0].add_event(tf.Event(step=9))
        for writer in writers:
            writer.close()
    assert steps(here) == [[0, 1, 9], [3]] and steps(there) == [[2]]


def test_one_writer_per_folder_in_the_cache(tmp_path):
    cache = tf.summary.FileWriterCache
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    with tf.Graph().as_default():
        writer = cache.get(one)
        assert cache.get(one) is writer is not cache.get(two)
        cache.clear()
        assert cache.get(one) is not writer
        cache.clear()


def test_a_folder_may_be_given_as_a_path_or_a_url(tmp_path):
    for step, folder in enumerate((tmp_path, f"file://{tmp_path}", f"file://{tmp_path}")):
        with tf.summary.FileWriter(folder) as writer:
            writer.add_event(tf.Event(step=step))
    assert steps(tmp_path) == [[0], [1], [2]]


def test_a_damaged_file_says_so(tmp_path):
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_event(tf.Event(step=1))
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(tf.errors.DataLossError):
        list(tf.train.summary_iterator(str(path)))


def test_metadata_goes_with_the_first_value_of_a_tag(tmp_path):
    metadata = tf.SummaryMetadata(display_name="shown")
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        for tag in ("a", "a", "b"):
            summary = tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=1, metadata=metadata)])
            writer.add_summary(summary, 1)
            assert summary.value[0].metadata == metadata, "the caller's message stays as it is"
    (path,) = tmp_path.iterdir()
    values = [event.summary.value[0] for event in tf.train.summary_iterator(str(path)) if event.summary.value]
    assert [(value.tag, value.HasField("metadata")) for value in values] == [("a", True), ("a", False), ("b", True)]
