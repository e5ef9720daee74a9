"""Windows over images: convolutions, pooling, dilation, patches.

Pages: `atrous`, `conv`, `conv_kernels`, `convolutions`, `depthwise`, `dilation`, `fractional_pooling`, `patches`,
`pooling`, `pooling_kernels`, `pools`, `windows`.
"""
