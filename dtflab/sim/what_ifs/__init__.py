"""what_if: how long would this step take on other hardware?

Pages: `changed_job`, `step_graph`, `step_tasks`, `what_if`.
"""
