"""estimate: how fast would this network train on that cluster?

Pages: `answer`, `estimate`, `estimate_trace`.
"""
