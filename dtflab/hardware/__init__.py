"""Hardware: what machines are made of, and how long things take on them. Pure data and pure functions.

No clock and no event lives here: `virtual/` turns these numbers into time, `sim/` asks questions of it.
"""
