"""Lookup tables.

Pages: `functions`, `initializers`, `state`, `table_ops`.
"""
