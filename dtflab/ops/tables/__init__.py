"""Lookup tables: values found by their keys.

`functions` (the classes of tf.lookup), `table_ops` (make, find, insert, fill), `state` (a table and its entries).
"""
