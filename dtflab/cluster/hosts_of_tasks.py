"""Homes: on which host each task of a cluster lives, and which of its cards the task sees.

Stands for what an administrator does with machines and CUDA_VISIBLE_DEVICES before TensorFlow starts.

Rules: the host is the host part of the task's address, so tasks on one machine share its cards. Tasks that were only
counted (`worker=2`) have a host each, of this cluster alone. A `ps` sees no card unless it is said to.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from dtflab.cluster.allocation import Capacity
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.machine import cards, hosts
from dtflab.machine.hosts import Home
from dtflab.machine.registry import HostCards

Visible = Mapping[str, str | Sequence[str | None] | None]


class Homes:
    """The homes of all tasks.

    `counted` are the jobs whose hosts are the cluster's own. `cards` is what each host has. With `virtual` the tasks
    run in virtual time. Unless it `shares_cards`, each task has real
    cards of its own.
    """

    def __init__(
        self, spec: ClusterSpec, cluster: str, counted: set[str], cards: HostCards | None, visible: Visible | None,
        virtual: bool, shares_cards: bool = True,
    ) -> None:  # fmt: skip
        self._homes: dict[tuple[str, int], Home] = {}
        self._counted, self._cards, self._virtual = counted, cards, virtual
        self._shares_cards = shares_cards
        self._undo = contextlib.ExitStack()
        self._is_open = False
        if not isinstance(visible, Mapping | None):
            raise TypeError(f"visible_devices must name jobs, as in {{'worker': '0,1'}}, not {visible!r}.")
        shown = {job: _shown(spec, job, (visible or {}).get(job, _DEFAULT)) for job in spec.jobs}
        if unknown := set(visible or {}) - set(spec.jobs):
            raise ValueError(f"visible_devices names {unknown.pop()!r}, but the jobs are {', '.join(spec.jobs)}.")
        for job in spec.jobs:
            for index, sees in shown[job].items():
                # Another process may have a cluster of that name, too: its hosts are others.
                own = f"{job}-{index}.{cluster} of process {os.getpid()}"
                host = own if job in counted else hosts.host_of(spec.task_address(job, index))
                self._homes[job, index] = Home(host, f"/job:{job}/task:{index} of {cluster}", sees)
        self.open()

    def open(self) -> None:
        """Put the cards in, if they are not; a host where nobody sees any needs none."""
        if self._is_open:
            return
        self._is_open = True
        try:
            with hosts.published_once():
                seen = {home.host: job for (job, _), home in self._homes.items() if home.visible != ""}
                for host, job in seen.items():
                    self._open(host, job in self._counted)
        except BaseException:
            self.close()
            raise

    def _open(self, host: str, own: bool) -> None:
        if self._virtual:
            hosts.count_virtual_time(host, 1)
            self._undo.callback(hosts.count_virtual_time, host, -1)
        if self._cards is not None:
            hosts.give_cards(host, self._cards)
            self._undo.callback(hosts.take_cards, host)
        elif own:
            self._undo.callback(hosts.forget, host)

    def of(self, job: str, index: int) -> Home:
        return self._homes[job, index]

    def environment(self, job: str, index: int) -> dict[str, str | None]:
        """The environment that makes a process of its own this task; None: a variable that must not be set."""
        home = self.of(job, index)
        cards = hosts.definition(home.host)
        changes: dict[str, str | None] = {"DTFLAB_HOST": home.host}
        if cards is not None:
            changes |= {"DTFLAB_GPUS": str(cards.count), "DTFLAB_GPU": cards.model}
            changes["DTFLAB_GPU_MEMORY"] = str(cards.memory_bytes)
        if cards is not None or home.visible is not None:  # else it sees of the real ones what this process sees
            changes["CUDA_VISIBLE_DEVICES"] = home.visible
        return changes

    def capacity(self, job: str, index: int, device: Any) -> Capacity:
        """The share of a GPU that a task may take, and of which card."""
        host = self.of(job, index).host
        simulated = hosts.definition(host)
        bus = device.physical_device_desc.partition("pci bus id: ")[2].partition(",")[0]
        if simulated is None or not bus:
            card = bus if bus and self._shares_cards else device.name
            return Capacity(device.memory_limit, card, device.memory_limit)
        whole = max(device.memory_limit, cards.grab_all_limit(simulated.memory_bytes))
        return Capacity(device.memory_limit, f"{host} {bus}", whole)

    def close(self) -> None:
        """The cluster ends, and its cards with it."""
        self._is_open = False
        with hosts.published_once():
            self._undo.close()


_DEFAULT: Any = object()


def _shown(spec: ClusterSpec, job: str, visible: Any) -> dict[int, str | None]:
    """CUDA_VISIBLE_DEVICES of each task of a job, from one for all or a list."""
    indices = spec.task_indices(job)
    if visible is _DEFAULT:
        visible = "" if job == "ps" else None
    if visible is None or isinstance(visible, str):
        visible = [visible] * len(indices)
    if not isinstance(visible, Sequence) or not all(each is None or isinstance(each, str) for each in visible):
        raise TypeError(f"visible_devices[{job!r}] must be a text such as '0,1', or a list of them, not {visible!r}.")
    if len(visible) != len(indices):
        raise ValueError(f"visible_devices[{job!r}] is for {len(visible)} tasks, but the job has {len(indices)}.")
    return dict(zip(indices, visible, strict=True))
