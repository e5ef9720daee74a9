"""The machine under the runtime: what a step runs on.

Read `devices` (where kernels run) first: a device binds nodes to kernels. Then, by what you look for:

- GPUs: `gpu` (what all share, and simulated ones), `cuda` (real ones, through CuPy), `device_factory` (which session
  gets which).
- memory: `bfc_allocator` (where a tensor lies), `memory` (which op holds what), `memory_trace` (from when to when),
  `host_memory` (what a server keeps for its next step).
- hosts and their cards: `cards` (models), `hosts` (which programs may use them), `visible` (CUDA_VISIBLE_DEVICES),
  `registry` (what processes report to each other), `journal` (what happened to memory), `file_lock` (one process at a
  time), `smi` (a table of who holds what), `discovery` (TensorFlow's lines about GPUs).
- threads and time: `clock` (one seam for time, threads, waiting), `pools` (a device's threads), `costs` (what is worth
  a thread), `pace` (devices that are slowed down or stopped), `patience` (with a thread that may come),
  `meter` (how busy a task is).
- seeing: `watch` (everything that happens in this process), `node_stats` (one run of a node), `step_stats` (a step's
  trace), `console` (lines for the person in front).

Design: docs/design/machine.md
"""
