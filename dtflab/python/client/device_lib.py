"""`from tensorflow.python.client import device_lib`."""

from dtflab.api.device_lib import list_local_devices
