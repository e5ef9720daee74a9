"""TensorFlow as version 1. A worker that asks too early asks again after a second, not after half a minute."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from tensorflow.python.training.session_manager import SessionManager

tf.disable_v2_behavior()
begin = SessionManager.__init__
begin.__defaults__ = tuple(1 if value == 30 else value for value in begin.__defaults__)  # of `recovery_wait_secs`
