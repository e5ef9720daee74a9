"""The magics: thin skins over functions of the library. `%dtf_cluster?` shows the usage of one."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from dtflab import viz
from dtflab.cluster.cluster import Cluster
from dtflab.graph import scopes
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.runtime.session import BaseSession, last_session


@magics_class
class DtfMagics(Magics):
    """`%dtf_cluster`, `%dtf_placement`, `%dtf_timeline`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.clusters: dict[str, Cluster] = {}

    @magic_arguments()
    @argument("verb", nargs="?", default="start", help="start (default), status, stop or restart")
    @argument("--ps", type=int, default=0, help="number of parameter servers")
    @argument("--worker", type=int, default=0, help="number of workers")
    @argument("--job", action="append", default=[], metavar="NAME=N", help="any other job, NAME=N; may be repeated")
    @argument("--engine", default="inprocess", help="inprocess (default) or process: one OS process per task")
    @argument("--listen", action="store_true", help="bind loopback ports, so that other processes can join")
    @argument("--name", default="cluster", help="the cluster's name; starting it again replaces it")
    @line_magic
    def dtf_cluster(self, line: str) -> Any:
        """Start a cluster, look at it, stop it.

        cluster = %dtf_cluster --ps 1 --worker 2
        %dtf_cluster status
        %dtf_cluster stop
        """
        args = parse_argstring(self.dtf_cluster, line)
        if args.verb == "start":
            return self._start(args)
        cluster = self._known(args.name)
        if args.verb == "status":
            return cluster
        if args.verb == "stop":
            cluster.stop()
            del self.clusters[args.name]
            return None
        if args.verb == "restart":
            cluster.stop()
            self.clusters[args.name] = Cluster(cluster.spec, engine=cluster.engine, name=args.name)
            return self.clusters[args.name]
        raise UsageError(f"%dtf_cluster {args.verb}? Say start, status, stop or restart.")

    def _start(self, args: Any) -> Cluster:
        jobs = {"ps": args.ps, "worker": args.worker}
        for item in args.job:
            job, separator, count = item.partition("=")
            if not separator or not count.isdigit():
                raise UsageError(f"--job {item}: write NAME=N, for example --job chief=1")
            jobs[job] = int(count)
        if not any(jobs.values()):
            raise UsageError("A cluster needs at least one task. For example: %dtf_cluster --ps 1 --worker 2")
        if args.name in self.clusters:
            self.clusters.pop(args.name).stop()
        cluster = Cluster(engine=args.engine, listen=args.listen, name=args.name, **jobs)
        self.clusters[args.name] = cluster
        return cluster

    def _known(self, name: str) -> Cluster:
        if name not in self.clusters:
            raise UsageError(f"No cluster {name!r} is running. Start it: %dtf_cluster --ps 1 --worker 2")
        return self.clusters[name]

    @magic_arguments()
    @argument("fetches", nargs="*", help="what to draw: a Python expression of tensors or operations; all if none")
    @argument("--session", default=None, help="the session (a Python expression); else the default or newest one")
    @line_magic
    def dtf_placement(self, line: str) -> Any:
        """Draw the graph of a session, coloured by the device that each op was placed on.

        %dtf_placement
        %dtf_placement loss
        """
        args = parse_argstring(self.dtf_placement, line)
        return viz.placement(self._session(args.session).placed_nodes(self._value(args.fetches)))

    @magic_arguments()
    @argument("fetches", nargs="*", help="a RunMetadata, or tensors or operations to run once, traced")
    @argument("--feed", default=None, help="feed_dict for that run (a Python expression without spaces, or a name)")
    @argument("--session", default=None, help="the session (a Python expression); else the default or newest one")
    @line_magic
    def dtf_timeline(self, line: str) -> Any:
        """Draw what ran when: run something once, traced, or show a RunMetadata.

        %dtf_timeline train_op --feed feed_dict
        %dtf_timeline run_metadata
        """
        args = parse_argstring(self.dtf_timeline, line)
        fetches = self._value(args.fetches)
        if fetches is None:
            raise UsageError("Name what to run: %dtf_timeline train_op, or a RunMetadata of a traced run.")
        if isinstance(fetches, RunMetadata):
            return viz.timeline(fetches)
        feed = self._value([args.feed]) if args.feed else None
        return viz.timeline(self._session(args.session).trace(fetches, feed))

    def _value(self, words: list[str]) -> Any:
        """The value of a Python expression in the user's namespace; None for no words."""
        return self.shell.ev(" ".join(words)) if words else None

    def _session(self, expression: str | None) -> BaseSession:
        session = self.shell.ev(expression) if expression else scopes.get_default_session() or last_session()
        if session is None:
            raise UsageError("No session yet. Open one: sess = tf.Session(cluster.target)")
        return session
