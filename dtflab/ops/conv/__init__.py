"""Convolutions, and other windows that move over images.

Programs: `functions`, `atrous` (windows with holes).
Ops: `convolution` (over two and three dimensions), `depthwise` (filters per channel), `dilation` (the largest of
pixel plus filter; each window as one pixel), with their `kernels`.
"""
