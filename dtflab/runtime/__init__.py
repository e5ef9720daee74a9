"""The chapter: one step of a session, from client to kernel.

Read in this order: session → master → placer → prune → partition → worker → graph_mgr → executor → rendezvous.
Side pages: client (what a client checks and shows), local (the cluster of one task), graph_execution_state (a session's
graph and where its nodes are), worker_session (what a session has on a task), frames (loops), runner (the seam below
the executor), function_call (functions that kernels call), partial_run, step_through with steps (a step in hand),
transport (the seam between tasks), blocked (what a step waits for), standstill (who could end a wait), metering (how
busy a task is), step_rendezvous (what kernels see of the rendezvous), pushing (values that no consumer has to ask for),
watched_master (reports its calls), remembering (arithmetic of shapes), cell_edges (where variables go).

In other rooms: the conditionals and calls that become plain nodes before the placer sees them (`graph/inlining.py`),
the rules by which the placer knows what may be where (`placement/`), and what a step runs on: devices, their memory,
threads and time (`machine/`).

Design: docs/design/runtime.md
"""
