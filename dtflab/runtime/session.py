"""Session: the client. Fetches and feeds become one RunStep; new nodes of the graph go to the master first.

Stands for `python/client/session.py` and `session_factory`.

Rules: there is one path. `Session()` is the client of a cluster of one task in this process; a target names another
cluster, and only the transport differs. What a client is given is its own: writing into a fetched array, or later into
an array that was fed, changes nothing in the cluster.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.graph import default_stacks, scopes
from dtflab.graph.feeds import checked_feeds, feed_tensors
from dtflab.graph.fetches import Fetches
from dtflab.graph.graph import Graph
from dtflab.graph.node import Node
from dtflab.graph.operation import Operation, Tensor
from dtflab.placement.own_placer import placer_named
from dtflab.runtime import transport
from dtflab.runtime.client import DeviceAttributes, asked, checked_target, close_after, explained, warn_of_another
from dtflab.runtime.placer import Placer
from dtflab.runtime.steps import Steps

if TYPE_CHECKING:
    from dtflab.runtime.master import MasterSession


_sessions: list[weakref.ref[BaseSession]] = []  # those that somebody holds, the oldest first


def last_session() -> BaseSession | None:
    """The newest session that is still open."""
    return next(reversed(open_sessions()), None)


def open_sessions() -> list[BaseSession]:
    """The sessions of this process that are not closed, the oldest first."""
    return [session for ref in _sessions[:] if (session := ref()) is not None and not session._closed]


class BaseSession:
    """A client's connection to a master, with the graph that it runs."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: Any = None, placer: Placer | str | None = None,
        step_through: bool = False,
    ) -> None:  # fmt: skip
        """Connect to `target`: '' for this process, `grpc://host:port` or `server.target` for a cluster.

        `config` is a ConfigProto. `placer(nodes, devices, default_task, allow_soft_placement=…, placed=…)` replaces the
        simple placer (docs/placers.md); it returns the device of each node by name. "dynamic" is one that goes by time.
        Placers work where the master is in this process; else the first run raises ValueError. With `step_through`,
        each `run` prints what it does, one set of ready nodes after the other.
        Raises NotFoundError for an unknown kind of target, TypeError for arguments of another type.
        """
        target = checked_target(target, graph, config)
        self._graph = graph if graph is not None else scopes.get_default_graph()
        self._target = target
        self._config = config
        self._lock = threading.Lock()
        self._sent = 0
        self._closed = False
        self._resolved: dict[Any, Fetches] = {}
        self._contexts: list[Any] = []
        self._connect = transport.connection_to(target)
        self._placer = placer_named(placer)
        self._in_steps = step_through
        self._master: Any = None
        self._handle: str | None = None
        self.thread = threading.get_ident()  # that made it
        _sessions.append(weakref.ref(self, _sessions.remove))

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        add_shapes = self._config is not None and self._config.graph_options.infer_shapes
        return self._graph.as_graph_def(add_shapes=add_shapes)

    @property
    def sess_str(self) -> bytes:
        return self._target.encode()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run what `fetches` needs, once, and return their values in the same structure.

        `fetches` is a tensor, an operation (its value is None), a name, or nested lists, tuples, dicts, namedtuples of
        these. `feed_dict` gives tensors other values. `options` is a RunOptions, `run_metadata` a RunMetadata that is
        filled. Raises a class of `tf.errors`; RuntimeError on a closed session.
        """
        self._check_usable()
        if self._in_steps:
            return self.step_through(fetches, feed_dict, options, run_metadata).told()
        feeds = checked_feeds(self._graph, feed_dict) if feed_dict else {}
        wanted = self._resolve(fetches, feeds)
        values: list[Any] = []
        if wanted.fetch_names or wanted.target_names:
            fed = list(zip(wanted.feed_names, feeds.values(), strict=True))
            values = self._ask("run_step", fed, wanted.fetch_names, wanted.target_names, options, run_metadata)
        return wanted.rebuild(values, self, feeds)

    def _check_usable(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")

    def _resolve(self, fetches: Any, fed: Collection[Tensor] = ()) -> Fetches:
        """The resolved fetch. Plain tensors and operations, or a list of them, are remembered: loops ask for these."""
        key = (*fetches, None, *fed) if type(fetches) is list and fetches else (fetches, *fed)  # None ends a list
        try:
            return self._resolved[key]
        except (KeyError, TypeError):  # a new one; or one that can't be a key
            found = Fetches(self._graph, fetches, fed)
        if all(isinstance(part, Tensor | Operation | None) for part in key):
            self._resolved[key] = found
        return found

    def _ask(self, method: str, *args: Any) -> Any:
        """Call a method of the master on the session; its errors get the user's line."""
        try:
            self._extend()
            return asked(self._master, method)(self._handle, *args)
        except (errors.OpError, KeyboardInterrupt) as error:
            raise explained(error, self._graph) from None

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Begin a step that `partial_run` feeds and fetches bit by bit; returns its handle.

        `fetches` are all that will be fetched, and operations to run; `feeds` a list of all that will be fed.
        """
        self._check_usable()
        wanted = self._resolve(fetches)
        fed = [tensor.name for tensor in feed_tensors(self._graph, feeds or ())]
        handle: str = self._ask("partial_run_setup", fed, wanted.fetch_names, wanted.target_names)
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Go on with the step of `handle`: feed some of its tensors, fetch others; each once."""
        self._check_usable()
        wanted = self._resolve(fetches)
        if wanted.targets:
            raise RuntimeError(
                f"partial_run() requires empty `target_list`. Received: target_list={wanted.targets} (non-empty). "
                "Operations run with the setup: partial_run_setup([…, operation])."
            )
        feeds = [(t.name, value) for t, value in checked_feeds(self._graph, feed_dict or {}).items()]
        return wanted.rebuild(self._ask("partial_run", handle, feeds, wanted.fetch_names), self)

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """A function that runs `fetches`; its positional arguments feed the tensors of `feed_list`.

        With `accept_options` it also takes `options` and `run_metadata`.
        """
        if feed_list is not None and not isinstance(feed_list, list | tuple):
            raise TypeError(f"Argument `feed_list` must be a list or tuple. Received: feed_list={feed_list}")
        self._check_usable()
        keys = feed_tensors(self._graph, feed_list or ())
        self._resolve(fetches)

        def run(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            return self.run(fetches, dict(zip(keys, values, strict=False)), options, run_metadata)

        return run

    def _make_callable_from_options(self, options: Any) -> Callable[..., list[Any]]:
        """A function that runs what a CallableOptions message asks for; its arguments feed what that says is fed."""
        run = self.make_callable([*options.fetch, *options.target], [*options.feed], accept_options=True)
        count, given = len(options.fetch), options.run_options
        return lambda *values, run_metadata=None: run(*values, options=given, run_metadata=run_metadata)[:count]

    def _extend(self, empty: bool = False) -> None:
        """Send the nodes added since the last run, or none; before the first one, connect and open the session."""
        if self._handle is not None and (empty or self._sent == self._graph.version):
            return
        with self._lock:
            nodes = [] if empty else self._graph.nodes(self._sent)
            if self._handle is None:
                self._master = self._master or self._connect(self._target, self._config)
                self._handle = asked(self._master, "create_session")(nodes, self._config, self._placer)
                if self._closed:  # meanwhile, by another thread, which found nothing to close
                    self._master.close_session(self._handle)
                    raise errors.CancelledError.of("Session has been closed.")
            elif nodes:
                asked(self._master, "extend_session")(self._handle, nodes)
            self._sent += len(nodes)

    def trace(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Run `fetches` once and return the RunMetadata that says what ran when; `dtflab.viz.timeline` draws it."""
        from dtflab.protos.config_pb2 import RunMetadata, RunOptions

        metadata = RunMetadata()
        self.run(fetches, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
        return metadata

    def step_through(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Steps:
        """Begin a step that is run by hand: `next()` runs the nodes that are ready, `finish()` gives what `run` gives.

        The arguments are those of `run`. NotImplementedError for a master in another process.
        """
        self._check_usable()
        feeds = checked_feeds(self._graph, feed_dict or {})
        wanted = self._resolve(fetches, feeds)
        self._extend()
        if not hasattr(self._master, "step_through"):
            raise NotImplementedError(
                f"The master of {self._target} is in another process and runs its steps in one go. Step through a "
                "session of this process: tf.Session(), or tf.Session(cluster.target) of a tf.Cluster(…) in it."
            )
        fed = list(zip(wanted.feed_names, feeds.values(), strict=True))
        told = lambda values: wanted.rebuild(values, self, feeds), lambda error: explained(error, self._graph)
        names = wanted.fetch_names, wanted.target_names
        steps: Steps = self._ask("step_through", fed, *names, options, run_metadata, *told)
        return steps

    def placed_nodes(self, fetches: Any = None) -> list[Node]:
        """The nodes of the session's graph with the devices they were placed on; only those of `fetches` if given.

        `placement_reasons` says why. NotImplementedError for a master in another process, which does not tell.
        """
        session = self._master_session()
        if fetches is None:
            return session.placed()
        wanted = self._resolve(fetches)
        return session.placed(wanted.fetch_names, wanted.target_names)

    def placement_reasons(self) -> dict[str, str]:
        """Why each node of the session's graph is where `placed_nodes` says, in a sentence; by name."""
        return dict(self._master_session().reasons)

    def _master_session(self) -> MasterSession:
        self._extend()
        if not hasattr(self._master, "session"):
            raise NotImplementedError("Only a master in this process tells its placement; trace a run instead.")
        session: MasterSession = self._master.session(self._handle)
        return session

    def list_devices(self) -> list[Any]:
        """The devices of the session: name, device_type, memory_limit_bytes, incarnation. It places nothing."""
        self._extend(empty=True)
        return [DeviceAttributes.of(message) for message in self._master.list_devices(self._handle)]

    def close(self) -> None:
        """Release the session. Variables on a cluster stay; those of a local session go with it."""
        closed, self._closed = self._closed, True
        if not closed and self._handle is not None:
            asked(self._master, "close_session")(self._handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and not sys.is_finalizing():
            try:
                self.close()
            except Exception:  # the cluster may be long gone, and nobody could catch this
                return

    def as_default(self) -> Any:
        """A context manager that makes this the default session of the thread; it is not closed at the end."""
        return default_stacks.default_session_stack.entered(self)


class Session(BaseSession):
    """A session that a `with` block opens and closes; inside, it and its graph are the defaults."""

    def __enter__(self) -> Session:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._contexts:
            raise RuntimeError("Session context managers are not re-entrant. Use `Session.as_default()` instead.")
        self._contexts = [self._graph.as_default(), self.as_default()]
        for context in self._contexts:
            context.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        while self._contexts:
            self._contexts.pop().__exit__(*exc)
        close_after(exc[1], self.close)

    @staticmethod
    def reset(target: str, containers: Sequence[str] | None = None, config: Any = None) -> None:
        """Empty resource containers (all if none is named) on the cluster of `target`, and close its sessions."""
        target = checked_target(target)
        transport.connection_to(target)(target, config).reset(list(containers or ()))


class InteractiveSession(BaseSession):
    """A session that makes itself and its graph the defaults at once, for a prompt."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: Any = None, step_through: bool = False
    ) -> None:
        warn_of_another(InteractiveSession)
        super().__init__(target, graph, config, step_through=step_through)
        self._contexts = [self._graph.as_default(), self.as_default()][graph is None :]
        for context in self._contexts:
            context.__enter__()

    def close(self) -> None:
        """Release the session and stop being the default."""
        super().close()
        while self._contexts:
            self._contexts.pop().__exit__(None, None, None)
