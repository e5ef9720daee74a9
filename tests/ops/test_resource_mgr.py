from __future__ import annotations

import sys
import threading

import pytest

from dtflab.base import errors
from dtflab.ops.resource_mgr import ResourceMgr
from tests.cluster.two_tasks import in_threads


class Thing:
    closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def resources():
    return ResourceMgr()


def test_a_resource_is_made_once(resources):
    first = resources.lookup_or_create("", "a", Thing, Thing)
    assert resources.lookup_or_create("localhost", "a", Thing, Thing) is first
    assert resources.lookup("", "a", Thing) is first
    assert resources.lookup_or_create("", "b", Thing, Thing) is not first
    assert resources.lookup_or_create("other", "a", Thing, Thing) is not first
    assert {(c, n) for c, n, _ in resources.items()} == {("localhost", "a"), ("localhost", "b"), ("other", "a")}


def test_many_make_one(resources):
    start = threading.Barrier(8)

    def make(number):
        start.wait()
        return resources.lookup_or_create("", "a", Thing, Thing)

    assert len(set(in_threads(8, make))) == 1


def test_all_are_listed_while_others_are_made(resources):
    """A check looks at them while it watches one client and another one begins."""

    def make_or_list(lists):
        for i in range(5000 * (not lists)):
            resources.lookup_or_create("", str(i), Thing, Thing)
        while lists and len(resources.items()) < 5000:
            pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert in_threads(2, make_or_list) == [None, None]
    finally:
        sys.setswitchinterval(interval)


def test_what_is_not_there(resources):
    resources.lookup_or_create("", "a", Thing, Thing)
    with pytest.raises(errors.NotFoundError, match="localhost/b/Thing does not exist"):
        resources.lookup("", "b", Thing)
    with pytest.raises(errors.NotFoundError, match="localhost/a/int does not exist"):
        resources.lookup("", "a", int)
    resources.delete("", "a", Thing)
    with pytest.raises(errors.NotFoundError, match="localhost/a/Thing does not exist"):
        resources.delete("", "a", Thing)


def test_kinds_share_no_names(resources):
    thing, number = resources.lookup_or_create("", "a", Thing, Thing), resources.lookup_or_create("", "a", int, int)
    assert resources.lookup("", "a", Thing) is thing and resources.lookup("", "a", int) is number
    resources.delete("", "a", int)
    assert [r for _, _, r in resources.items()] == [thing]


def test_containers_are_emptied_by_name_or_the_default_one_or_all_at_once(resources):
    a, b, c = (resources.lookup_or_create(container, "x", Thing, Thing) for container in ("", "b", "c"))
    resources.cleanup(["b", "nobody", ""])
    assert (a.closed, b.closed, c.closed) == (False, True, False)
    resources.cleanup([])
    assert (a.closed, c.closed) == (True, False)
    resources.lookup_or_create("", "no close", int, int)
    resources.clear()
    assert c.closed and resources.items() == []


def test_the_collector_may_delete_a_resource_while_another_is_made(resources):
    """A session that is collected just then does so, and lets go of its queues."""
    resources.lookup_or_create("", "old", Thing, Thing)

    def make():
        resources.delete("", "old", Thing)
        return Thing()

    thread = threading.Thread(target=resources.lookup_or_create, args=("", "new", Thing, make), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert [name for _, name, _ in resources.items()] == ["new"]
