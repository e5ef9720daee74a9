"""The ops that make summaries: tensors in, serialized `Summary` messages out.

Stands for `core/kernels/summary_op.cc`, `summary_image_op.cc`, `summary_audio_op.cc` and `summary_tensor_op.cc`,
and for `core/lib/histogram/histogram.cc`.
Left out: the ops before them (TensorSummary, AudioSummary), and TensorFlow 2's writers in the graph.
"""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.files.png import encode_png
from dtflab.files.wav import encode_wav
from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import check_rank, dtype_text, invalid, shape_text
from dtflab.protos.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from dtflab.protos.tensor_pb2 import TensorProto


class SummaryOp(Op):
    """An op that makes a serialized Summary; it has no gradient."""

    infer = shapes.scalar
    flops = free
    grad = no_gradient


def _serialized(*values: Any) -> np.ndarray:
    """A scalar string tensor with a Summary of these values."""
    return np.array(Summary(value=values).SerializeToString(), object)


def _tag(tag: np.ndarray, word: str) -> str:
    if tag.ndim:
        raise invalid(f"{word} must be {'scalar' if word.islower() else 'a scalar'}")
    return tag.item().decode()


def _tags(tag: np.ndarray, word: str, kind: str, most: int, count: int) -> list[str]:
    """`tag/image/0`, …: one for each of the first `most` of `count`; no number if one at most was asked for."""
    base = f"{_tag(tag, word)}/{kind}"
    return [f"{base}/{i}" for i in range(min(most, count))] if most > 1 else [base][:count]


# -- numbers -------------------------------------------------------------------------------------------------------


@op("ScalarSummary(tags: string, values: T) -> (summary: string) where T: realnumbertype")
class ScalarSummary(SummaryOp):
    def kernel(node, xp, tags, values):
        if tags.shape != values.shape:
            which = f" (tag '{tags.item().decode()}')" if tags.size == 1 else ""
            raise invalid(f"tags and values are not the same shape: {shape_text(tags)} != {shape_text(values)}{which}")
        with np.errstate(over="ignore"):
            numbers = values.ravel().astype(np.float32)
        return _serialized(*(Summary.Value(tag=t, simple_value=x) for t, x in zip(tags.ravel(), numbers)))


@op("HistogramSummary(tag: string, values: T) -> (summary: string) where T: realnumbertype = float")
class HistogramSummary(SummaryOp):
    def kernel(node, xp, tag, values):
        name = _tag(tag, "tags")
        numbers = values.ravel().astype(np.float64)
        wrong = numbers[~np.isfinite(numbers)]
        if wrong.size:
            raise invalid(
                f"{'Nan in summary histogram' if np.isnan(wrong[0]) else 'Infinity in Histogram'} for: {name}"
            )
        return _serialized(Summary.Value(tag=name, histo=_histogram(numbers)))


@functools.cache
def _limits() -> np.ndarray:
    """The upper ends of the buckets: ±1e-12, ±1.1e-12, … up to 1e20, 0, and the largest float64."""
    steps = itertools.accumulate(itertools.repeat(1.1), lambda limit, factor: limit * factor, initial=1.0e-12)
    positive = [*itertools.takewhile(lambda limit: limit < 1e20, steps), sys.float_info.max]
    return np.array([*(-limit for limit in reversed(positive)), 0.0, *positive])


def _histogram(flat: np.ndarray) -> Any:
    """The HistogramProto of finite numbers, a float64 vector; runs of empty buckets are written as one."""
    found = HistogramProto(min=sys.float_info.max, max=-sys.float_info.max)
    if flat.size:
        # Summed one by one, as TensorFlow does, so that the last bits agree.
        with np.errstate(over="ignore"):
            total, squares = np.add.accumulate(flat)[-1], np.add.accumulate(flat * flat)[-1]
        found = HistogramProto(min=flat.min(), max=flat.max(), num=flat.size, sum=total, sum_squares=squares)
    ends = _limits()
    at = np.minimum(np.searchsorted(ends, flat, side="right"), ends.size - 1)
    counts = np.bincount(at, minlength=ends.size)
    kept = (counts > 0) | (np.append(counts[1:], 1) > 0)  # an empty bucket only before one that is not
    kept[-1] = True
    found.bucket_limit.extend(ends[kept])
    found.bucket.extend(counts[kept])
    return found


# -- pictures and sounds -------------------------------------------------------------------------------------------


@op("""ImageSummary(tag: string, tensor: T) -> (summary: string)
       max_images: int >= 1 = 3, T: {uint8, float, half, double} = float, bad_color: tensor = uint8 [255, 0, 0, 255]""")
class ImageSummary(SummaryOp):
    def bind(node, xp):
        most, bad_color = node["max_images"], node["bad_color"]
        if bad_color.dtype != np.uint8:
            raise invalid(f"bad_color must be uint8, got {dtype_text(dtypes.as_dtype(bad_color.dtype))}")
        check_rank(bad_color, 1, "bad_color must be a vector, got shape {}")

        def summarize(tag, images):
            tags = _tags(tag, "Tags", "image", most, len(images) if images.ndim else 0)
            _check_images(images, bad_color)
            return _serialized(*(_picture(t, image, bad_color) for t, image in zip(tags, images)))

        return summarize


def _check_images(images: np.ndarray, bad_color: np.ndarray) -> None:
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise invalid(f"Tensor must be 4-D with last dim 1, 3, or 4, not {shape_text(images)}")
    _, height, width, channels = images.shape
    if not height * width:
        raise invalid(f"input tensor must have non-zero dims. Found: {list(images.shape)}.")
    if images.dtype != np.uint8 and bad_color.size < channels:
        raise invalid(f"expected depth <= bad_color.size, got depth = {channels}, bad_color.size = {bad_color.size}")


def _picture(tag: str, image: np.ndarray, bad_color: np.ndarray) -> Any:
    height, width, channels = image.shape
    pixels = image if image.dtype == np.uint8 else _as_bytes(image, bad_color[:channels])
    encoded = encode_png(pixels)
    return Summary.Value(
        tag=tag, image=Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=encoded)
    )


def _as_bytes(image: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """Floats as 0 … 255: the largest becomes 255; with negative ones among them 0 becomes 128.

    Pixels with a value that is not finite get `bad_color`.
    """
    good = np.isfinite(image).all(axis=2)
    shown = image[good].astype(np.float32)
    largest = np.abs(shown).max(initial=0)
    top, offset = (127, 128) if shown.min(initial=0) < 0 else (255, 0)
    scale = np.float32(top) / largest if largest >= 1e-6 else 0
    pixels = np.empty(image.shape, np.uint8)
    pixels[good] = image[good] * image.dtype.type(scale) + image.dtype.type(offset)
    pixels[~good] = bad_color
    return pixels


@op("""AudioSummaryV2(tag: string, tensor: float, sample_rate: float) -> (summary: string)
       max_outputs: int >= 1 = 3""")
class AudioSummaryV2(SummaryOp):
    def kernel(node, xp, tag, clips, sample_rate):
        tags = _tags(tag, "Tag", "audio", node["max_outputs"], len(clips) if clips.ndim else 0)
        if clips.ndim not in (2, 3):
            raise invalid(f"Tensor must be 3-D or 2-D, got: {shape_text(clips)}")
        if sample_rate.size != 1:
            raise invalid("sample_rate must be rank-0 or contain a single value")
        rate = sample_rate.item()
        if not rate > 0:
            raise invalid("sample_rate must be > 0")
        return _serialized(*(_sound(t, clip, rate) for t, clip in zip(tags, clips)))


def _sound(tag: str, clip: np.ndarray, rate: float) -> Any:
    clip = clip if clip.ndim == 2 else clip[:, np.newaxis]
    frames, channels = clip.shape
    whole_rate = max(round(rate), 1)
    for what, count, bits in (("sample_rate", whole_rate, 32), ("num_channels", channels, 16)):
        if not 0 < count < 2**bits:
            raise invalid(f"{what} must be in (0, 2^{bits}), got: {count}")
    encoded = encode_wav(clip, whole_rate)
    sizes = {"sample_rate": rate, "num_channels": channels, "length_frames": frames}
    audio = Summary.Audio(**sizes, encoded_audio_string=encoded, content_type="audio/wav")
    return Summary.Value(tag=tag, audio=audio)


# -- tensors, and several summaries in one -------------------------------------------------------------------------


@op("TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string) -> (summary: string) where T: type")
class TensorSummaryV2(SummaryOp):
    def kernel(node, xp, tag, tensor, metadata):
        dtype = node["T"]
        if metadata.ndim:
            raise invalid("serialized_summary_metadata must be scalar")
        proto = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=TensorShape(tensor.shape).as_proto())
        if dtype == dtypes.string:
            proto.string_val.extend(tensor.ravel())
        else:
            proto.tensor_content = tensor.tobytes()
        parsed = SummaryMetadata.FromString(metadata.item())
        return _serialized(Summary.Value(tag=_tag(tag, "tag"), tensor=proto, metadata=parsed))


@op("MergeSummary(inputs: N * string) -> (summary: string) where N: int >= 1")
class MergeSummary(SummaryOp):
    def kernel(node, xp, *inputs):
        try:
            parsed = [Summary.FromString(text) for tensor in inputs for text in tensor.ravel()]
        except DecodeError:
            raise invalid("Could not parse one of the summary inputs") from None
        values = [value for one in parsed for value in one.value]
        seen: set[str] = set()
        for value in values:
            if value.tag and value.tag in seen:
                raise invalid(f"Duplicate tag {value.tag} found in summary inputs")
            seen.add(value.tag)
        return _serialized(*values)
