"""Failures on either task: the class of the error, its op, and whether it tells the line of the program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.interop.programs.site import PS, WORKER, Site


def kind_of(tf: Any, call: Callable[[], Any]) -> str:
    """The class of the error that a call raises, or what it gives."""
    try:
        return str(call())
    except tf.errors.OpError as error:
        return type(error).__name__


def typed_errors(tf: Any, site: Site) -> dict[str, Any]:
    """Each kernel's error has its class, its op, the words by which programs know it, and the line that made the op."""
    return {f"{case.__name__} {device}": _told(tf, site, case, device) for case in _CASES for device in (PS, WORKER)}


def _told(tf: Any, site: Site, case: Any, device: str) -> list[Any]:
    words = case.__doc__
    with tf.Graph().as_default(), tf.container(site.name), tf.device(device):
        fetch, options = case(tf), None
        if case is timed_out:
            options = tf.RunOptions(timeout_in_ms=100)
        with tf.Session(site.target) as sess:
            try:
                return ["no error", np.asarray(sess.run(fetch, options=options)).tolist()]
            except tf.errors.OpError as error:
                if case is timed_out:  # dtflab's masters also say who was waiting; TensorFlow's do not know
                    return [type(error).__name__, words in str(error)]
                op = error.op.name if error.op is not None else None
                return [type(error).__name__, op, words in str(error), Path(__file__).name in str(error)]


def _unknown(tf: Any, value: Any, dtype: Any) -> Any:
    """A value that no master can fold."""
    return tf.placeholder_with_default(np.asarray(value, dtype.as_numpy_dtype), None)


def wrong_shapes(tf: Any) -> Any:
    """Matrix size-incompatible"""
    return tf.matmul(_unknown(tf, np.ones((2, 3)), tf.float32), tf.ones([2, 3]), name="failing")


def beyond_the_end(tf: Any) -> Any:
    """7 is not in [0, 3)"""
    return tf.gather(tf.constant([1, 2, 3]), _unknown(tf, [7], tf.int32), name="failing")


def unfed(tf: Any) -> Any:
    """You must feed a value for placeholder tensor 'failing'"""
    return tf.placeholder(tf.float32, [], name="failing") + 1.0


def uninitialized(tf: Any) -> Any:
    """failing"""
    return tf.get_variable("failing", [2], use_resource=False) + 1.0


def uninitialized_resource(tf: Any) -> Any:
    """failing"""
    return tf.get_variable("failing", [2], use_resource=True) + 1.0


def not_a_number(tf: Any) -> Any:
    """said to be finite"""
    return tf.check_numerics(_unknown(tf, [1.0, np.nan], tf.float32), "said to be finite", name="failing")


def asserted(tf: Any) -> Any:
    """said to be true"""
    with tf.control_dependencies([tf.Assert(_unknown(tf, False, tf.bool), ["said to be true"], name="failing")]):
        return tf.constant(1.0)


def no_number(tf: Any) -> Any:
    """StringToNumberOp could not correctly convert string: x"""
    return tf.string_to_number(_unknown(tf, b"x", tf.string), name="failing")


def too_few_fields(tf: Any) -> Any:
    """Expect 2 fields but have 1 in record 0"""
    return tf.decode_csv(_unknown(tf, b"1", tf.string), [[1.0], [2.0]], name="failing")


def no_such_file(tf: Any) -> Any:
    """no_such_file"""
    return tf.read_file(_unknown(tf, b"no_such_folder/no_such_file", tf.string), name="failing")


def exhausted(tf: Any) -> Any:
    """is closed and has insufficient elements (requested 1, current size 0)"""
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    with tf.control_dependencies([queue.close()]):
        return queue.dequeue(name="failing")


def timed_out(tf: Any) -> Any:
    """"""
    return tf.FIFOQueue(1, tf.float32, [[]]).dequeue()


_CASES = (
    wrong_shapes, beyond_the_end, unfed, uninitialized, uninitialized_resource, not_a_number, asserted, no_number,
    too_few_fields, no_such_file, exhausted, timed_out,
)  # fmt: skip
