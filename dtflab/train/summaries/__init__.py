"""Event files: what TensorBoard shows.

Pages: `event_file_writer`, `plugin_asset`, `summary_writer`.
"""
