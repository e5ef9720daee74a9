"""Random numbers: TensorFlow's generator, and the distributions that are made of it.

Pages: `functions` (all that programs call), `philox` (the generator), `rejection` (gamma, Poisson, choices).
Ops: `draws` (with a stream of their own), `stateless` (the seed is an input).
"""
