"""The client's side of a session, apart from steps: checks of its arguments, its devices, its errors.

Stands for the small parts of `python/client/session.py` that are not about a step.
"""

from __future__ import annotations

import re
import warnings
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import errors, tf_logging
from dtflab.base.nest import leaves
from dtflab.graph import default_stacks, device_spec
from dtflab.graph.feeds import register_feed_pairs
from dtflab.graph.fetches import is_expanded, register_fetch_expansion
from dtflab.graph.graph import Graph
from dtflab.graph.inlining import is_call

if TYPE_CHECKING:
    from dtflab.base.errors import OpError
    from dtflab.graph.operation import Operation
    from dtflab.protos import device_attributes_pb2
    from dtflab.protos.config_pb2 import ConfigProto

# The operation on whose behalf a node was made by prune (`_retval_v_0_0`) or partition (`v/to_job_ps…/0/send`).
_OWNER = re.compile(r"^_(?:arg|retval)_(.*)_\d+_\d+$|^(.*?)/to_job.*$")


class Failure(NamedTuple):
    """The error of a client's call: which one of this process, its class and the first line of its message."""

    number: int
    target: str  # of the session
    text: str


failures = deque([Failure(0, "", "")], maxlen=100)  # the latest of them, the newest last


def checked_target(target: object, graph: object = None, config: object = None) -> str:
    """A session's target as text; TypeError for an argument of another type."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"')
    if config is not None:
        from dtflab.protos.config_pb2 import ConfigProto

        if not isinstance(config, ConfigProto):
            raise TypeError(f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"')
    if target is None:
        return ""
    if isinstance(target, bytes):
        return target.decode()
    if not isinstance(target, str):
        error = TypeError(f'Argument `target` must be a string, but got "{type(target).__name__}"')
        if hasattr(target, "target"):  # a Cluster or Server
            error.add_note("Its address is its `target`: tf.Session(cluster.target).")
        raise error
    return target


def closed() -> RuntimeError:
    """The error of a session that is used after its end."""
    error = RuntimeError("Attempted to use a closed Session.")
    error.add_note("A session ends with its `with` block or by close(). Open a new one: sess = tf.Session(…).")
    return error


def empty(fetches: object) -> RuntimeError:
    """The error of a session that is to run `fetches` while its graph has no operation."""
    error = RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")
    if built := [each for each in leaves(fetches, expand_composites=True) if getattr(each, "graph", None)]:
        error.add_note(
            f"{built[0]!r} belongs to another graph, as after tf.reset_default_graph(): open the session with "
            "tf.Session(graph=t.graph), where t is what you fetch, or build t again in the graph of this session."
        )
    return error


def merged(default: ConfigProto | None, config: ConfigProto | None, is_direct: bool) -> ConfigProto:
    """The ConfigProto of a session on a server that has a default one: what the session says comes first.

    A session on a server has no thread pools of its own (InvalidArgumentError) and places its graph at once; one of
    this process alone, which `is_direct`, has no other tasks.
    """
    from dtflab.protos.config_pb2 import ConfigProto

    both = ConfigProto()
    for given in (default, config):
        if given is not None:
            both.MergeFrom(given)
    if is_direct:
        both.ClearField("cluster_def")
    elif both.session_inter_op_thread_pool:
        raise errors.InvalidArgumentError.of("Distributed session does not support session thread pool options.")
    elif both.graph_options.place_pruned_graph:
        tf_logging.warning("Distributed session does not support the place_pruned_graph option.")
        both.graph_options.place_pruned_graph = False
    return both


def interactive(config: ConfigProto | None) -> ConfigProto:
    """The config of an interactive session: an operation that can't be placed fails only when it is run."""
    from dtflab.protos.config_pb2 import ConfigProto

    both = ConfigProto()
    if config is None:
        both.gpu_options.allow_growth = True
    else:
        both.CopyFrom(config)
    both.graph_options.place_pruned_graph = True
    return both


class DeviceAttributes:
    """A device as `Session.list_devices` shows it; `memory_limit_bytes` is in bytes."""

    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: int) -> None:
        self.name = str(device_spec.parse(name))
        self.device_type = device_type
        self.memory_limit_bytes = memory_limit_bytes
        self.incarnation = incarnation

    @classmethod
    def of(cls, message: device_attributes_pb2.DeviceAttributes) -> DeviceAttributes:
        """From the message that a worker sends."""
        return cls(message.name, message.device_type, message.memory_limit, message.incarnation)

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


def warn_of_another(kind: type) -> None:
    """TensorFlow's warning when an interactive session is opened while another one is open here."""
    if any(isinstance(session, kind) for session in default_stacks.default_session_stack.stack):
        warnings.warn(
            "An interactive session is already active. This can cause out-of-memory errors in some cases. You must "
            "explicitly call `InteractiveSession.close()` to release resources held by the other session(s).",
            stacklevel=3,
        )


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], Any],
    feed_function: Callable[[Any, Any], Any] | None = None,
    feed_function_for_partial_run: Callable[[Any], Any] | None = None,
) -> None:
    """Let `run` fetch and feed objects of a program's own type, which stand for tensors.

    `fetch_function(object)` → (its tensors, function of the list of their values to what is returned);
    `feed_function(object, value)` → list of (tensor, value); `feed_function_for_partial_run(object)` → its tensors.
    ValueError if the type has such functions.
    """
    if is_expanded(tensor_type):
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    register_fetch_expansion(tensor_type, fetch_function)
    if feed_function is not None:
        register_feed_pairs(tensor_type, feed_function, feed_function_for_partial_run)


class _Interrupt(KeyboardInterrupt):
    """A Ctrl-C in a step, which a notebook shows as it shows an OpError."""

    __module__, __qualname__ = "builtins", "KeyboardInterrupt"  # it is nothing else

    def _render_traceback_(self) -> list[str]:
        from dtflab.base import error_report  # only when it is printed

        return error_report.render(self)


_Interrupt.__name__ = "KeyboardInterrupt"


def explained(error: OpError | KeyboardInterrupt, graph: Graph, target: str) -> BaseException:
    """The error with the operation it names and the user's line that made it; `error` itself is spent.

    It is noted among the `failures`, as one of a session at `target`. A notebook keeps the last error: it must not keep
    the arrays of the step, which the frames of `error` hold. Those of an interrupt stay: they show where a function of
    the user's hangs.
    """
    if isinstance(error, KeyboardInterrupt):
        return _Interrupt(*error.args).with_traceback(error.__traceback__)
    first, *_ = error.message.splitlines() or [""]
    failures.append(Failure(failures[-1].number + 1, target, f"{type(error).__name__}: {first}"))
    named = re.search(r"\[\[\{\{node ([^}]+)\}\}\]\](?: on (\S+))?", error.message)
    if named is None:
        return error
    op = graph._ops.get(named[1]) or graph._ops.get(_OWNER.sub(r"\1\2", named[1])) or _call_of(named[1], graph)
    found = type(error)(op.node_def if op is not None else error.node_def, op, error.message)
    found.device, found.report, found.exhausted = named[2], error.report, error.exhausted
    found.experimental_payloads, found.__notes__ = error.experimental_payloads, getattr(error, "__notes__", [])
    error.__traceback__ = None
    return found


def close_after(error: BaseException | None, close: Callable[[], None]) -> None:
    """Close a session after its `with` block, which ended with `error` or None.

    What closing raises is raised if the block has raised nothing; else it is logged, and the block's error goes on its
    way, as in TensorFlow.
    """
    try:
        close()
    except Exception as failed:
        if error is None:
            raise
        tf_logging.error("Session failed to close: %s", failed)


def _call_of(name: str, graph: Graph) -> Operation | None:
    """The operation that calls the function which node `name`, `call/inner`, is part of."""
    while "/" in name:
        name = name.rpartition("/")[0]
        op = graph._ops.get(name)
        if op is not None and is_call(op.type):
            return op
    return None
