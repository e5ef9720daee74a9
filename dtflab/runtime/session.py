"""Session: the client. Fetches and feeds become one RunStep; new nodes of the graph go to the master first.

Stands for `python/client/session.py` and `session_factory`.

Rules: there is one path. `Session()` is the client of a cluster of one task in this process; a target names another
cluster, and only the transport differs. What a client is given is its own: writing into a fetched array, or later into
an array that was fed, changes nothing in the cluster.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.base.events import PROCESS
from dtflab.graph import default_stacks, scopes
from dtflab.graph.feeds import checked_feeds, feed_tensors
from dtflab.graph.fetches import Fetches
from dtflab.graph.graph import Graph
from dtflab.graph.node import Node
from dtflab.graph.operation import Operation, Tensor
from dtflab.placement.own_placer import placer_named
from dtflab.runtime import client, transport
from dtflab.runtime.steps import Steps
from dtflab.runtime.watched_master import WatchedMaster

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.machine.devices import Device
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import CallableOptions, ConfigProto, RunMetadata, RunOptions
    from dtflab.protos.graph_pb2 import GraphDef
    from dtflab.runtime.master import MasterSession
    from dtflab.runtime.transport import MasterInterface


_sessions: list[weakref.ref[BaseSession]] = []  # those that somebody holds, the oldest first


def last_session() -> BaseSession | None:
    """The newest session that is still open."""
    return next(reversed(open_sessions()), None)


def open_sessions() -> list[BaseSession]:
    """The sessions of this process that are not closed, the oldest first."""
    return [session for ref in _sessions[:] if (session := ref()) is not None and not session._closed]


class BaseSession:
    """A client's connection to a master, with the graph that it runs."""

    handle = ""  # of the session that is open there; none before the first step

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        placer: Placer | str | None = None,
        step_through: bool = False,
        credentials: Credentials | None = None,
    ) -> None:
        """Connect to `target`: '' for this process, `grpc://host:port` or `server.target` for a cluster.

        `placer(nodes, devices, default_task, allow_soft_placement=…, placed=…)` replaces the
        simple placer (docs/placers.md); it returns the device of each node by name. "dynamic" is one that goes by time.
        Placers work where the master is in this process; else the first run raises ValueError. With `step_through`,
        each `run` prints what it does, one set of ready nodes after the other. `credentials` are what the server asks
        for; a cluster of this process and DTFLAB_CREDENTIALS have theirs.
        Raises NotFoundError for an unknown kind of target, TypeError for arguments of another type.
        """
        target = client.checked_target(target, graph, config)
        self._graph = graph if graph is not None else scopes.get_default_graph()
        self._target = target
        self.config = config
        self._lock = threading.Lock()
        self._sent, self._closed = 0, False
        self.last_trace: RunMetadata | None = None  # of the newest step that `trace` ran
        self._resolved: dict[object, Fetches] = {}
        self._contexts: list[contextlib.AbstractContextManager[object]] = []
        self._connect = transport.connection_to(target)
        self._credentials = credentials
        self._placer = placer_named(placer)
        self._in_steps = step_through
        self._master: MasterInterface | None = None
        self.thread = threading.get_ident()  # that made it
        _sessions.append(weakref.ref(self, _sessions.remove))

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> GraphDef:
        add_shapes = self.config is not None and self.config.graph_options.infer_shapes
        return self._graph.as_graph_def(add_shapes=add_shapes)

    @property
    def sess_str(self) -> bytes:
        return self._target.encode()

    def run(
        self,
        fetches: object,
        feed_dict: object = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run what `fetches` needs, once, and return their values in the same structure.

        `fetches` is a tensor, an operation (its value is None), a name, or nested lists, tuples, dicts, namedtuples of
        these. `feed_dict` gives tensors other values. `run_metadata` is filled with what `options` asks for. Raises a
        class of `tf.errors`; RuntimeError on a closed session.
        """
        self._check_usable(fetches)
        if self._in_steps:
            return self.step_through(fetches, feed_dict, options, run_metadata).printed()
        feeds = {} if feed_dict is None else checked_feeds(self._graph, feed_dict, copy=False)
        wanted = self._resolve(fetches, feeds)
        values: list[object] = []
        if wanted.fetch_names or wanted.target_names:
            fed = list(zip(wanted.feed_names, feeds.values(), strict=True)) if feeds else []
            try:
                values = self._opened().run_step(
                    self.handle, fed, wanted.fetch_names, wanted.target_names, options, run_metadata
                )
            except (errors.OpError, KeyboardInterrupt) as error:
                raise client.explained(error, self._graph, self._target) from None
        return wanted.rebuild(values, self, feeds)

    def _check_usable(self, fetches: object) -> None:
        if self._closed:
            raise client.closed()
        if not self._sent and self._graph.version == 0:
            raise client.empty(fetches)

    def _resolve(self, fetches: object, fed: Collection[Tensor] = ()) -> Fetches:
        """The resolved fetch. Plain tensors and operations, or a list of them, are remembered: loops ask for these."""
        # None ends a list.
        elements: tuple[object, ...] = (*fetches, None) if type(fetches) is list and fetches else (fetches,)
        key: tuple[object, ...] = (*elements, *fed) if fed else elements
        try:
            return self._resolved[key]
        except (KeyError, TypeError):  # a new one; or one that can't be a key
            found = Fetches(self._graph, fetches, fed)
        if all(isinstance(part, Tensor | Operation | None) for part in key):  # type: ignore[misc]
            self._resolved[key] = found
        return found

    def partial_run_setup(self, fetches: object, feeds: Iterable[object] | None = None) -> str:
        """Begin a step that `partial_run` feeds and fetches bit by bit; returns its handle.

        `fetches` are all that will be fetched, and operations to run; `feeds` a list of all that will be fed.
        """
        self._check_usable(fetches)
        wanted = self._resolve(fetches)
        fed = [tensor.name for tensor in feed_tensors(self._graph, feeds or ())]
        try:
            return self._opened().partial_run_setup(self.handle, fed, wanted.fetch_names, wanted.target_names)
        except (errors.OpError, KeyboardInterrupt) as error:
            raise client.explained(error, self._graph, self._target) from None

    def partial_run(self, handle: str, fetches: object, feed_dict: object = None) -> Any:
        """Go on with the step of `handle`: feed some of its tensors, fetch others; each once."""
        self._check_usable(fetches)
        wanted = self._resolve(fetches)
        if wanted.targets:
            raise RuntimeError(
                f"partial_run() requires empty `target_list`. Received: target_list={wanted.targets} (non-empty). "
                "Operations run with the setup: partial_run_setup([…, operation])."
            )
        feeds = [(t.name, value) for t, value in checked_feeds(self._graph, feed_dict).items()]
        try:
            values = self._opened().partial_run(self.handle, handle, feeds, wanted.fetch_names)
        except (errors.OpError, KeyboardInterrupt) as error:
            raise client.explained(error, self._graph, self._target) from None
        return wanted.rebuild(values, self)

    def make_callable(
        self, fetches: object, feed_list: object = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs `fetches`; its positional arguments feed the tensors of `feed_list`.

        With `accept_options` it also takes `options` and `run_metadata`.
        """
        if feed_list is not None and not isinstance(feed_list, list | tuple):
            raise TypeError(f"Argument `feed_list` must be a list or tuple. Received: feed_list={feed_list}")
        self._check_usable(fetches)
        keys = feed_tensors(self._graph, feed_list or ())
        self._resolve(fetches)

        def run(*values: object, options: RunOptions | None = None, run_metadata: RunMetadata | None = None) -> object:
            fed = dict(zip(keys, values, strict=False))
            return self.run(fetches, fed, options, run_metadata)  # type: ignore[misc]

        return run

    def _make_callable_from_options(self, options: CallableOptions) -> Callable[..., list[Any]]:
        """A function that runs what a CallableOptions message asks for; its arguments feed what that says is fed."""
        wanted, fed = [*options.fetch, *options.target], [*options.feed]
        run = self.make_callable(wanted, fed, accept_options=True)  # type: ignore[misc]

        def only_fetched(*values: object, run_metadata: RunMetadata | None = None) -> list[object]:
            found: list[object] = run(*values, options=options.run_options, run_metadata=run_metadata)
            return found[: len(options.fetch)]

        return only_fetched

    def _opened(self, empty: bool = False) -> MasterInterface:
        """The master, which has the session by now, and the nodes added since the last run; if `empty`, not these."""
        master = self._master
        if master is None or not self.handle or not (empty or self._sent == self._graph.version):
            master = self._extend(empty)
        return WatchedMaster(master, self._target) if PROCESS.call or PROCESS.begins else master

    def _extend(self, empty: bool) -> MasterInterface:
        """Send the nodes added since the last run, or none; before the first one, connect and open the session."""
        with self._lock:
            nodes = [] if empty else self._graph.nodes(self._sent)
            master = self._master = self._master or self._connect(self._target, self.config, self._credentials)
            asked = WatchedMaster(master, self._target) if PROCESS.call else master
            if not self.handle:
                self.handle = asked.create_session(nodes, self.config, self._placer)
                if self._closed:  # meanwhile, by another thread, which found nothing to close
                    master.close_session(self.handle)
                    raise errors.CancelledError.of("Session has been closed.")
            elif nodes:
                asked.extend_session(self.handle, nodes)
            self._sent += len(nodes)
            return master

    @property
    def master_task(self) -> str:
        """The task of the session's master, by its name in the session's cluster if the master is in this process."""
        master = self._opened(empty=True)
        local = master.local()
        return master.task if local is None else local.session(self.handle).task

    def trace(self, fetches: object, feed_dict: object = None) -> RunMetadata:
        """Run `fetches` once and return the RunMetadata that says what ran when; `dtflab.viz.timeline` draws it."""
        from dtflab.protos.config_pb2 import RunMetadata, RunOptions

        self.run(fetches, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata := RunMetadata())
        self.last_trace = metadata
        return metadata

    def step_through(
        self,
        fetches: object,
        feed_dict: object = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Steps:
        """Begin a step that is run by hand: `next()` runs the nodes that are ready, `finish()` gives what `run` gives.

        The arguments are those of `run`. NotImplementedError for a master of TensorFlow. A line says which tasks are
        TensorFlow's: their parts run through unseen.
        """
        self._check_usable(fetches)
        feeds = checked_feeds(self._graph, feed_dict)
        wanted = self._resolve(fetches, feeds)
        try:
            steps = self._opened().step_through(
                self.handle,
                list(zip(wanted.feed_names, feeds.values(), strict=True)),
                wanted.fetch_names,
                wanted.target_names,
                options,
                run_metadata,
                rebuild=lambda values: wanted.rebuild(values, self, feeds),
                explain=lambda error: client.explained(error, self._graph, self._target),
            )
        except (errors.OpError, KeyboardInterrupt) as error:
            raise client.explained(error, self._graph, self._target) from None
        if steps.unseen:
            from dtflab.machine.console import say

            say(f"Not tasks of dtflab, so their parts of the step run through unseen: {', '.join(steps.unseen)}")
        return steps

    def placed_nodes(self, fetches: object = None) -> list[Node]:
        """The nodes of the session's graph with the devices they were placed on; only those of `fetches` if given.

        `placement_reasons` says why. NotImplementedError for a master of TensorFlow, which does not report it.
        """
        wanted = self._resolve([] if fetches is None else fetches)
        master = self._opened()
        placed = master.placed(self.handle, wanted.fetch_names, wanted.target_names)
        if master.local() is not None:
            return placed
        lines = {node.name: node.line for node in self._graph.nodes()}  # of the program, which did not travel
        return [node.replace(line=lines.get(node.name)) for node in placed]

    def placement_reasons(self) -> dict[str, str]:
        """Why each node of the session's graph is where `placed_nodes` says, in a sentence; by name."""
        return self._opened().reasons(self.handle)

    def master_session(self) -> MasterSession:
        """The master's side of the session; NotImplementedError if the master is in another process."""
        master = self._opened().local()
        if master is None:
            raise NotImplementedError(f"The master of {self._target} is in another process. Ask its cluster.")
        return master.session(self.handle)

    def local_devices(self) -> list[Device]:
        """The devices of the session's tasks in this process; NotImplementedError if its master is in another one."""
        return self.master_session().local_devices()

    def list_devices(self) -> list[client.DeviceAttributes]:
        """The devices of the session: name, device_type, memory_limit_bytes, incarnation. It places nothing."""
        return [client.DeviceAttributes.of(message) for message in self._opened(empty=True).list_devices(self.handle)]

    def close(self) -> None:
        """Release the session. Variables on a cluster stay; those of a local session go with it."""
        closed, self._closed = self._closed, True
        if not closed and self.handle:
            self._opened(empty=True).close_session(self.handle)

    def __del__(self) -> None:
        if self.handle and not sys.is_finalizing():
            try:
                self.close()
            except Exception:  # the cluster may be long gone, and nobody could catch this
                return

    def as_default(self) -> contextlib.AbstractContextManager[object]:
        """A context manager that makes this the default session of the thread; it is not closed at the end."""
        return default_stacks.default_session_stack.entered(self)


class Session(BaseSession):
    """A session that a `with` block opens and closes; inside, it and its graph are the defaults."""

    def __enter__(self) -> Session:
        if self._closed:
            raise client.closed()
        if self._contexts:
            raise RuntimeError("Session context managers are not re-entrant. Use `Session.as_default()` instead.")
        self._contexts = [self._graph.as_default(), self.as_default()]
        for context in self._contexts:
            context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._contexts:
            self._contexts.pop().__exit__(kind, error, traceback)
        client.close_after(error, self.close)

    @staticmethod
    def reset(
        target: str,
        containers: Sequence[str] | None = None,
        config: ConfigProto | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """Close all sessions of the server at `target`, and empty containers on the tasks of its cluster.

        Without names it is the default one, with all variables and queues that no `tf.container` put elsewhere.
        """
        target = client.checked_target(target)
        transport.connection_to(target)(target, config, credentials).reset(list(containers or ()))


class InteractiveSession(BaseSession):
    """A session that makes itself and its graph the defaults at once, for a prompt.

    It places what it runs (`place_pruned_graph`), and without a `config` GPU memory grows as it is needed.
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        step_through: bool = False,
        credentials: Credentials | None = None,
    ) -> None:
        client.warn_of_another(InteractiveSession)
        super().__init__(target, graph, config, step_through=step_through, credentials=credentials)
        self.config = client.interactive(config)
        self._contexts = [self._graph.as_default(), self.as_default()][graph is None :]
        for context in self._contexts:
            context.__enter__()

    def close(self) -> None:
        """Release the session and stop being the default."""
        super().close()
        while self._contexts:
            self._contexts.pop().__exit__(None, None, None)
