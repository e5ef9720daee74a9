"""The devices of this process: what `tensorflow.python.client.device_lib` has, and `tf.test` asks."""

from __future__ import annotations

from typing import Any

from dtflab.machine.device_factory import make_devices
from dtflab.protos.config_pb2 import ConfigProto


def list_local_devices(session_config: ConfigProto | None = None) -> list[Any]:
    """DeviceAttributes of the devices that a local session with that ConfigProto has: `/device:CPU:0`, …"""
    found = [device.attributes() for device in make_devices("localhost", 0, session_config)]
    for device in found:
        device.name = device.name[device.name.index("/device:") :]
        device.locality.SetInParent()
        device.xla_global_id = -1
    return found
