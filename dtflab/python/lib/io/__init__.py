"""`tensorflow/python/lib/io`, as far as programs import it."""

from dtflab.python.lib.io import file_io
