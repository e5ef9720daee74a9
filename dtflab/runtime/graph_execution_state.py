"""GraphExecutionState: the graph of a session, and on which device each of its nodes is.

Stands for `graph_execution_state.cc`. Left out: graph rewriting (grappler).

Rules: a node is placed once, when the session is created or extended by it. With `place_pruned_graph` a node is placed
as part of each kind of step that needs it, so one that no step needs may be impossible to place; a node with state
stays where its first step has put it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dtflab.graph import op_registry
from dtflab.graph.inlining import inline
from dtflab.graph.node import Node, by_name
from dtflab.placement import own_placer
from dtflab.placement.reasons import log_placement, reasons_of
from dtflab.runtime.placer import SimplePlacer, place
from dtflab.runtime.prune import prune

if TYPE_CHECKING:
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import ConfigProto


class GraphExecutionState:
    """The graph of a session on `devices`, full names; `task` is that of its master. It is not thread-safe."""

    def __init__(self, devices: Sequence[str], task: str, config: ConfigProto, placer: Placer | None) -> None:
        self._devices = devices
        self._task = task
        self._client_device = f"{task}/device:CPU:0"
        self._config = config
        self._places_pruned = config.graph_options.place_pruned_graph
        self._own_placer = placer
        self._placer: SimplePlacer | None = None  # that knows the graph
        self._asked: dict[str, Node] = {}  # the graph with the devices that the program asks for
        self._nodes: dict[str, Node] = {}  # with those that it was placed on, unless pruned graphs are placed
        self._settled: dict[str, str] = {}  # devices of nodes with state, of pruned graphs
        self._order: dict[str, int] = {}  # the number of each node
        self.reasons: dict[str, str] = {}  # why each node is where it is

    def extend(self, nodes: Sequence[Node]) -> None:
        """Take new nodes and place them; what was placed before stays where it is."""
        nodes = inline(nodes)
        if self._places_pruned:
            new = by_name(nodes)
        else:
            where = self._extended(nodes)
            new = {node.name: node.replace(device=where[node.name]) for node in nodes}
            self.reasons |= reasons_of(where, new, self._own_placer)
        self._order.update(zip(new, itertools.count(len(self._order))))
        self._nodes |= new
        self._asked |= by_name(nodes)
        if not self._places_pruned and self._config.log_device_placement:
            log_placement(self._nodes.values(), new)

    def _extended(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """The devices of new nodes. A placer of the program's own is shown the full graph each time."""
        placer, self._placer = self._placer, None  # an error spoils it; the next one starts with the full graph
        if placer is None:
            placed = {name: node.device for name, node in self._nodes.items()}
            nodes = [*self._asked.values(), *nodes]
            if self._own_placer is not None:
                return self._by_own_placer(self._own_placer, nodes, placed)
            placer = SimplePlacer(self._devices, self._task, self._config.allow_soft_placement, placed)
        found = placer.extend(nodes)
        self._placer = placer
        return found

    def _by_own_placer(self, placer: Placer, nodes: Sequence[Node], placed: Mapping[str, str]) -> Mapping[str, str]:
        soft = self._config.allow_soft_placement
        where = placer(nodes, self._devices, self._task, allow_soft_placement=soft, placed=placed)
        own_placer.check(placer, where, nodes, self._devices, placed)
        return where

    def pruned(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], partial: bool = False
    ) -> list[Node]:
        """The placed nodes of a kind of step (prune.prune)."""
        kept = prune(self._nodes, feeds, fetches, targets, self._client_device, partial, self._order)
        if not self._places_pruned:
            return kept
        placed = self._placed_alone(kept)
        self._settled |= {node.name: node.device for node in placed if op_registry.get(node.op).stateful}
        if self._config.log_device_placement:
            log_placement(placed, by_name(placed))
        return placed

    def placed(self, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph, or the part of it that `fetches` and `targets` need. It settles nothing."""
        nodes = list(self._nodes.values())
        if fetches or targets:
            kept = prune(self._nodes, (), fetches, targets, self._client_device, order=self._order)
            nodes = [node for node in kept if node.name in self._nodes]
        return self._placed_alone(nodes) if self._places_pruned else nodes

    def known(self) -> list[Node]:
        """The graph as it is placed so far, also while another thread extends it."""
        return [node.replace(device=self._settled.get(node.name, node.device)) for node in list(self._nodes.values())]

    def _placed_alone(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes placed as if there were no others."""
        placed = {node.name: self._settled[node.name] for node in nodes if node.name in self._settled}
        if self._own_placer is not None:
            where = self._by_own_placer(self._own_placer, nodes, placed)
        else:
            where = place(nodes, self._devices, self._task, self._config.allow_soft_placement, placed)
        self.reasons |= reasons_of(where, [node.name for node in nodes if node.name in self._nodes], self._own_placer)
        return [node.replace(device=where[node.name]) for node in nodes]
