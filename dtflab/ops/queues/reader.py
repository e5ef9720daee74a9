"""Readers on a device: the ops that make them, read, ask and reset, in both families.

Stands for `core/framework/reader_op_kernel.h` and `core/kernels/reader_ops.cc`. Left out: LMDBReader.

Rule: a reader without a `shared_name` belongs to its node and goes with the session; one with a name stays in its
container. What it does is in `reader_state.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.files import sources
from dtflab.files.sources import Source
from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.handles import by_reference, resource_of
from dtflab.ops.messages import invalid
from dtflab.ops.queues.queue_ops import queue_of
from dtflab.ops.queues.queue_resource import Queue
from dtflab.ops.queues.reader_state import Reader, Request
from dtflab.ops.resource_mgr import name_for
from dtflab.ops.variables.cell import Cell
from dtflab.ops.variables.handle_ops import DEFAULT_CONTAINER, ResourceHandle

Opener = Callable[[bytes], Source]
READER_TYPE = "tensorflow::ReaderInterface"

# -- making readers -----------------------------------------------------------------------------------


class _ReaderOp(Op):
    """Gives the handle of a reader, which it makes if it is the first to name it."""

    stateful = True
    needs_ctx = True
    flops = bytes = staticmethod(free)
    infer = staticmethod(shapes.scalar)
    serializes = False

    @staticmethod
    def starter(node: Any) -> Opener:
        """How this kind of reader opens a unit of work."""
        raise NotImplementedError

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any], ResourceHandle]:
        container, shared_name = node["container"].decode() or DEFAULT_CONTAINER, node["shared_name"].decode()
        kind, start = node.op.removesuffix("V2"), cls.starter(node)

        def find(ctx: Any) -> ResourceHandle:
            name = name_for(ctx, node.name, container, shared_name, Reader)
            ctx.resources.lookup_or_create(
                container, name, Reader, lambda: Reader(shared_name or node.name, kind, start, cls.serializes)
            )
            return ResourceHandle(ctx.device, container, name, READER_TYPE)

        return find


class _ReaderRefOp(_ReaderOp):
    """Gives a reference to two strings instead: container and name."""

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any], Cell]:
        return by_reference(super().bind(node, xp))

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        return [TensorShape([2])]


class _TextLine:
    @staticmethod
    def starter(node: Any) -> Callable[[bytes], Source]:
        return lambda work: sources.Lines(work, node["skip_header_lines"])


class _FixedLength:
    @staticmethod
    def starter(node: Any) -> Callable[[bytes], Source]:
        for what in ("header", "record", "footer", "hop"):
            if node[f"{what}_bytes"] < 0:
                raise invalid(f"{what}_bytes must be >= 0 not {node[f'{what}_bytes']}")
        return lambda work: sources.FixedLengthRecords(
            work, node["record_bytes"], node["header_bytes"], node["footer_bytes"], node["hop_bytes"],
            node.attrs.get("encoding", b"").decode(),
        )  # fmt: skip


class _TFRecord:
    @staticmethod
    def starter(node: Any) -> Callable[[bytes], Source]:
        return lambda work: sources.Records(work, node["compression_type"].decode())


class _WholeFile:
    serializes = True

    @staticmethod
    def starter(node: Any) -> Callable[[bytes], Source]:
        return sources.WholeFile


class _Identity:
    serializes = True

    @staticmethod
    def starter(node: Any) -> Callable[[bytes], Source]:
        return sources.Itself


# -- using them ---------------------------------------------------------------------------------------


def reader_of(ctx: Any, handle: Any) -> Reader:
    """The reader that a handle of either family names; NotFoundError if it is gone."""
    return resource_of(ctx, handle, Reader)


def _work_queue(ctx: Any, handle: Any) -> Queue:
    queue = queue_of(ctx, handle)
    if len(queue.types) != 1:
        raise invalid("Expected single component queue")
    if queue.types[0] is not dtypes.string:
        raise invalid("Expected queue with single string component")
    return queue


class _Read(Op):
    is_async = True
    flops = bytes = staticmethod(free)
    infer = staticmethod(shapes.scalar)

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        name = node.name

        def read(ctx: Any, reader: Any, queue: Any, done: Any) -> None:
            def finished(record: Any, error: Any) -> None:
                done(None if record is None else [np.array(text, object) for text in record], error)

            reader_of(ctx, reader).read(Request(ctx, name, _work_queue(ctx, queue), None, finished))

        return read


class _ReadUpTo(Op):
    is_async = True
    flops = bytes = staticmethod(free)

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        operation.inputs[2].shape.with_rank(0)
        return [TensorShape([None])] * 2

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        name = node.name

        def read_up_to(ctx: Any, reader: Any, queue: Any, num_records: Any, done: Any) -> None:
            def finished(records: Any, error: Any) -> None:
                done(None if records is None else [np.array(texts, object) for texts in records], error)

            if num_records < 0:
                raise invalid(f"num_records must be >= 0 not {num_records}")
            if num_records == 0:
                finished(([], []), None)
                return
            reader_of(ctx, reader).read(Request(ctx, name, _work_queue(ctx, queue), int(num_records), finished))

        return read_up_to


class _Ask(Op):
    """Asks a reader something, or tells it."""

    needs_ctx = True
    flops = bytes = staticmethod(free)
    answer: Callable[..., Any]

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        for state in operation.inputs[1:]:
            state.shape.with_rank(0)
        return [TensorShape([])] * len(operation.outputs)

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        answer = cls.answer
        return lambda ctx, handle, *inputs: answer(reader_of(ctx, handle), *inputs)


class _RecordsProduced(_Ask):
    answer = staticmethod(lambda reader: np.array(reader.records_produced, np.int64))


class _WorkUnitsCompleted(_Ask):
    answer = staticmethod(lambda reader: np.array(reader.work_units_completed, np.int64))


class _SerializeState(_Ask):
    answer = staticmethod(lambda reader: np.array(reader.serialize(), object))


class _RestoreState(_Ask):
    answer = staticmethod(lambda reader, state: reader.restore(state.item()))


class _Reset(_Ask):
    answer = staticmethod(Reader.reset)


_SHARED = """
       container: string = ''
       shared_name: string = ''"""
_SIZES = """
       header_bytes: int = 0
       record_bytes: int
       footer_bytes: int = 0
       hop_bytes: int = 0"""
_KINDS: list[tuple[str, str, type[Any]]] = [
    ("TextLineReader", f"\n       skip_header_lines: int = 0{_SHARED}", _TextLine),
    ("FixedLengthRecordReader", _SIZES + _SHARED, _FixedLength),
    ("TFRecordReader", f"{_SHARED}\n       compression_type: string = ''", _TFRecord),
    ("WholeFileReader", _SHARED, _WholeFile),
    ("IdentityReader", _SHARED, _Identity),
]
_USERS: list[tuple[str, str, str, type[Op]]] = [
    ("ReaderRead", ", queue_handle: {}", "(key: string, value: string)", _Read),
    ("ReaderReadUpTo", ", queue_handle: {}, num_records: int64", "(keys: string, values: string)", _ReadUpTo),
    ("ReaderNumRecordsProduced", "", "(records_produced: int64)", _RecordsProduced),
    ("ReaderNumWorkUnitsCompleted", "", "(units_completed: int64)", _WorkUnitsCompleted),
    ("ReaderSerializeState", "", "(state: string)", _SerializeState),
    ("ReaderRestoreState", ", state: string", "()", _RestoreState),
    ("ReaderReset", "", "()", _Reset),
]
# The two families: the suffix of their names, the type of their handles, what gives them, and what TensorFlow declares
# of the ops that use them.
_FAMILIES: list[tuple[str, str, type[Op], dict[str, Any]]] = [
    ("V2", "resource", _ReaderOp, {"stateful": True}),
    ("", "Ref(string)", _ReaderRefOp, {"stateful": False, "grad": staticmethod(no_gradient)}),
]
for _suffix, _handle, _giver, _declared in _FAMILIES:
    for _kind, _attrs, _how in _KINDS:
        if (_kind, _suffix) == ("FixedLengthRecordReader", "V2"):
            _attrs += "\n       encoding: string = ''"
        _extra = {} if _suffix else {"grad": staticmethod(no_gradient)}
        op(f"{_kind}{_suffix}() -> (reader_handle: {_handle}){_attrs}")(type(_kind, (_how, _giver), _extra))
    for _name, _inputs, _outputs, _base in _USERS:
        _text = f"{_name}{_suffix}(reader_handle: {_handle}{_inputs.format(_handle)}) -> {_outputs}"
        op(_text)(type(_name, (_base,), _declared))
