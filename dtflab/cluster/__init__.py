"""Many tasks: what a cluster is made of, who starts its tasks, and how they reach each other.

Design: docs/design/cluster.md
"""
