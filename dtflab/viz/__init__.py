"""Data → picture: placement, timeline, memory, loads, curves, staleness, calls, queues, a networkx DiGraph.

No notebook is needed.

Read `picture`, then `placement`, `timeline` and `memory`; `layout`, `level`, `column`, `ranks` and `scopes` decide
where boxes stand, `palette`, `marks`, `style` and `svg` how they look; `figures` draws what matplotlib lays out.
Everything is a pure function of its arguments and of the style that is set; matplotlib and networkx are loaded by the
functions that need them.

Design: docs/design/viz.md
"""

from dtflab.viz.busy import busy
from dtflab.viz.card_history import card_history
from dtflab.viz.cards import cards
from dtflab.viz.clients import clients
from dtflab.viz.curves import curve
from dtflab.viz.digraph import critical_path, digraph
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import style
from dtflab.viz.estimates import estimate
from dtflab.viz.kernels import kernels
from dtflab.viz.loads import loads
from dtflab.viz.machines import machines
from dtflab.viz.memory import memory
from dtflab.viz.phases import phases
from dtflab.viz.placement import placement
from dtflab.viz.queues import queues
from dtflab.viz.queues_now import queues_now
from dtflab.viz.rates import rates
from dtflab.viz.staleness import staleness
from dtflab.viz.timeline import timeline
from dtflab.viz.variables import variables
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
    "loads",
    "estimate",
    "digraph",
    "critical_path",
    "staleness",
    "queues",
    "rates",
    "queues_now",
    "variables",
    "wire",
    "clients",
    "machines",
    "what_if",
    "sweep",
    "phases",
    "style",
    "Picture",
]
