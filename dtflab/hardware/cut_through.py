"""Cut-through: how a message passes one link after the other, some of which are faster than others.

Stands for queues in front of links, and switches that hand on what they get. Left out: fair sharing; who is served
first holds a link until its bytes are through, as long as it has them.

Rules. A message's head goes on to the next link as soon as this one begins with it, its tail when it is through; so it
ends no earlier than on any link before. A link serves in the order in which messages are sent, and each takes it for
its own bytes only: what trickles in from a slower link leaves room for others. So a head that waits for a link is late
only by what the message can't make good: it may wait there for as long as its bytes trickle in longer than they pass.
"""

from __future__ import annotations


def pass_link(start: float, end: float, free: float, seconds: float) -> tuple[float, float, float]:
    """When a message begins and ends to pass a link, and from when on the link is free again; all in seconds.

    Its head and its tail come there at `start` and `end`, both when it is sent before the first link. The link is free
    from `free` on and takes `seconds` for the message's bytes.
    """
    spare = max(end - (start + seconds), 0.0)
    done = max(start, free) + seconds
    return max(start, free - spare), max(end, done), done
