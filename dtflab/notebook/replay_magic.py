"""`%dtf_replay`: a run in virtual time that can be stepped through, and forked."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand

from dtflab import viz
from dtflab.notebook.arguments import argument, magic, split
from dtflab.notebook.cluster_magic import cluster_named, clusters_by_name
from dtflab.notebook.magics import DtfMagics, drawn
from dtflab.viz.drawing.picture import Picture


@magics_class
class ReplayMagics(Magics):
    """The magic replay; its lines are read as those of `DtfMagics`."""

    def __init__(self, shell: Any, lines: DtfMagics) -> None:
        super().__init__(shell)
        self.lines = lines

    @magic
    @argument("what", nargs="*", help="a function of a client, as for cluster.run; or what one step fetches")
    @argument("--feed", help="feed_dict for that step, a Python expression")
    @argument("--session", help="its session, a Python expression (default: the default session, or the newest one)")
    @argument("--cluster", help="the cluster that runs it, by name (default: cluster)", values=clusters_by_name)
    @no_var_expand
    @line_magic
    def dtf_replay(self, line: str) -> Picture:
        """Run something in virtual time, and step through the run forwards and backwards; fork it with another choice.

        %dtf_replay train --feed {images: x, labels: y}    one step, with the variables as they are now
        %dtf_replay work --cluster cluster                 cluster.run(work), from the beginning

        It runs on a copy of the cluster: nothing of yours changes. The cluster must have
        clock="virtual". In the picture, arrow keys step, and Fork here computes the run again with
        another choice from that moment on: another ready op goes next, a message is lost, a task is
        killed, a link is faster. The same in plain Python:
        run = tf.viz.replay(work, cluster); run.fork(0.05, kill="worker:1")
        """
        texts, lines = split(self.dtf_replay, line), self.lines
        what, example = lines._fetches(texts), self.dtf_replay.example
        if what is None:
            raise UsageError(f"Name a function, or what a step fetches. For example: {example}")
        if not callable(what):
            if "cluster" in texts:
                raise UsageError(f"A step runs on the cluster of its session: use --session. For example: {example}")
            return drawn(viz.replay, what, lines._session(texts, example, what), lines._feed(texts))
        if unused := [name for name in ("feed", "session") if name in texts]:
            raise UsageError(f"--{unused[0]} is for a step, and {texts['']} is a function, which runs its own steps.")
        cluster = cluster_named(self, texts.get("cluster", "cluster"), "--cluster")
        return drawn(viz.replay, what, cluster)
