"""Functions as arguments: map_fn and scan, functions in attributes, Python functions, custom gradients.

Programs: `functions` (map_fn, scan, custom_gradient, py_func).
Ops: `calls` (of graphs and of Python), `script` (the Python functions behind PyFunc).
"""
