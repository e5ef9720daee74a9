"""Virtual time: the executor's second runner. Arithmetic is real, durations come from a model of the hardware.

A run is a function of (program, cluster, seed): exactly one thread runs at a time, and ties are broken by (time,
sequence number).

Design: docs/design/virtual.md
"""
