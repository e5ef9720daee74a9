"""Readers on a device: the ops that make them, read, query and reset, in both families.

Stands for `core/framework/reader_op_kernel.h` and `core/kernels/reader_ops.cc`. Left out: LMDBReader.

Rule: a reader without a `shared_name` belongs to its node and goes with the session; one with a name stays in its
container. How a reader behaves is in `shared_reader.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.files import sources
from dtflab.files.env import Env
from dtflab.files.sources import Source
from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp, StatefulOp
from dtflab.ops.handles import new_or_shared, resource_of
from dtflab.ops.messages import invalid
from dtflab.ops.queues.queue_ops import FAMILIES
from dtflab.ops.queues.shared_queue import Queue
from dtflab.ops.queues.shared_reader import Reader, Request

READER_TYPE = "tensorflow::ReaderInterface"
Opener = Callable[[bytes, Env], Source]  # opens a unit of work

# -- making readers -----------------------------------------------------------------------------------


class _NewReader(StatefulOp):
    """Gives the handle of a reader. The first op that names a reader makes it."""

    infer = shapes.handle
    opener: Callable[[Any], Opener]  # of a node
    serializes = False

    @classmethod
    def bind(cls, node, xp):
        own_name = node["shared_name"].decode() or node.name
        kind, start = node.op.removesuffix("V2"), cls.opener(node)

        def make(ctx: Any, name: str) -> Reader:
            env = ctx.env  # of the device, on which the reader stays: it must not keep this step
            return Reader(own_name, kind, lambda work: start(work, env), cls.serializes)

        return new_or_shared(node, Reader, READER_TYPE, make)


def _lines(node: Node) -> Opener:
    return lambda work, env: sources.Lines(work, node["skip_header_lines"], env=env)


def _fixed_length_records(node: Node) -> Opener:
    for what in ("header", "record", "footer", "hop"):
        if node[f"{what}_bytes"] < 0:
            raise invalid(f"{what}_bytes must be >= 0 not {node[f'{what}_bytes']}")
    record, header, footer, hop = (node[f"{what}_bytes"] for what in ("record", "header", "footer", "hop"))
    encoding = node.attrs.get("encoding", b"").decode()
    return lambda work, env: sources.FixedLengthRecords(work, record, header, footer, hop, encoding, env)


def _records(node: Node) -> Opener:
    return lambda work, env: sources.Records(work, node["compression_type"].decode(), env)


_SIZES = "\n       header_bytes: int = 0, record_bytes: int, footer_bytes: int = 0, hop_bytes: int = 0"
_SHARED = "\n       container: string = '', shared_name: string = ''"
_KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("TextLineReader", f"\n       skip_header_lines: int = 0{_SHARED}", {"opener": _lines}),
    ("FixedLengthRecordReader", f"{_SIZES}{_SHARED}", {"opener": _fixed_length_records}),
    ("TFRecordReader", f"{_SHARED}\n       compression_type: string = ''", {"opener": _records}),
    ("WholeFileReader", _SHARED, {"opener": lambda node: sources.WholeFile, "serializes": True}),
    ("IdentityReader", _SHARED, {"opener": lambda node: sources.Itself, "serializes": True}),
]

# -- using them ---------------------------------------------------------------------------------------


def _work_queue(ctx: Any, handle: Any) -> Queue:
    queue = resource_of(ctx, handle, Queue)
    if len(queue.types) != 1:
        raise invalid("Expected single component queue")
    if queue.types[0] is not dtypes.string:
        raise invalid("Expected queue with single string component")
    return queue


class _Read(FreeOp):
    """The next record, key and value; ReaderReadUpTo: two vectors of up to `num_records`."""

    is_async = True

    def infer(operation):
        if len(operation.inputs) == 2:
            return shapes.scalar(operation)
        operation.inputs[2].shape.with_rank(0)
        return [TensorShape([None])] * 2

    def kernel(node, xp, ctx, reader, queue, *rest):
        *limit, done = rest
        most = int(limit[0]) if limit else None
        if most is not None and most < 0:
            raise invalid(f"num_records must be >= 0 not {most}")
        if most == 0:
            return _arrays(([], []))
        found, queue = resource_of(ctx, reader, Reader), _work_queue(ctx, queue)
        if records := found.read_at_once(most):
            return _arrays(records)
        finished = lambda records, error: done(records and _arrays(records), error)  # noqa: E731
        return found.read(Request(ctx, node.name, queue, most, finished))


def _arrays(records):
    return [np.array(texts, object) for texts in records]


class _Ask(FreeOp):
    """Gives the value of `answer(reader)`, which may change the reader."""

    needs_ctx = True
    answer: Callable[..., Any]

    def infer(operation):
        for state in operation.inputs[1:]:
            state.shape.with_rank(0)
        return shapes.scalar(operation)

    @classmethod
    def bind(cls, node, xp):
        answer = cls.answer
        return lambda ctx, handle, *inputs: answer(resource_of(ctx, handle, Reader), *inputs)


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


_USERS: list[tuple[str, str, str, type[Op]]] = [
    ("Read", ", queue_handle: {}", "(key: string, value: string)", _Read),
    ("ReadUpTo", ", queue_handle: {}, num_records: int64", "(keys: string, values: string)", _Read),
    ("NumRecordsProduced", "", "(records_produced: int64)", _RecordsProduced),
    ("NumWorkUnitsCompleted", "", "(units_completed: int64)", _WorkUnitsCompleted),
    ("SerializeState", "", "(state: string)", _SerializeState),
    ("RestoreState", ", state: string", "()", _RestoreState),
    ("Reset", "", "()", _Reset),
]
for _family, _handle in FAMILIES.items():
    _gradient: dict[str, Any] = {} if _family else {"grad": no_gradient}  # as TensorFlow declares it
    for _kind, _attrs, _rules in _KINDS:
        if (_kind, _family) == ("FixedLengthRecordReader", "V2"):
            _attrs += "\n       encoding: string = ''"
        op(f"{_kind}{_family}() -> (reader_handle: {_handle}){_attrs}")(
            type(_kind, (_NewReader,), {**_rules, **_gradient})
        )
    for _use, _inputs, _outputs, _base in _USERS:
        _text = f"Reader{_use}{_family}(reader_handle: {_handle}{_inputs.format(_handle)}) -> {_outputs}"
        op(_text)(type(f"Reader{_use}", (_base,), {"stateful": bool(_family), **_gradient}))
