"""Random numbers: the distributions that are made of TensorFlow's generator, Philox.

Programs: `functions` (tf.random).
Ops: `draws` (with a stream of their own), `stateless` (the seed is an input), `rejection` (gamma, Poisson, choices).
"""
