"""Data → picture. No notebook is needed.

Everything is a pure function of its arguments and of the style that is set; matplotlib and networkx are loaded by the
functions that need them.

Read `placement` (every op in the colour of its device) with `placement_live` (all its scopes, for a live page),
`timeline` (what ran when) with `bands` (the rows of its bars) and `timeline_live` (what it draws in a live page), and
`memory` (which tensors lay where) with `allocations` (the way to a full card).
Other pictures of a step: `explain` (its story), `conformance` (its likeness on TensorFlow's servers), `steps` (its sets
of ops), `counters` (where it stands still), `kernels` (which devices can run what), `digraph` (the graph for networkx),
`phases` (input, forward, loss, backward, update).
Pictures of a cluster: `machines` (hosts, tasks, services), `clients` (who reaches which variables), `variables` (who
holds them), `loads` (how much each device holds), `wire` (calls between tasks), `busy` (devices at work), `cards` (GPU
memory now), `card_history` (and over time).
Pictures of a training: `queues` (levels over time), `queues_now` (and at this moment), `rates` (speeds of an input
pipeline), `waits` (who waits for whom), `curves` (lines over a common x), `staleness` (ages of gradients), `table`
(results).
While a cell runs: `live` (curves that grow, a button that stops, any picture drawn again), `live_curves` (their still).
Pictures of a simulation: `estimates` (a dry run), `what_ifs` (steps on other hardware), `replay` (a run in virtual time
and its forks) with `replay_live` (what a live page steps through).
What they share: `colouring` (what colours mean), `participants` (tasks and clients that a watch saw), `scopes` (name
scopes as boxes), `data` (traces and watches as plain data), `drawing` (marks, markup, styles), `layout` (where boxes
stand).

Design: docs/design/viz.md
"""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.viz.busy import busy
from dtflab.viz.card_history import card_history
from dtflab.viz.cards import cards
from dtflab.viz.clients import clients
from dtflab.viz.curves import curve
from dtflab.viz.digraph import critical_path, digraph
from dtflab.viz.drawing.palette import palette
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import style
from dtflab.viz.estimates import estimate
from dtflab.viz.kernels import kernels
from dtflab.viz.live import live
from dtflab.viz.loads import loads
from dtflab.viz.machines import machines
from dtflab.viz.memory import memory
from dtflab.viz.phases import phases
from dtflab.viz.placement import placement
from dtflab.viz.queues import queues
from dtflab.viz.queues_now import queues_now
from dtflab.viz.rates import rates
from dtflab.viz.replay import replay
from dtflab.viz.staleness import staleness
from dtflab.viz.table import table
from dtflab.viz.timeline import timeline
from dtflab.viz.variables import variables
from dtflab.viz.waits import waits
from dtflab.viz.what_ifs import sweep, what_if
from dtflab.viz.wire import wire

__all__ = [
    "placement",
    "timeline",
    "memory",
    "busy",
    "cards",
    "card_history",
    "curve",
    "kernels",
    "live",
    "loads",
    "estimate",
    "digraph",
    "critical_path",
    "staleness",
    "queues",
    "rates",
    "replay",
    "queues_now",
    "variables",
    "waits",
    "wire",
    "clients",
    "machines",
    "what_if",
    "sweep",
    "phases",
    "table",
    "style",
    "palette",
    "Picture",
]

__getattr__ = _missing_in("tf.viz", __all__)
