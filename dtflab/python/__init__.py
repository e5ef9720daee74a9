"""Import paths of TensorFlow's own modules that TF1 programs use: `from dtflab.python.client import timeline`.

Design: docs/design/api.md
"""

from dtflab.python import client, lib
