"""The rules of placement. `runtime/placer.py` chooses a device for each node; here are the candidates, and the reasons.

Read `colocation_graph` (nodes that must share a device, and their candidates), `reasons` (why a node is where it is),
`placement_errors` (why one can't be placed), `own_placer` (checks a program's own placer), `control_loops` (a loop over
several devices).

The dynamic placer: `dynamic` (tries several strategies), `recurring` (the nodes of a step), `units` (groups that move
together), `problem` (what is to be solved, and the judge of an answer); the strategies `earliest_finish` (greedy),
`clusters` (units that move together) with `spreading` (clusters over devices), `local_search` (move one or two while
that helps); `dynamic_reasons` (explains the result).

Design: docs/design/placement.md
"""
