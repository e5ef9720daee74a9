"""Convolutions, and other windows that move over images.

Pages: `functions` (all that programs call), `windows` (where they stand, what they see; pooling uses it, too), `atrous`
(windows with holes), `kernels` (of convolutions).
Ops: `convolution` (over two and three dimensions), `depthwise` (filters per channel), `dilation` (the largest of
pixel plus filter; each window as one pixel).
"""
