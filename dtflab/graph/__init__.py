"""What a user writes: graphs, tensors, dtypes, shapes, devices, functions, gradients."""
