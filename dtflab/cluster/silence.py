"""Silence: a peer that something here waits for is asked whether it is there, and given up if it never answers.

Stands for nothing in TensorFlow, which waits for a stopped task, or for one behind a cut cable, forever.

Rules: silence means no answer to a ping, not no result: a task that computes for minutes answers at once. Only a peer
that is awaited is asked, ten times in `timeouts.silence`. After that time without any sign of life a line says so;
after twice that the calls to it fail. Time in which this process itself stood still does not count. The thread that
looks ends when nothing is awaited any more.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Hashable
from typing import Protocol

from dtflab.base.timeouts import timeouts
from dtflab.machine.clock import REAL, Pool

Tell = Callable[[str], object]  # takes a line for the person who waits

SILENT = "silent for"  # in the reason of a peer that is given up
LOOKS = 10  # in `timeouts.silence`
_LONGEST = 60.0  # seconds between two looks
_pool = Pool(REAL, name="silence")


class Awaited(Protocol):
    """The way to a peer, as it is watched."""

    is_watched: bool
    is_used: bool  # a call has begun since the last look

    def who(self) -> str:
        """The peer's name, for people."""

    def awaiting(self) -> Collection[Tell]:
        """How to tell each of those that wait for it now."""

    def signs(self) -> Hashable:
        """A value that is another one whenever a sign of life has come since."""

    def ping(self) -> None:
        """Ask whether it is there, unless that question is open; wait for nothing."""

    def give_up(self, why: str) -> None:
        """End every wait for it with an error that says why."""


class Pulse:
    """The state of one peer, from look to look."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, signs: Hashable) -> None:
        """Begin to count: a ping goes out now, or with the next look (None)."""
        self._signs = signs
        self._silent = 0.0
        self._is_told = False

    def look(self, peer: Awaited, elapsed: float) -> bool:
        """Take note of `elapsed` seconds more; False if nobody has waited for the peer since the last look."""
        was_used, peer.is_used = peer.is_used, False
        awaiting = peer.awaiting()
        if not awaiting:
            self._begin(None)
            return was_used
        signs = peer.signs()
        if signs != self._signs:
            if self._is_told:
                _tell(awaiting, f"{peer.who()} answers again")
            self._begin(signs)
            peer.ping()
            return True
        self._silent += elapsed
        if self._silent >= 2 * timeouts.silence:
            self._begin(None)
            peer.give_up(f"{SILENT} {2 * timeouts.silence:g} s: stopped, overloaded or out of reach")
        elif self._silent >= timeouts.silence and not self._is_told:
            self._is_told = True
            _tell(awaiting, f"still waiting for {peer.who()}, silent for {timeouts.silence:g} s")
        return True


def _tell(awaiting: Collection[Tell], line: str) -> None:
    for tell in set(awaiting):  # once where several calls lead to one person
        tell(line)


class Lookout:
    """The peers that are watched, and the thread that looks at them; it runs while there are some."""

    def __init__(self) -> None:
        self._pulses: dict[weakref.ref[Awaited], Pulse] = {}
        self._runs = False
        self._lock = threading.Lock()

    def add(self, peer: Awaited) -> None:
        """Watch a peer from now on, as long as it is awaited."""
        with self._lock:
            peer.is_watched = True
            self._pulses.setdefault(weakref.ref(peer), Pulse())
            begins, self._runs = not self._runs, True
        if begins:
            _pool.submit(self._run)

    def _run(self) -> None:
        before = REAL.now()
        while self._pulses or not self._ends():
            period = min(timeouts.silence / LOOKS, _LONGEST)
            self._rest(period)
            now = REAL.now()
            self.look(min(now - before, 2 * period))  # if that is more, this process was stopped, too
            before = now

    def _rest(self, seconds: float) -> None:
        REAL.sleep(seconds)

    def _ends(self) -> bool:
        with self._lock:
            self._runs = bool(self._pulses)
            return not self._runs

    def look(self, elapsed: float) -> None:
        """Look at every peer; let go of those that nobody waits for."""
        for ref, pulse in list(self._pulses.items()):
            peer = ref()
            if peer is None or not pulse.look(peer, elapsed):
                self._let_go(ref, peer)

    def _let_go(self, ref: weakref.ref[Awaited], peer: Awaited | None) -> None:
        with self._lock:
            self._pulses.pop(ref, None)
            if peer is not None:
                peer.is_watched = False
        if peer is not None and peer.is_used:  # a call that begins now has seen that it was watched
            self.add(peer)

    def uses(self, peer: Awaited) -> None:
        """Note that a call to a peer begins; it is watched from now on, if it was not."""
        peer.is_used = True
        if not peer.is_watched:
            self.add(peer)

    def begin_again(self) -> None:
        """In a forked child: forget the peers and the thread, which are the parent's."""
        for ref in self._pulses:
            if (peer := ref()) is not None:
                peer.is_watched = False
        self._pulses, self._runs, self._lock = {}, False, threading.Lock()


LOOKOUT = Lookout()
