"""Connectionist temporal classification: [time, batch, classes], the last class is the blank."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples

# TensorFlow adds up their logarithms in float, for double too, so that no tolerance fits the dtype.
IN_PROGRAMS = dict.fromkeys(("CTCLoss", "CTCBeamSearchDecoder"), "tests/ops/oracle/test_ctc.py")


@examples("CTCGreedyDecoder")
def ctc_greedy_decoder(v: Values) -> list[Example]:
    lengths = np.array([7, 4, 0], np.int32)
    return [
        v(v.array(7, 3, 4), lengths, merge_repeated=merge, blank_index=blank)
        for merge in (True, False) for blank in (-1, 0, 2, -4)
    ]  # fmt: skip
