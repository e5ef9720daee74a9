"""Write docs/hardware.md: the parts that can be simulated, with units and sources, and how to add your own.

`python docs/hardware_table.py`. A test holds the page fresh.
"""

from __future__ import annotations

from pathlib import Path

from dtflab.hardware.tables import Hardware, Table

TARGET = Path(__file__).with_name("hardware.md")

TOP = """# Hardware that can be simulated

`print(dtflab.sim.hardware())` shows these tables. They are written by `python docs/hardware_table.py` out of
`dtflab/hardware/catalogue_*.py`.

Peaks are those of data sheets, with a fused multiply-add as two operations; kernels reach a part of them (`efficiency`,
0.5 unless something better is known). Bandwidths are those of the wire in one direction. “Recalled” figures are
from memory, “assumed” ones have no source; those of a real platform are parameters of the estimates.
“-”: the processor computes that type in float32; the bytes are still fewer. float16 and bfloat16 are those of tensor
cores where there are some; tf32 is used where it is asked for.

## A part of your own
```python
{own}```
The part itself may stand wherever its name may: `Cluster(…, network=Nic(…), bus=Bus(…), racks=Rack(…))`.

"""
OWN = """\
import dtflab
from dtflab import sim

speed = {"float32": 20e12, "float16": 80e12}  # operations per second
memory = {"memory_bytes": 16 << 30, "memory_bandwidth": 600e9}
sim.add_hardware(sim.Processor("Mine", "GPU", speed, **memory, launch_s=4e-6, cores=60, source="its data sheet"))
sim.add_hardware(sim.Nic("our cable", bandwidth=0.9e9, latency_s=40e-6, source="iperf"))
cluster = dtflab.Cluster(ps=1, worker=4, gpus=1, gpu="Mine", network="our cable", clock="virtual")
"""


def page() -> str:
    """The whole page."""
    return TOP.format(own=OWN) + "\n\n".join(map(_markdown, Hardware().tables)) + "\n"


def _markdown(table: Table) -> str:
    title, heads, rows = table
    lines = [heads, ["---"] * len(heads), *([str(cell) for cell in row] for row in rows)]
    return f"## {title}\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    TARGET.write_text(page())
