"""Cut-through: how a message passes one link after the other, some of which are faster than others.

Stands for queues in front of links, and switches that hand on what they get. Left out: fair sharing; the message that
is served first keeps a link until its bytes have passed, as long as it has bytes to send.

Rules. A message's head goes on to the next link as soon as this one begins with it, its tail when it is through; so it
ends no earlier than on any link before. A link serves in the order in which messages are sent, and each takes it for
its own bytes only: bytes that trickle in from a slower link leave room for others. So a head that waits for a link
delays the message only by the part of the wait that exceeds the time which the slower link before costs anyway.
"""

from __future__ import annotations


def pass_link(start: float, end: float, free: float, seconds: float) -> tuple[float, float, float]:
    """The times at which a message begins and ends to pass a link, and at which the link is free again, in seconds.

    Its head and its tail come there at `start` and `end`, both when it is sent before the first link. The link is free
    from `free` on and takes `seconds` for the message's bytes.
    """
    spare = max(end - (start + seconds), 0.0)
    done = max(start, free) + seconds
    return max(start, free - spare), max(end, done), done
