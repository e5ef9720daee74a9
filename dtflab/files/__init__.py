"""Files: file system, checksums, record files, checkpoint tables, event files. No graph, no session.

Design: docs/design/files.md
"""
