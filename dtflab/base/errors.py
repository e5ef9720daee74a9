"""The errors of a graph, a step or a cluster: one class per canonical error code.

    Exception
    └── OpError                            .node_def .op .message .error_code; .task .device .line where known
        ├── CancelledError            1    the step was given up: close, stop, or another op failed first
        ├── UnknownError              2    a failure without a better code, such as an exception in a py_func
        ├── InvalidArgumentError      3    the arguments are wrong, whatever the state of the system
        ├── DeadlineExceededError     4    it took longer than the caller allowed
        ├── NotFoundError             5    a file, resource, op or device does not exist
        ├── AlreadyExistsError        6    what should be made is there already
        ├── PermissionDeniedError     7    the caller may not do this
        ├── ResourceExhaustedError    8    out of memory, disk or quota
        ├── FailedPreconditionError   9    not in this state: a variable is uninitialized
        ├── AbortedError             10    a conflict or a lost peer ended it; trying again may work
        ├── OutOfRangeError          11    past the end: of a file, or of a closed and empty queue
        ├── UnimplementedError       12    no such operation or kernel here
        ├── InternalError            13    an invariant of the runtime broke: a bug
        ├── UnavailableError         14    nobody answers at the moment: a task is down
        ├── DataLossError            15    bytes are lost or damaged
        └── UnauthenticatedError     16    the caller is not known
    ValueError ── InaccessibleTensorError          a tensor of another graph or function
    TypeError  ── OperatorNotAllowedInGraphError   Python's `if` or `for` on a symbolic tensor

Stands for `tensorflow/python/framework/errors_impl.py`. Left out: payloads (always empty) and C++ statuses.
The rule it obeys: `message` is what the runtime said, untouched; `str(e)` adds where the op was created.
"""

from __future__ import annotations

from typing import Any, Self

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16

_CODE_TO_CLASS: dict[int, type[OpError]] = {}


class OpError(Exception):
    """An operation failed while a step ran; the base of every error that a session, master or worker reports.

    `task`, `device` and `line` may be set on the error's way to the client, where they are known: `line` is
    the (code object, line number) of the user's program that made the op, `device` is where it ran.
    """

    _code: int | None = None
    task: str | None = None
    device: str | None = None
    line: tuple[Any, int] | None = None
    report: str | None = None  # the allocator's dump, if memory was full
    exhausted: Any = None  # and what it held, machine.bfc_allocator.Exhausted

    def __init_subclass__(cls, code: int | None = None) -> None:
        if code is not None:
            cls._code = code
            _CODE_TO_CLASS[code] = cls

    def __init__(
        self, node_def: object, op: object, message: str | bytes, error_code: int = UNKNOWN, *args: object
    ) -> None:
        super().__init__()
        self.node_def: Any = node_def
        self.op: Any = op
        self.message: str = message.decode(errors="replace") if isinstance(message, bytes) else message
        self.error_code: int = error_code if self._code is None else self._code
        self.experimental_payloads: dict[str, bytes] = {}
        if op is not None:
            self.line = getattr(op, "line", None)

    @classmethod
    def of(cls, message: str) -> Self:
        """The error with this message, before it is known which op fails, if it is one."""
        return cls(None, None, message)

    @property
    def node_name(self) -> str | None:
        """The name of the node that failed, as far as it is known."""
        source = self.op if self.op is not None else self.node_def
        return getattr(source, "name", None)

    def __str__(self) -> str:
        text = str(self.message)
        if self.device and self.device not in text:
            text += f"\n\t On device {self.device}"
        elif self.task and self.task not in text:
            text += f"\n\t In task {self.task}"
        if self.line is not None:
            text += f"\n\n{_where(self.node_name, *self.line)}"
        return text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of all frames."""
        from dtflab.base import error_report  # only when an error is printed

        return error_report.render(self)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        # The op drags its whole graph along and a code object cannot travel: a copy goes without both.
        args = (self.node_def, None, self.message, self.error_code)
        return type(self), args, {"device": self.device, "task": self.task}


def _where(name: str | None, code: Any, lineno: int) -> str:
    import linecache  # only when an error is printed

    text = f"Original stack trace for {name!r}:\n" if name else "Original stack trace:\n"
    text += f'  File "{code.co_filename}", line {lineno}, in {code.co_name}'
    source = linecache.getline(code.co_filename, lineno).strip()
    return f"{text}\n    {source}" if source else text


class CancelledError(OpError, code=CANCELLED):
    """The step was given up: the session closed, the queue was cancelled, or another op failed first."""


def of_cancelled(reason: Exception, error: Exception) -> Exception:
    """The error of a step that was cancelled for a reason, after which one of its nodes ended with `error`.

    The node's error says more if it ended the step; after a timeout it names the node that was waiting.
    """
    if isinstance(reason, DeadlineExceededError) and isinstance(error, CancelledError):
        if error.message not in reason.message:
            reason.message += f"\n{error.message}"
        return reason
    if not (isinstance(reason, CancelledError) and isinstance(error, CancelledError)):
        return reason
    if reason.message in error.message:
        return reason
    error.message += f"\n\t {reason.message}"
    return error


class UnknownError(OpError, code=UNKNOWN):
    """A failure for which no better code is known, such as an exception inside a `py_func`."""


class InvalidArgumentError(OpError, code=INVALID_ARGUMENT):
    """An op got an argument that is wrong in any state: a shape, a value, a placeholder without feed."""


class DeadlineExceededError(OpError, code=DEADLINE_EXCEEDED):
    """The operation was not done when its time ran out."""


class NotFoundError(OpError, code=NOT_FOUND):
    """Something that was asked for does not exist: a file, a variable in a checkpoint, an op type."""


class AlreadyExistsError(OpError, code=ALREADY_EXISTS):
    """Something that should be made exists already."""


class PermissionDeniedError(OpError, code=PERMISSION_DENIED):
    """The caller may not do this, such as reading a file without the right to."""


class ResourceExhaustedError(OpError, code=RESOURCE_EXHAUSTED):
    """Something ran out: device memory, disk, a quota."""


class FailedPreconditionError(OpError, code=FAILED_PRECONDITION):
    """The system is not in the state that the op needs: most often, a variable was never initialized."""


class AbortedError(OpError, code=ABORTED):
    """A conflict or a lost peer ended the operation; a higher level may try again."""


class OutOfRangeError(OpError, code=OUT_OF_RANGE):
    """The end was passed: a file has no more records, or a closed queue has no more elements."""


class UnimplementedError(OpError, code=UNIMPLEMENTED):
    """The operation, or its kernel for this type or device, does not exist here."""


class InternalError(OpError, code=INTERNAL):
    """The runtime found one of its own invariants broken: this is a bug in it."""


class UnavailableError(OpError, code=UNAVAILABLE):
    """Nobody answers at the moment: a task is down or not yet up. Trying again later may work."""


class DataLossError(OpError, code=DATA_LOSS):
    """Bytes are missing or damaged, such as a truncated record file."""


class UnauthenticatedError(OpError, code=UNAUTHENTICATED):
    """The caller did not prove who it is."""


class InaccessibleTensorError(ValueError):
    """A tensor was used outside the graph or function that it belongs to."""


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value now: `if`, `for`, `bool()`."""


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class for a canonical code; KeyError for OK and for numbers that are not a code."""
    return _CODE_TO_CLASS[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The canonical code of a class; UNKNOWN for a class that has none."""
    return UNKNOWN if (code := getattr(cls, "_code", None)) is None else code


def from_code(error_code: int, message: str, node_def: Any = None, op: Any = None) -> OpError:
    """The exception for a status that came from elsewhere; an unheard-of code makes an UnknownError."""
    cls = _CODE_TO_CLASS.get(error_code)
    if cls is None:
        return UnknownError(node_def, op, message, error_code)
    return cls(node_def, op, message)


def __getattr__(name: str) -> Any:
    from dtflab.base.missing_names import missing

    raise missing("tf.errors", name, globals())
