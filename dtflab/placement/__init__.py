"""What the placer goes by. `runtime/placer.py` chooses a device for each node; here is between which, and why.

`colocation_graph` finds who must share a device, and which devices they may have; `reasons` says in a sentence why a
node is where it is, `placement_errors` why there is no place for it; `own_placer` checks what a program's own placer
says.
"""
