"""what_if: how long would this step take on other hardware?

Pages: `changed_job`, `outcomes`, `step_graph`, `step_tasks`, `what_if`.
"""
