"""what_if: how long would this step take on other hardware?

Pages: `what_if` (the question), `step_graph` (the step as executors have it), `step_tasks` (its tasks, for the
schedule), `changed_job` (other hardware, more workers), `outcomes` (how long it took, and why).
"""
