"""Summaries. Pictures are compared as pixels, in programs: zlib's bytes differ from one version to the next."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from dtflab.protos.summary_pb2 import Summary, SummaryMetadata
from tests.op_examples import Example, Values, examples

IN_PROGRAMS = {"ImageSummary": "tests/train/oracle/test_summaries.py"}


def _text(value: str | bytes) -> np.ndarray:
    return np.array(value.encode() if isinstance(value, str) else value, object)


@examples("ScalarSummary")
def scalar_summary(v: Values) -> list[Example]:
    tags = np.array([b"a", b"b/c", b""], object)
    found = [v(_text("t"), v.array()), v(tags, v.array(3)), v(tags[:0], v.array(0)), v(tags[None], v.array(1, 3))]
    special = v.special()
    return [*found, *(v(_text("t"), special[i]) for i in range(len(special)))]


@examples("HistogramSummary")
def histogram_summary(v: Values) -> list[Example]:
    special = v.special()
    finite = special[np.isfinite(special.astype(np.float64))]
    spread = v.array(40, low=-60, high=60)
    values = [v.array(), v.array(0), v.array(3, 4), finite, spread]
    if v.dtype.is_floating:
        values += [spread * spread[0] * v.within(0, 1, 40), v.within(-1e-4, 1e-4, 30)]
    if v.dtype == dtypes.float64:
        values += [np.array([1e-12, 1e-13, -1e-12, 1e20, -1e21, 1e300, 0.0, -0.0, 5e-324])]
    return [v(_text("h"), x) for x in values]


@examples("AudioSummaryV2")
def audio_summary(v: Values) -> list[Example]:
    loud = np.array([[1.5, -1.5, 1, -1, 0.5 / 2**15, 1.5 / 2**15, -0.5 / 2**15, np.nan]], np.float32)
    clips = v.random.uniform(-1, 1, (4, 5, 2)).astype(np.float32)
    rates = [np.array(r, np.float32) for r in (8000, 0.2, 44100.5, 2.5)]
    found = [v(_text("a"), loud, rate) for rate in rates]
    found += [v(_text("a"), clips, rates[0], max_outputs=n) for n in (1, 2, 9)]
    return [*found, v(_text(""), clips[:0], rates[0]), v(_text("a"), clips[:, :0, 0], rates[0])]


@examples("TensorSummaryV2")
def tensor_summary(v: Values) -> list[Example]:
    metadata = SummaryMetadata(display_name="d", plugin_data=SummaryMetadata.PluginData(plugin_name="p", content=b"c"))
    inputs = [(v.array(), b""), (v.array(2, 3), metadata.SerializeToString()), (v.array(0, 2), b"")]
    return [v(_text("t"), x, _text(m)) for x, m in inputs]


@examples("MergeSummary")
def merge_summary(v: Values) -> list[Example]:
    values = [Summary.Value(tag=t, simple_value=2.5) for t in ("a", "b", "", "")]
    one, two = (_text(Summary(value=part).SerializeToString()) for part in (values[:3], values[3:]))
    return [v([one]), v([one, two]), v([two, _text("")]), v([np.array([one.item(), two.item()], object), two])]
