"""Looking at values: summaries for TensorBoard, Print, values that stay in a session.

Programs: `functions` (tf.summary, Print, tf.print), `session_tensors` (handles of values that stay).
Ops: `summary_ops` (numbers, pictures, sounds as messages), `debug_ops` (print, format, check, keep), `summarize`
(values as text).
"""
