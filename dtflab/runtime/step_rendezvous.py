"""StepRendezvous: the rendezvous as the kernels of one step in one task see it.

Stands for `RemoteRendezvous` of `base_rendezvous_mgr.cc`: what a `_Send` and a `_Recv` call.
"""

from __future__ import annotations

from collections.abc import Callable

from dtflab.runtime.rendezvous import Done, Key, Rendezvous, SendOff, full_key


class StepRendezvous:
    """The rendezvous as the kernels of one step in one task see it: they send here, and pull from any task.

    `local` is the step's table in this task, where pushed values come, too; `pull(task, key, done)` asks another task;
    `hold(send_off)` has what is pushed leave before the step waits.
    """

    __slots__ = ("_hold", "_local", "_prefix", "_pull")

    def __init__(
        self,
        task: str,
        local: Rendezvous,
        pull: Callable[[str, str, Done], None],
        hold: Callable[[SendOff], object] = lambda send_off: send_off(),
    ) -> None:
        self._prefix = task + "/device:"
        self._local = local
        self._pull = pull
        self._hold = hold

    def send(self, key: Key, frame_iter: str, value: object) -> None:
        """Publish a value made on a device of this task."""
        send_off = self._local.send(full_key(key, frame_iter), value)
        if send_off is not None:
            self._hold(send_off)

    def recv_async(self, key: Key, frame_iter: str, done: Done) -> None:
        """Get a value from the task whose device makes it."""
        send_device = key[0]
        if send_device.startswith(self._prefix):
            self._local.recv_async(full_key(key, frame_iter), done)
        else:
            self._pull(send_device.partition("/device:")[0], full_key(key, frame_iter), done)
