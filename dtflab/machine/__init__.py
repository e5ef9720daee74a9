"""The machine under the runtime: what a step runs on.

Read `devices` first: a device binds nodes to kernels. Then, by what you look for:

- GPUs: `gpu` (what all share, and simulated ones), `cuda` (real ones, through CuPy), `device_factory` (which session
  gets which).
- memory: `bfc_allocator` (where a tensor lies), `memory` (which op holds what), `memory_trace` (from when to when).
- hosts and their cards: `cards` (models), `hosts` (which programs may use them), `visible` (CUDA_VISIBLE_DEVICES),
  `registry` with
  `journal` and `file_lock` (what processes tell each other), `smi` and `discovery` (tables and lines about it).
- threads and time: `clock` (one seam for time, threads, waiting), `pools`, `costs` (what is worth a thread).
- `console`: lines for the person in front.

Design: docs/design/machine.md
"""
