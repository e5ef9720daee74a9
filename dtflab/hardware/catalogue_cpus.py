"""CPUs: real ones, from Sandy Bridge to Sapphire Rapids and EPYC.

Stands for Intel's and AMD's specifications. Left out: turbo clocks, and lower ones under AVX; caches.

Rule: the peak is cores x base clock x what a core's vector units do in a cycle. float16 is computed in float32, as CPU
kernels of TensorFlow do; bfloat16 stands only where the CPU has AMX.
"""

from __future__ import annotations

from dtflab.hardware.parts import Processor

_GIB = 1 << 30
LAUNCH_S = 1e-6  # assumed: what TensorFlow's executor does around a CPU kernel
MEMORY_BYTES = 128 * _GIB  # assumed: a host's, which no CPU determines

# float32 operations of a core in a cycle, a fused multiply-add being two; from the makers' optimization manuals.
AVX, AVX2, AVX512 = 16, 32, 64  # 8 lanes add + multiply; 2 FMA units of 8 lanes; 2 of 16
ZEN1 = 16  # 2 FMA units of 4 lanes
AMX_BF16 = 1024  # products of 16 x 32 and 32 x 16 tiles of bfloat16 in 16 cycles

# name: cores, base GHz, float32 FLOP per cycle and core, bfloat16 FLOP per cycle and core, GB/s, where it is found
_SHEETS: dict[str, tuple[int, float, int, int, float, str]] = {
    "Xeon E5-2670": (8, 2.6, AVX, 0, 51.2, "Sandy Bridge; EC2 g2 with K520s"),
    "Xeon E5-2690 v2": (10, 3.0, AVX, 0, 59.7, "Ivy Bridge"),
    "Xeon E5-2690 v3": (12, 2.6, AVX2, 0, 68.0, "Haswell; Piz Daint with P100s"),
    "Xeon E5-2686 v4": (18, 2.3, AVX2, 0, 76.8, "Broadwell; EC2 p2 and p3, figures of the E5-2697 v4"),
    "Xeon E5-2698 v4": (20, 2.2, AVX2, 0, 76.8, "Broadwell; DGX-1"),
    "Xeon Platinum 8168": (24, 2.7, AVX512, 0, 128.0, "Skylake; DGX-2"),
    "Xeon Platinum 8280": (28, 2.7, AVX512, 0, 140.8, "Cascade Lake"),
    "Xeon Platinum 8380": (40, 2.3, AVX512, 0, 204.8, "Ice Lake"),
    "Xeon Platinum 8480C": (56, 2.0, AVX512, AMX_BF16, 307.2, "Sapphire Rapids; DGX H100"),
    "EPYC 7601": (32, 2.2, ZEN1, 0, 170.6, "Zen"),
    "EPYC 7742": (64, 2.25, AVX2, 0, 204.8, "Zen 2; DGX A100"),
    "EPYC 7763": (64, 2.45, AVX2, 0, 204.8, "Zen 3"),
    "EPYC 9654": (96, 2.4, AVX2, 0, 460.8, "Zen 4, whose 512-bit operations take two cycles"),
    "Core i7-6700K": (4, 4.0, AVX2, 0, 34.1, "Skylake desktop"),
}


def _processor(name: str) -> Processor:
    cores, ghz, single, brain, gigabytes, where = _SHEETS[name]
    cycles = cores * round(ghz * 1e9)  # of all cores in a second
    peaks = {"float32": cycles * single, "float64": cycles * single / 2}
    peaks |= {"bfloat16": cycles * brain} if brain else {}
    maker = "AMD" if name.startswith("EPYC") else "Intel"
    source = f"{maker}'s specification: cores, base clock, memory channels (recalled); {where}"
    return Processor(name, "CPU", peaks, MEMORY_BYTES, gigabytes * 1e9, LAUNCH_S, cores, source)


# Products of 2,048 x 2,048 matrices with NumPy's OpenBLAS on both cores; np.copyto of 128 MiB, read and written.
_MEASURED = "measured on the machine that dtflab was written on, two cores of an EPYC: best of 6 runs"
_PEAKS = {"float32": 238e9, "float64": 118e9}
LAPTOP = Processor("laptop", "CPU", _PEAKS, 23 * _GIB, 40.5e9, LAUNCH_S, 2, _MEASURED)

CPUS = {processor.name: processor for processor in (*map(_processor, _SHEETS), LAPTOP)}
