"""Lookup tables: values found by their keys.

Programs: `functions` (the classes of tf.lookup).
Ops: `table_ops` (make, find, insert, fill), `state` (a table and its entries).
"""
