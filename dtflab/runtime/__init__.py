"""The chapter: one step of a session, from client to kernel.

Read in this order: session → master → placer → prune → partition → worker → graph_mgr → executor → rendezvous.
Beside it: local (the cluster of one task), frames (loops), runner (the seam below the executor), partial_run,
step_through, transport (the seam between tasks), step_stats. What a step runs on, devices, their memory, threads and
time, is in `dtflab/machine/`, and so are the rules by which the placer knows what may be where.
"""
