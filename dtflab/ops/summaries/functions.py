"""Functions to look at values: tf.summary, for TensorBoard, and Print, `tf.print`, for the eye.

Stands for `python/summary/summary.py`, `summary_op_util.py`, `python/ops/logging_ops.py` and `string_ops.py`
(string_format).

Rules: a summary op only makes a serialized `Summary`; a FileWriter brings it to a file. The tag is decided when the
graph is built, and so is the op's name: `family`, which groups charts, comes before both. Print hands its input on and
so stands on the way of a value; `tf.print` is an operation that something must wait for.
"""

from __future__ import annotations

import contextlib
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.base import nest, tf_logging
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collections, get_collection, name_scope
from dtflab.protos.summary_pb2 import SummaryDescription, SummaryMetadata

_ALL = GraphKeys.SUMMARIES


def scalar(name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """A summary of one real number, drawn as a curve over the steps."""
    with _scope(name, family, [tensor]) as (tag, scope):
        return _collected(apply_op("ScalarSummary", scope, tags=tag, values=tensor), collections)


def histogram(name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """A summary of how real numbers are distributed; InvalidArgumentError if one is not finite."""
    with _scope(name, family, [values], "HistogramSummary") as (tag, scope):
        return _collected(apply_op("HistogramSummary", scope, tag=tag, values=values), collections)


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A summary of the first `max_outputs` images of a batch [n, height, width, channels], as PNG.

    1 channel is grey, 3 are RGB, 4 are RGBA. uint8 is shown as it is; floats are scaled, each image by itself, so
    that the largest is 255, and if some are negative, so that 0 is 128.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        made = apply_op("ImageSummary", scope, tag=tag, tensor=tensor, max_images=max_outputs)
        return _collected(made, collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first `max_outputs` clips of [n, frames, channels] or [n, frames], as WAV.

    Samples are floats between -1 and 1, `sample_rate` of them a second.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        made = apply_op("AudioSummaryV2", scope, tag=tag, tensor=tensor, max_outputs=max_outputs, sample_rate=rate)
        return _collected(made, collections)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """A summary of strings of any shape, shown as Markdown, those of a vector or matrix as a table."""
    if tensor.dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary of any tensor, for the plugin of TensorBoard that `summary_metadata` names."""
    metadata = SummaryMetadata() if summary_metadata is None else summary_metadata
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    serialized = metadata.SerializeToString()
    with _scope(name, family, [tensor]) as (tag, scope):
        made = apply_op("TensorSummaryV2", scope, tensor=tensor, tag=tag, serialized_summary_metadata=serialized)
        return _collected(made, collections)


def merge(inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None) -> Tensor:
    """One summary with all values of `inputs`; InvalidArgumentError if two have the same tag."""
    name = _clean(name)
    with name_scope(name, "Merge", inputs):
        return _collected(apply_op("MergeSummary", name, inputs=inputs), collections, default=())


def merge_all(key: str = _ALL, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """All summaries of the collection `key`, below the name scope `scope`, as one; None if there are none."""
    found = get_collection(key, scope)
    return merge(found, name=name) if found else None


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription of a TensorSummary node; ValueError for other nodes."""
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    from google.protobuf import json_format

    return json_format.Parse(node_def.attr["description"].s.decode(), SummaryDescription())


def _collected(summary: Tensor, collections: Sequence[str] | None, default: Sequence[str] = (_ALL,)) -> Tensor:
    add_to_collections(default if collections is None else collections, summary)
    return summary


def _clean(name: str | None) -> str | None:
    """The name with what a node's name can't have replaced."""
    if name is None:
        return None
    clean = re.sub(r"[^-/\w\.]", "_", name).lstrip("/")
    if clean != name:
        tf_logging.info("Summary name %s is illegal; using %s instead.", name, clean)
    return clean


@contextlib.contextmanager
def _scope(
    name: str, family: str | None, values: Sequence[Any], default_name: str | None = None
) -> Iterator[tuple[str, str]]:
    """The tag of a summary, and the scope that its op takes as its name."""
    base, group = _clean(name), _clean(family)
    with name_scope(base if group is None else f"{group}/{base}", default_name, values) as scope:
        tag = scope.rstrip("/")
        yield tag if group is None else f"{group}/{tag}", scope


# -- printing ---------------------------------------------------------------------------------------------------------


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


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970, float64, when the op runs; in virtual time, those of its clock."""
    return apply_op("Timestamp", name)


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
