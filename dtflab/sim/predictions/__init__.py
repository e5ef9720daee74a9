"""predict: what the model says of published measurements, and how far it can be trusted.

Pages: `points` (the measurements), `setups` (their clusters, with what is assumed), `layers` (what of a model travels,
and when), `predict` (from a setup to the measured metric), `symmetric` (a step whose workers are all alike),
`recurrent` (one whose layers are spread over GPUs), `calibrate` (the search for the parameters), `baselines`
(predictions without a model), `scores` (errors by regime), `report` (how far to trust it, for docs/simulator.md).
"""
