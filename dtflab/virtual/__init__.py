"""Virtual time: the executor's second runner. Arithmetic is real, durations come from a model of the hardware.

A run is a function of (program, cluster, seed): exactly one thread runs at a time, and ties are broken by (time,
sequence number).

Read `clock` (threads that take turns), `engine` (a heap of events), `world` (the simulated machines of a cluster),
`plan` (what nodes take of a processor), `step` (the executor's second runner), `wires` (messages on their way),
`worker` (a worker whose messages take time), `chance` (all that is drawn, from one seed).
Next to them: `guests` (threads of the program that went out), `deadlock` (all wait, and no event is left), `critical`
(threads that may be stopped), `event_log` (what happened, line by line), `recorded` (processors that note what waits
for them), `loads` (how busy processors and links have been).

Design: docs/design/virtual.md
"""
