"""Checkpoints, meta graphs and saved models.

Pages: `checkpoint_management`, `checkpoint_utils`, `meta_graph`, `meta_graph_import`, `saved_model`, `saver`,
`saver_builder`, `signatures`, `warm_start`.
"""
