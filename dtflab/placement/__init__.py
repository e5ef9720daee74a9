"""What the placer goes by. `runtime/placer.py` chooses a device for each node; here is between which, and why.

`colocation_graph` finds who must share a device, and which devices they may have; `reasons` says in a sentence why a
node is where it is, `placement_errors` why there is no place for it; `own_placer` checks what a program's own placer
says.

The dynamic placer stands here whole, for `runtime/` has no room for it: `dynamic` tries several ways and says why.
`recurring` finds the nodes of a step, `units` what moves as one, `problem` is the question and its judge;
`earliest_finish`, `clusters` with `spreading`, and `local_search` answer it; `dynamic_reasons` puts it into sentences.

Design: docs/design/placement.md
"""
