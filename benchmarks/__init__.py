"""Measurements side by side with TensorFlow: `python -m benchmarks`, or `make bench`.

Every workload runs on dtflab and on TensorFlow in turns within one go, each library in a process of its own, because
only a ratio taken on the same machine in the same minute means anything. Nothing is asserted here.

`workloads` says what is measured, `players` who does it, `__main__` in which order, and prints the table.
"""
