"""Event files: what TensorBoard shows.

Pages: `summary_writer` (summaries, graphs and traces), `event_file_writer` (the thread that writes), `plugin_asset`
(files of its plugins).
"""
