"""The chapter: one step of a session, from client to kernel.

Read in this order: session → master → placer → prune → partition → worker → graph_mgr → executor → rendezvous.
Beside it: frames (loops), runner (the seam below the executor), transport (the seam between tasks), step_stats. What a
step runs on, devices, their memory, threads and time, is in `dtflab/machine/`.
"""
