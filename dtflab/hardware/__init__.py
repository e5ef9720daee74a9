"""Hardware: what machines are made of, and how long things take on them. Pure data and pure functions.

No clock and no event lives here: `virtual/` turns these numbers into time, `sim/` asks questions of it.

In reading order: `parts` → `catalogue` (with its shelves, and `tables` that show them) → `machines` (which tasks live
where) → `topology` (what lies between two devices) → `cut_through` (how a message passes that) → `costs` (what an op
takes) → `workload` → `schedule`.

Design: docs/design/hardware.md
"""
