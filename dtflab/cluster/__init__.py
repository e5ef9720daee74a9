"""Many tasks: what a cluster is made of, how its tasks start, and how they reach each other.

Design: docs/design/cluster.md
"""
