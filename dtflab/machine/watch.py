"""tf.watch: look at everything that happens between clients, tasks and queues of this process.

Rule: moments are those of the clock that counts for the thread to which something happens: virtual seconds in virtual
time, else seconds since some fixed moment.
"""

from __future__ import annotations

from dtflab.base.watch import Watch
from dtflab.machine.clock import current


def watch() -> Watch:
    """Watch what happens in this process until the block ends, in real or in virtual time:

        with tf.watch() as seen:
            sess.run(train)
        tf.viz.wire(seen)

    `seen.calls` are the calls between clients and tasks, `seen.queues` what happened at queues, both plain lists of
    named tuples. What other processes do between themselves is not seen. Watches may be nested; each sees everything.
    What waits already when a watch begins is seen when it goes on, and what still waits at its end as waiting.
    """
    return Watch(current)
