"""tf.summary: what of a graph TensorBoard shall show.

Stands for `python/summary/summary.py` and `summary_op_util.py`.

Rule: a summary op only makes a serialized `Summary`; a FileWriter brings it to a file. The tag is decided when the
graph is built, and so is the op's name: `family`, which groups charts, comes before both.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
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
        from dtflab.base import tf_logging  # Python's logging is loaded when something is to be said

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
