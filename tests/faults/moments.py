"""The moments at which a task fails: for each, a program whose step is there when the fault comes.

A victim has a partner, another task, with which it exchanges what the moment is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import dtflab as tf

Task = tuple[str, int]
VICTIMS: dict[str, Task] = {"the master": ("worker", 0), "another worker": ("worker", 1), "a ps": ("ps", 0)}
MB = 1 << 20


def device(task: Task) -> str:
    return f"/job:{task[0]}/task:{task[1]}"


def partner(victim: Task) -> Task:
    return ("worker", 1) if victim[0] == "ps" else ("ps", 0)


class Site(NamedTuple):
    """A case's tasks, a folder for its files, a number for its queues' names, and how many seconds it computes."""

    victim: str  # devices
    partner: str
    folder: str
    number: int
    seconds: float


class Program(NamedTuple):
    """The work of a client: `step`, again and again if it `repeats`."""

    step: Callable[[tf.Session], Any]
    signal: Any = None  # another session's fetch, which returns when a step is at the moment
    initializer: Any = None
    repeats: bool = False
    in_new_session: bool = False

    @property
    def begins_after(self) -> bool:
        """Whether the step begins after the fault."""
        return self.signal is None and not self.repeats


def simple(site: Site) -> tf.Tensor:
    """A step in which both tasks take part."""
    with tf.device(site.partner):
        x = tf.fill([2], 1.5)
    with tf.device(site.victim):
        return tf.reduce_sum(x)


def before_a_step(site: Site) -> Program:
    y = simple(site)
    return Program(lambda session: session.run(y))


def at_session_creation(site: Site) -> Program:
    y = simple(site)
    return Program(lambda session: session.run(y), in_new_session=True)


def computing(site: Site) -> Program:
    signal, begun = _signal(site)
    with tf.device(site.victim), tf.control_dependencies([begun]):
        until = tf.timestamp() + site.seconds
        loop = tf.while_loop(lambda i: tf.timestamp() < until, lambda i: i + 1, [tf.constant(0)], back_prop=False)
    return Program(lambda session: session.run(loop), signal)


def sending(site: Site) -> Program:
    return _transfer(site.victim, site.partner)


def receiving(site: Site) -> Program:
    return _transfer(site.partner, site.victim)


def _transfer(source: str, destination: str, nbytes: int = 100 * MB) -> Program:
    with tf.device(source):
        tensor = tf.Variable(tf.zeros([nbytes // 4]), name="large")
    with tf.device(destination):
        y = tf.identity(tensor)[0]
    return Program(lambda session: session.run(y), initializer=tensor.initializer, repeats=True)


def in_a_dequeue_of_another(site: Site) -> Program:
    return _dequeue(site, site.partner, site.victim)


def in_a_dequeue_of_its_own(site: Site) -> Program:
    return _dequeue(site, site.victim, site.partner)


def _dequeue(site: Site, owner: str, waiter: str) -> Program:
    signal, begun = _signal(site)
    with tf.device(owner):
        empty = tf.FIFOQueue(1, tf.float32, shared_name=f"empty {site.number}")
    with tf.control_dependencies([begun]):
        element = empty.dequeue()
    with tf.device(waiter):
        y = element + 1.0
    return Program(lambda session: session.run(y), signal)


def during_a_save(site: Site) -> Program:
    with tf.device(site.victim):
        variable = tf.Variable(tf.zeros([20 * MB // 4]), name="saved")
    saver = tf.train.Saver([variable])
    return Program(
        lambda session: saver.save(session, f"{site.folder}/model"), initializer=variable.initializer, repeats=True
    )


def _signal(site: Site) -> tuple[tf.Tensor, tf.Operation]:
    with tf.device(site.partner):
        queue = tf.FIFOQueue(1, tf.int32, shared_name=f"signal {site.number}")
        return queue.dequeue(), queue.enqueue(1)


MOMENTS: dict[str, Callable[[Site], Program]] = {
    "before a step": before_a_step,
    "while it computes": computing,
    "while it sends 100 MB": sending,
    "while it receives 100 MB": receiving,
    "while it waits at another's queue": in_a_dequeue_of_another,
    "while another waits at its queue": in_a_dequeue_of_its_own,
    "before a session is created": at_session_creation,
    "during a save of its variables": during_a_save,
}
