"""estimate: how fast would this network train on that cluster?

Pages: `answer`, `critical_path`, `estimate`, `estimate_trace`.
"""
