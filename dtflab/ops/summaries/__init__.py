"""Looking at values: summaries for TensorBoard, Print, values that stay in a session.

Pages: `debug`, `functions`, `histogram`, `session_ops`, `summarize`, `summary_ops`.
"""
