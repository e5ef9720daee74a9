"""WAV: sound as a file of 16-bit samples.

Stands for `core/lib/wav/wav_io.cc`. Left out: reading.
"""

from __future__ import annotations

import struct

import numpy as np


def encode_wav(audio: np.ndarray, sample_rate: int) -> bytes:
    """The file of float samples in [-1, 1], of shape [frames, channels]; louder ones are cut off, NaN is silence."""
    frame_bytes = 2 * audio.shape[1]
    scaled = audio.astype(np.float64) * 2**15
    away_from_zero = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)  # C's roundf
    data = np.nan_to_num(away_from_zero.clip(-(2**15), 2**15 - 1)).astype("<i2").tobytes()
    pcm = struct.pack("<HHIIHH", 1, audio.shape[1], sample_rate, sample_rate * frame_bytes, frame_bytes, 16)
    return _chunk(b"RIFF", b"WAVE" + _chunk(b"fmt ", pcm) + _chunk(b"data", data))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data
