"""The rules of placement. `runtime/placer.py` chooses a device for each node; here are the candidates, and the reasons.

`colocation_graph` finds the nodes that must share a device, and their candidates. `reasons` explains in a sentence why
a node is where it is, `placement_errors` why it can't be placed. `own_placer` checks a program's own placer.

The dynamic placer: `dynamic` tries several strategies. `recurring` finds the nodes of a step, `units` the groups that
move together, `problem` defines the problem and judges an answer; `earliest_finish`, `clusters` with `spreading`, and
`local_search` are the strategies; `dynamic_reasons` explains the result.

Design: docs/design/placement.md
"""
