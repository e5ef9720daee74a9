"""predict: what the model says of published measurements, and how far it can be trusted.

Pages: `baselines`, `calibrate`, `claims`, `fitted`, `layers`, `points`, `predict`, `recurrent`, `report`, `scores`,
`setups`, `symmetric`.
"""
