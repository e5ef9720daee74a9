"""No collection while a graph is taken in; afterwards it is as it was."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.base.garbage import NO_COLLECTION
from dtflab.base.thread_frames import current_frames


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


@pytest.fixture(autouse=True)
def on_again():
    yield
    gc.enable()


@pytest.mark.parametrize("was_on", [True, False])
def test_afterwards_it_is_as_it_was(was_on):
    (gc.enable if was_on else gc.disable)()
    with NO_COLLECTION, NO_COLLECTION:
        assert not gc.isenabled()
    assert gc.isenabled() is was_on
    with pytest.raises(ZeroDivisionError), NO_COLLECTION:
        raise ZeroDivisionError
    assert gc.isenabled() is was_on


def test_the_last_who_ends_switches_it_on():
    first, second = NO_COLLECTION, NO_COLLECTION
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert not gc.isenabled()
    second.__exit__()
    assert gc.isenabled()


SEEN_IN_AN_IMPORT = """
import gc
seen = [0]
gc.callbacks.append(lambda phase, info: seen.append(len(gc.get_objects(info["generation"]))))
{first}
import dtflab
gc.callbacks.clear()
print(max(seen), gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(("first", "sees_all"), [("", False), ("gc.freeze()", True)])
def test_no_collection_goes_over_an_import_unless_the_program_freezes_objects_itself(first, sees_all):
    code = SEEN_IN_AN_IMPORT.format(first=first)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    most, is_frozen = done.stdout.split()
    assert (int(most) > 20_000) is sees_all  # of some 75,000 objects
    assert is_frozen == str(sees_all)


def test_a_large_graph_is_taken_in_without_it():
    x = y = tf.placeholder(tf.float32, [])
    for _ in range(1000):
        y = tf.tanh(y + x)
    (slope,) = tf.gradients(y, x)
    seen = []

    def note(phase, info):
        seen.append(phase)

    with tf.Session() as session:
        session._opened()
        master = session._master.session(session.handle)
        gc.collect()
        gc.callbacks.append(note)
        try:
            master._register(((x.name,), (slope.name,), (), False))
        finally:
            gc.callbacks.remove(note)
    assert len(seen) < 40, "168 with nothing to prevent it, 6 between the stages"


def test_what_threads_do_is_told_without_it(monkeypatch):
    """Python 3.11 holds a lock of the interpreter meanwhile, for which a thread that begins or ends would wait."""
    seen = []
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or {})
    assert current_frames() == {} and seen == [False] and gc.isenabled()
