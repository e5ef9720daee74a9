"""From graphs, traces and watches to the data of a picture. No markup here.

Pages: `graph_ops` (ops and their edges), `step_trace` (what ran, when and where), `why_idle` (and why not), `usage`
(memory over a step), `story` (a step before it runs), `two_runs` (a step on dtflab and on TensorFlow), `queue_history`
(a queue's levels and waits), `waits_for` (who waits for whom, and circles), `pipeline` (stages and their speeds),
`course` (how a training goes), `replayed` (a replayed run as rows and sentences).
"""
