"""TF1's namespaces that are not rooms: one file each, names only (`tf.nn` is `dtflab/api/nn.py`).

`import dtflab` loads a namespace when it is first used; `tf.train` is the room `dtflab/train`.

Design: docs/design/api.md
"""
