"""Checkpoints, meta graphs and saved models.

Pages: `saver` (writes variables and takes them back), `saver_builder` (its operations), `checkpoint_management` (the
list of a directory), `checkpoint_utils` (looking into checkpoints), `warm_start` (what an older model learnt),
`meta_graph` (a graph as one message), `meta_graph_import` (the way back), `saved_model` (a directory for others to
run), `signatures` (inputs and outputs of a saved model).
"""
