"""The chapter: one step of a session, from client to kernel.

Read in this order: session → master → placer → prune → partition → worker → graph_mgr → executor → rendezvous.
Beside it: clock and runner (the seam below the executor), transport (the seam between tasks), devices,
resources, step_stats.
"""
