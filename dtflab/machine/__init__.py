"""The machine under the runtime: what a step runs on.

Read `devices` first: a device binds nodes to kernels, over its memory. Then `gpu` (what all GPUs share, and simulated
ones), `cuda` (real ones, through CuPy), `clock` (time, threads, waiting: one seam),
`hosts` and `cards` (which GPUs are where, and who may use them), `bfc_allocator` and `memory` (who holds what),
`pools` (threads).
"""
