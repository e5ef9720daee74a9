"""Random numbers: TensorFlow's generator, and the distributions that are made of it.

Pages: `choices`, `draws`, `philox`, `rejection`, `stateless`.
"""
