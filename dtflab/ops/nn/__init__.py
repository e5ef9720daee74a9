"""What layers of networks compute: activations, softmax, cross entropies, normalization, embeddings, eight bits.

Pages: `activations`, `batch_norm`, `bias`, `cross_entropy`, `embedding`, `fake_quant`, `fused`, `fused_conv`,
`layers`, `lrn`, `moments`, `quantize`, `ranking`, `softmax`, `weights_broadcast`.
"""
