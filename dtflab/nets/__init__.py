"""Parts of networks: layers, recurrent cells, losses, metrics, and ways to split all that over devices.

Each file is named once; the ops that they use are in `ops/`.

Layers: `layers` (tf.layers, a folder), `regularizers` (penalties that keep weights small).

Recurrent nets: `rnn_cell` (one step), `rnn_cell_wrappers` (dropout, residual connections, a device); along time
`static_rnn` (unrolled), `rnn` (dynamic_rnn, a loop) and `raw_rnn` (controlled by a function); `rnn_step` (their common
parts); `attention` (a weighted mean of the encoder's outputs).

Losses and metrics: `losses` (a number to minimize), `average_loss` (a worker's share); `metrics` (means),
`metrics_of_counts` (right and wrong predictions), `metrics_at_thresholds` (areas under curves), `metrics_at_k` (the
first k of a ranking), `metric_variables` (their common parts).

Over devices: `model_parallel` (layers and nets in parts, pipelines).

Design: docs/design/nets.md
"""
