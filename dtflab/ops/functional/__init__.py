"""Functions as arguments: map_fn and scan, functions in attributes, Python functions, custom gradients.

Pages: `functions` (what programs call), `calls` (the ops, of graphs and of Python), `script` (the Python functions
behind PyFunc).
"""
