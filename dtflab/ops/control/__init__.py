"""Order, branches and loops, and the gradients of loops.

Programs: `functions` (no_op, group, tuple, switch, merge), `cond` (one of two branches), `case` (one of several),
`while_loop` (a piece of graph that repeats), `critical_section` (one step at a time).
While a graph is built: `control_flow_context` (where an operation is), `cond_context` (in a branch), `while_context`
(in a loop).
Gradients: `backward_loop` (of one loop), `gradients_through_loops` (all loops of a call), `loop_sums` (counters and
sums).
Ops: `flow_ops` (Switch, Merge, Enter, Exit), `state_ops` (of stacks and mutexes), `state` (what these hold).
"""
