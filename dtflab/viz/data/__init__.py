"""From traces and watches to the data of a picture. No markup here.

Pages: `participants`, `pipeline`, `queue_course`, `step_trace`, `story`, `usage`.
"""
