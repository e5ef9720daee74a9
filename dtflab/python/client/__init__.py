"""`tensorflow/python/client`, as far as programs import it."""

from dtflab.python.client import device_lib, timeline
