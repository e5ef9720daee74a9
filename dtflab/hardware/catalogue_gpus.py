"""GPUs: how fast they are. The list of cards, with names and memory, is in `machine/cards.py`.

Stands for NVIDIA's data sheets and white papers. Left out: sparsity, integer tensor cores, FP8.

Rule: float16 and bfloat16 are what frameworks get for products and convolutions: tensor cores where the card has them;
where it has no arithmetic of that type, or only a token of it (1/64 of float32 on GP102 and GP104), cuDNN computes in
float32, so the figure is 0. tf32 is float32 rounded to 10 bits by tensor cores, and is used only when requested by
name.
"""

from __future__ import annotations

from dtflab.hardware.parts import Processor
from dtflab.machine import cards

_T, _G = 1e12, 1e9
LAUNCH_S = 5e-6  # assumed: launching a kernel takes 3 to 10 µs under TensorFlow, little less on newer cards

# name: (float32, float64, float16, bfloat16, tf32) in TFLOP/s, memory in GB/s, source
_SHEETS: dict[str, tuple[tuple[float, float, float, float, float], float, str]] = {
    "C2075": ((1.03, 0.515, 0, 0, 0), 144, "NVIDIA Tesla C2075 board specification (recalled)"),
    "K520": ((2.448, 0.102, 0, 0, 0), 160, "NVIDIA GRID K520 data sheet, one of its GPUs (recalled); cores x clock"),
    "K20": ((3.52, 1.17, 0, 0, 0), 208, "NVIDIA Tesla Kepler family data sheet; compared with a table of cards"),
    "K20X": ((3.935, 1.312, 0, 0, 0), 249.6, "NVIDIA Tesla Kepler family data sheet; compared with a table of cards"),
    "K40": ((4.29, 1.43, 0, 0, 0), 288, "NVIDIA Tesla K40 data sheet; compared with Microway's measurements"),
    "K80": ((4.37, 1.455, 0, 0, 0), 240, "NVIDIA Tesla K80 data sheet: half of the board, boosted (recalled)"),
    "Titan": ((4.5, 1.5, 0, 0, 0), 288.4, "NVIDIA GeForce GTX TITAN specifications (recalled)"),
    "Titan X": ((6.61, 0.206, 0, 0, 0), 336.5, "NVIDIA GeForce GTX TITAN X; bandwidth compared with a review"),
    "M40": ((6.84, 0.214, 0, 0, 0), 288.4, "NVIDIA Tesla M40 data sheet; compared with a table of cards"),
    "1080 Ti": ((11.34, 0.354, 0, 0, 0), 484.4, "NVIDIA GeForce GTX 1080 Ti specifications (recalled)"),
    "P4": ((5.44, 0.17, 0, 0, 0), 192, "NVIDIA Tesla P4 data sheet; compute compared with a table of cards"),
    "P40": ((11.76, 0.367, 0, 0, 0), 347.1, "NVIDIA Tesla P40 data sheet; compared with a table of cards"),
    "P100-PCIe": ((9.53, 4.76, 19.05, 0, 0), 732, "NVIDIA Tesla P100 PCIe data sheet; compared with a table of cards"),
    "P100-SXM2": ((10.61, 5.30, 21.22, 0, 0), 732, "NVIDIA P100 white paper; compared with a table of cards"),
    "V100-PCIe": ((14.13, 7.07, 113.0, 0, 0), 900, "NVIDIA Tesla V100 data sheet (recalled)"),
    "V100-SXM2": ((15.67, 7.83, 125.3, 0, 0), 900, "NVIDIA Tesla V100 white paper (recalled)"),
    "V100-32GB": ((15.67, 7.83, 125.3, 0, 0), 900, "NVIDIA Tesla V100 data sheet (recalled)"),
    "V100-SXM3": ((16.35, 8.18, 130.8, 0, 0), 981, "NVIDIA DGX-2 data sheet (recalled)"),
    "T4": ((8.14, 0.254, 65.13, 0, 0), 320, "NVIDIA T4 data sheet; compared with a table of cards"),
    "2080 Ti": ((13.45, 0.420, 53.8, 0, 0), 616, "NVIDIA Turing white paper, products added up in float32 (recalled)"),
    "A100-40GB": ((19.49, 9.75, 311.9, 311.9, 155.9), 1555, "NVIDIA A100 data sheet; compared with a table of cards"),
    "A100-SXM4": ((19.49, 9.75, 311.9, 311.9, 155.9), 1555, "NVIDIA A100 data sheet; compared with a table of cards"),
    "A100-80GB-PCIe": ((19.49, 9.75, 311.9, 311.9, 155.9), 1935, "NVIDIA A100 data sheet (recalled)"),
    "A100-80GB": ((19.49, 9.75, 311.9, 311.9, 155.9), 2039, "NVIDIA A100 data sheet; compared with notes on it"),
    "A10": ((31.24, 0.488, 125.0, 125.0, 62.5), 600, "NVIDIA A10 data sheet; float32 compared with a table of cards"),
    "L4": ((30.29, 0.473, 121.0, 121.0, 60.5), 300, "NVIDIA L4 data sheet, dense (recalled)"),
    "H100-PCIe": ((51.2, 25.6, 756.0, 756.0, 378.0), 2000, "NVIDIA H100 data sheet, dense; compared with a table"),
    "H100-SXM": ((66.9, 33.5, 989.4, 989.4, 494.7), 3352, "NVIDIA H100 data sheet, dense; compared with notes on it"),
}
_DTYPES = ("float32", "float64", "float16", "bfloat16", "tf32")


def _processor(name: str) -> Processor:
    teraflops, gigabytes, source = _SHEETS[name]
    card = cards.model(name)
    peaks = {dtype: value * _T for dtype, value in zip(_DTYPES, teraflops, strict=True) if value}
    memory, cores, chips = (card.memory_bytes, gigabytes * _G), card.multiprocessors, card.chips
    return Processor(card.name, "GPU", peaks, *memory, LAUNCH_S, cores, source, chips=chips)


GPUS = {processor.name: processor for processor in map(_processor, _SHEETS)}
