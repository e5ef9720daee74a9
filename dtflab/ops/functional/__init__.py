"""Functions as arguments: map_fn and scan, functions in attributes, Python functions, custom gradients.

Pages: `calls`, `custom_gradient`, `mapping`, `script`.
"""
