"""Hardware: what machines are made of, and how long things take on them. Pure data and pure functions.

No clock and no event lives here (`machines.SIMULATED` only lists what clusters use): `virtual/` turns these numbers
into time, `sim/` asks questions of it.

In reading order: `parts` (what machines are built of), `catalogue` (parts by name), from `catalogue_gpus`
(how fast cards are), `catalogue_cpus` (processors) and `catalogue_links` (buses, network cards, switches), `tables`
(all of it as text), `machines` (which tasks live where), `topology` (what lies between two devices), `cut_through` (how
a message passes that), `costs` (what an op takes), `workload` (the costs of a graph's nodes), `schedule` (when each op
would run), `spans` (what a schedule consists of).

Design: docs/design/hardware.md
"""
