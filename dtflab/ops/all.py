"""Every page that registers ops, conversions or operators, loaded, so that the registries are full."""

from __future__ import annotations

import importlib

PAGES = {
    "arrays": "constant diagonal identity joining repeating reshaping space_batch stacking",
    "control": "flow_ops loop_gradients state_ops",
    "conv": "convolution depthwise dilation",
    "datasets": "batch calls iterator_ops order shuffle sources threads",
    "examples": "example_ops sequence_ops serialize_ops",
    "functional": "calls",
    "images": "boxes colors png resize",
    "indexing": "arranging gathering partitioning slicing tensor_scatter",
    "labels": "candidate_sampling ctc_decoding ctc_loss edit_distance",
    "linalg": "eigen einsum factorizations fourier matmul matrices matrix_functions solving",
    "lists": "optional_ops tensor_array_ops tensor_array_row_ops tensor_list_ops tensor_list_row_ops",
    "math": "binary complex_numbers division logic special unary",
    "nn": "activations batch_norm channels cross_entropy fake_quant fused losses quantize ranking",
    "pool": "fractional pooling",
    "queues": "accumulator_ops queue_ops reader_ops",
    "reduce": "along_axis counting reduction segments sets",
    "sampling": "draws stateless",
    "sparse": "arithmetic_ops layout_ops part_ops reduction_ops segment_ops transport_ops",
    "summaries": "debug_ops session_tensors summary_ops",
    "tables": "table_ops",
    "text": "csv_ops elementwise_ops file_ops number_ops part_ops regex_ops",
    "training": "rules save_restore",
    "variables": "handle_ops ref_variable reference_ops resource_variable scatter_ops",
    "": "operators sendrecv",
}
for _family, _pages in PAGES.items():
    for _page in _pages.split():
        importlib.import_module(".".join(filter(None, ("dtflab.ops", _family, _page))))
