"""The `tensorflow` of a Python process started by a program under `python -m dtflab run`: dtflab again.

The folder above is in the PYTHONPATH of such processes, and nowhere else.
"""

import sys

import dtflab
from dtflab import aliases

sys.modules["tensorflow"] = dtflab
aliases.install()
