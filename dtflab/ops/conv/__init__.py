"""Convolutions, and other windows that move over images.

Programs: `functions` (tf.nn.conv2d and its kin), `atrous` (windows with holes).
Ops: `convolution` (over two and three dimensions), `kernels` (its arithmetic: products of matrices), `depthwise`
(filters per channel), `dilation` (the largest of pixel plus filter; each window as one pixel).
"""
