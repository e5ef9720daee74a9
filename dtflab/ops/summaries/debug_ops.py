"""The ops for looking at values: Print, StringFormat, PrintV2, the time; Assert, CheckNumerics; values that stay.

Stands for `core/kernels/logging_ops.cc`, `string_format_op.cc`, `check_numerics_op.cc` and `session_ops.cc`. Left out:
moving a kept value between devices: an ordinary edge does that.

Rules: text goes through the step's context to stderr, as TensorFlow writes it; a notebook shows it in the cell. A check
is an operation like any other: it runs only if something that runs depends on it. The functions of `tf.debugging` make
Asserts. A kept value lives on its device under a handle, `operation;number;device`, until it is deleted or the session
is closed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.files.paths import reported
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.ops import shapes
from dtflab.ops.assertions.functions import check_numerics
from dtflab.ops.costs import FreeOp, StatefulOp
from dtflab.ops.messages import invalid
from dtflab.ops.summaries.summarize import summarize_edges, summarize_value


@op("""Print(input: T, data: U) -> (output: T)
       T: type, U: list(type) >= 0, message: string = '', first_n: int = -1, summarize: int = 3""")
class Print_(StatefulOp):
    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        message, limit, count = node["message"].decode(), node["first_n"], node["summarize"]
        runs = itertools.count()

        def show(ctx, value, *data):
            if limit < 0 or next(runs) < limit:
                ctx.print(message + "".join(f"[{summarize_value(d, count)}]" for d in data))
            return value

        return show

    def grad(op, dy):
        return [dy] + [None] * (len(op.inputs) - 1)


@op("""StringFormat(inputs: T) -> (output: string)
       T: list(type) >= 0, template: string = '%s', placeholder: string = '%s', summarize: int = 3""")
class StringFormat(FreeOp):
    infer = shapes.scalar

    def bind(node, xp):
        parts = node["template"].decode().split(node["placeholder"].decode())
        count = node["summarize"]

        def fill(*inputs):
            values = [summarize_edges(v, count) for v in inputs] + [""]
            text = "".join(itertools.chain(*zip(parts, values)))
            return np.array(text.encode(), object)

        return fill


@op(r"""PrintV2(input: string) -> ()
       output_stream: string = 'stderr', end: string = '\n'""")
class PrintV2(StatefulOp):
    infer = shapes.none

    def bind(node, xp):
        stream, end = node["output_stream"].decode(), node["end"].decode()
        return lambda ctx, text: _write(ctx, stream, text.item().decode(errors="replace") + end)


def _write(ctx: Any, stream: str, text: str) -> None:
    if stream == "stdout":
        sys.stdout.write(text)
        sys.stdout.flush()
    elif stream.startswith("file://"):
        with reported(stream), ctx.env.open(stream, "ab") as file:
            file.write(text.encode())
    else:  # stderr and the levels of TensorFlow's log, which goes there too
        ctx.print(text.removesuffix("\n"))


@op("Timestamp() -> (ts: double)")
class Timestamp(StatefulOp):
    grad = no_gradient
    infer = shapes.scalar

    def bind(node, xp):
        return lambda ctx: np.float64(ctx.step.clock.time())


# -- checks ---------------------------------------------------------------------------------------------------------


@op("Assert(condition: bool, data: T) -> () where T: list(type) >= 1, summarize: int = 3")
class Assert(FreeOp):
    """Nothing if `condition` is true; else the error that shows the first `summarize` elements of each of `data`."""

    stateful = True
    infer = shapes.none
    grad = no_gradient

    def kernel(node, xp, condition, *data):
        if not condition:
            said = " ".join(f"[{summarize_value(value, node['summarize'])}]" for value in data)
            raise invalid(f"assertion failed: {said}")


@op("CheckNumerics(tensor: T) -> (output: T) where T: {bfloat16, half, float, double}, message: string")
class CheckNumerics(Op):
    """The tensor; the error with `message` if an element is infinite or not a number."""

    stateful = True
    aliasing = True
    infer = shapes.unchanged

    def kernel(node, xp, tensor):
        if not xp.isfinite(tensor).all():
            found = {"Inf": xp.isinf(tensor).any(), "NaN": xp.isnan(tensor).any()}
            kinds = " and ".join(word for word, is_there in found.items() if is_there)
            raise invalid(f"{node['message'].decode()} : Tensor had {kinds} values")
        return tensor

    def grad(operation, dy):
        message = operation.get_attr("message").decode()
        found = "Not a number (NaN) or infinity (Inf) values detected in gradient."
        return [check_numerics(dy, f"{found} {message}")]


# -- values that stay in the session ----------------------------------------------------------------------------------

_numbers = itertools.count()


def _kept(ctx: Any) -> dict[str, Any]:
    """The values that this session keeps in this task."""
    return ctx.state("session tensors", dict)


class _SessionOp(StatefulOp):
    grad = no_gradient


@op("GetSessionHandle(value: T) -> (handle: string) where T: type")
class GetSessionHandle(_SessionOp):
    infer = shapes.scalar

    def kernel(node: Node, xp: Any, ctx: Any, value: Any) -> bytes:
        handle = f"GetSessionHandle;{next(_numbers)};{ctx.device}"
        _kept(ctx)[handle] = value
        return handle.encode()


@op("GetSessionTensor(handle: string) -> (value: dtype) where dtype: type")
class GetSessionTensor(_SessionOp):
    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        return lambda ctx, handle: _find(ctx, handle)


def _find(ctx: Any, handle: Any) -> Any:
    name = _text(handle)
    try:
        return _kept(ctx)[name]
    except KeyError:
        raise invalid(f"The tensor with handle '{name}' is not in the session store.") from None


def _text(handle: Any) -> str:
    text: bytes = np.asarray(handle, object).item()
    return text.decode()


@op("""DeleteSessionTensor(handle: string) -> ()""")
class DeleteSessionTensor(_SessionOp):
    infer = shapes.none

    def kernel(node, xp, ctx, handle):
        _find(ctx, handle)
        del _kept(ctx)[_text(handle)]
