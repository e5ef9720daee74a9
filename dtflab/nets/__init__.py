"""Parts of networks: layers, recurrent cells, losses, metrics, and ways to split all that over devices.

Each file is named once; the ops that they use are in `ops/`.

Layers: `layers` (tf.layers, a folder), `regularizers`.

Recurrent nets: `rnn_cell` (one step) with `rnn_cell_wrappers`; along time `static_rnn` (unrolled), `rnn` (dynamic_rnn,
a loop) and `raw_rnn` (controlled by a function); `rnn_step` (their common parts); `attention`.

Losses and metrics: `losses`, `average_loss` (a worker's share); `metrics` (means), `metrics_of_counts`,
`metrics_at_thresholds` and `metrics_at_k`, with `metric_variables` (their common parts).

Over devices: `model_parallel` (layers and nets in parts, pipelines).

Design: docs/design/nets.md
"""
