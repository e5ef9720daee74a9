"""The computations of layers of networks: activations, losses, normalization, embeddings, eight bits.

Programs: `functions` (layers, and a function per op), `cross_entropy` (softmax and its losses), `embedding` (rows by
number), `moments` (means and variances).
Behind them: `weights_broadcast` (do weights fit values?).
Ops: `activations` (Relu and its kin), `channels` (biases, local response normalization), `losses` (softmax, cross
entropies, L2Loss), `ranking` (the k largest), `batch_norm` (FusedBatchNorm), `quantize` (integers and back),
`fake_quant` (floats that few bits could hold), `fused` (what a TensorFlow master makes).
"""
