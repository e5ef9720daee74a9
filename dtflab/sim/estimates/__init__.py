"""estimate: how fast would this network train on that cluster?

Pages: `estimate` (the question and its engines), `answer` (what was found, as tables and numbers), `estimate_trace` (a
step of it as StepStats).
"""
