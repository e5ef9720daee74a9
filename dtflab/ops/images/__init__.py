"""Images: files, sizes, crops, colours, measures.

Pages: `adjusting`, `boxes`, `checks`, `colors`, `crops`, `dtype`, `flips`, `measures`, `png`, `resampling`,
`resize`, `resizing`.
"""
