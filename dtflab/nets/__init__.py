"""What networks are made of: layers, recurrent cells, losses, metrics, and ways to split all that over devices.

Each file once; what they compute with is in `ops/`.

Layers: `layers` (tf.layers, a folder), `regularizers`.

Recurrent nets: `rnn_cell` (one step) with `rnn_cell_wrappers` and `state_shapes`; along time `static_rnn` (unrolled),
`rnn` (dynamic_rnn, a loop) and `raw_rnn` (steered by a function), with `rnn_step` (what they share); `attention`.

Losses and metrics: `losses`, `average_loss` (a worker's share); `metrics` (means), `metrics_of_counts`,
`metrics_at_thresholds` and `metrics_at_k`, with `metric_variables` (what they share).

Over devices: `model_parallel` (layers and nets in parts, pipelines).

Design: docs/design/nets.md
"""
