"""Looking at values from inside a graph: Print, `tf.print`.

Stands for `core/kernels/logging_ops.cc`, `string_format_op.cc`, `python/ops/logging_ops.py`.

Rule: text goes through the step's context to stderr, as TensorFlow writes it; a notebook shows it in the
cell. Print hands its input on and so stands on the way of a value; `tf.print` is an operation that something
must wait for.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.summaries.summarize import summarize_edges, summarize_value


@op("""Print(input: T, data: U) -> (output: T)
       T: type
       U: list(type) >= 0
       message: string = ''
       first_n: int = -1
       summarize: int = 3""")
class Print_(Op):
    stateful = True
    needs_ctx = True
    aliasing = True
    infer = shapes.unchanged
    flops = bytes = free

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


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`input_`, which when it is computed prints `data`: the first `summarize` elements of each."""
    return apply_op("Print", name, input=input_, data=list(data), message=message, first_n=first_n, summarize=summarize)


@op("""StringFormat(inputs: T) -> (output: string)
       T: list(type) >= 0
       template: string = '%s'
       placeholder: string = '%s'
       summarize: int = 3""")
class StringFormat(Op):
    infer = shapes.scalar
    flops = bytes = free

    def bind(node, xp):
        parts = node["template"].decode().split(node["placeholder"].decode())
        count = node["summarize"]

        def fill(*inputs):
            values = [summarize_edges(v, count) for v in inputs] + [""]
            text = "".join(itertools.chain(*zip(parts, values)))
            return np.array(text.encode(), object)

        return fill


@op(r"""PrintV2(input: string) -> ()
       output_stream: string = 'stderr'
       end: string = '\n'""")
class PrintV2(Op):
    stateful = True
    needs_ctx = True
    infer = shapes.none
    flops = bytes = free

    def bind(node, xp):
        stream, end = node["output_stream"].decode(), node["end"].decode()
        return lambda ctx, text: _write(ctx, stream, text.item().decode(errors="replace") + end)


def _write(ctx: Any, stream: str, text: str) -> None:
    if stream == "stdout":
        sys.stdout.write(text)
        sys.stdout.flush()
    elif stream.startswith("file://"):
        with open(stream[len("file://") :], "a", encoding="utf-8") as file:
            file.write(text)
    else:  # stderr and the levels of TensorFlow's log, which goes there too
        ctx.print(text.removesuffix("\n"))


_LEVELS = {20: "log(info)", 30: "log(warning)", 40: "log(error)"}  # as in logging, not loaded for three numbers
_LEVEL_NAMES = {"info": "log(info)", "warn": "log(warning)", "warning": "log(warning)", "error": "log(error)"}


def print_(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that prints the inputs as Python's `print` would, tensors as their values.

    Keywords: output_stream (stderr, stdout, a `tf.logging` function or level, "file://path"), summarize, sep,
    end, name.
    """
    stream = _stream_name(kwargs.pop("output_stream", None) or sys.stderr)
    name, end = kwargs.pop("name", None), kwargs.pop("end", "\n")
    summarize, sep = kwargs.pop("summarize", 3), kwargs.pop("sep", " ")
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    text = inputs[0] if len(inputs) == 1 else None
    if not (isinstance(text, Tensor) and text.shape.ndims == 0 and text.dtype == dtypes.string):
        text = _formatted(inputs, sep, summarize, f"{name}_format" if name else None)
    return apply_op("PrintV2", name, input=text, output_stream=stream, end=end)


def _stream_name(stream: Any) -> str:
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    if stream is sys.stdout or stream is sys.stderr:
        return "stdout" if stream is sys.stdout else "stderr"
    found = _LEVELS.get(stream) if isinstance(stream, int) else None
    found = found or _LEVEL_NAMES.get(getattr(stream, "__name__", ""))
    if found is None:
        raise ValueError(
            f"Unsupported output stream, logging level, or file.{stream}. Supported streams are sys.stdout, "
            "sys.stderr, tf.logging.info, tf.logging.warning, tf.logging.error. "
            "File needs to be in the form of 'file://<filepath>'."
        )
    return found


def _formatted(inputs: Sequence[Any], sep: str, summarize: int, name: str | None) -> Tensor:
    """The inputs as one template with a placeholder for each tensor, to be filled in when it runs."""
    import pprint

    placeholder = _unused_in(" ".join(pprint.pformat(_replaced(x, lambda t: "")) for x in inputs))
    templates = [x if isinstance(x, str) else pprint.pformat(_replaced(x, lambda t: placeholder)) for x in inputs]
    template = sep.join(templates).replace(f"'{placeholder}'", placeholder)
    tensors = [t for t in nest.leaves(inputs) if _is_tensor(t)]
    return apply_op(
        "StringFormat", name, inputs=tensors, template=template, placeholder=placeholder, summarize=summarize
    )


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """`template` with the value of a tensor of `inputs` in the place of each `placeholder`, a scalar string.

    `summarize` elements are shown at both ends of each dimension, all if it is -1. ValueError if there are not as many
    tensors as placeholders.
    """
    tensors = [convert_to_tensor(t) for t in nest.flatten(inputs)]
    if template.count(placeholder) != len(tensors):
        raise ValueError(
            f"The template expects {template.count(placeholder)} tensors, but the inputs only has {len(tensors)}. "
            "Please ensure the number of placeholders in template matches inputs length."
        )
    return apply_op(
        "StringFormat", name, inputs=tensors, template=template, placeholder=placeholder, summarize=summarize
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_element")


def _replaced(structure: Any, replacement: Callable[[Any], str]) -> Any:
    """The nested structure with its tensors replaced; dicts in the order of their keys."""
    if isinstance(structure, dict):
        return type(structure)((k, _replaced(structure[k], replacement)) for k in sorted(structure))
    if isinstance(structure, list | tuple):
        items = [_replaced(x, replacement) for x in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    return replacement(structure) if _is_tensor(structure) else structure


def _unused_in(text: str) -> str:
    """TensorFlow's placeholder: `{}`, with digits added until it does not occur in `text`."""
    placeholder, digits = "{}", random.Random(5)
    while placeholder in text:
        placeholder += str(digits.randint(0, 9))
    return placeholder
