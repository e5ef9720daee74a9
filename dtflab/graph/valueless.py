"""The errors of a program that takes a tensor or variable for its value: `float(loss)`, `y.item()`, `y.reshape(…)`.

Stands for `Tensor.__getattr__` in `python/framework/tensor.py`, which knows the methods of NumPy's arrays.
Left out: `enable_numpy_behavior`, which gives a tensor some of them.

Rule: an error begins as Python's own does, so that programs see what TensorFlow shows them; then it says what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

IN_A_SESSION = "Its value exists only inside a session: run it with `session.run(t)`."
_OF_VALUES = {"numpy", "item", "tolist"}
_FUNCTIONS = {  # of arrays and of eager tensors → the same in a graph
    "T": "tf.transpose(t)",
    "argmax": "tf.argmax(t, axis)",
    "astype": "tf.cast(t, dtype)",
    "backward": "tf.gradients(t, variables)",
    "clip": "tf.clip_by_value(t, low, high)",
    "dot": "tf.matmul(t, other)",
    "flatten": "tf.reshape(t, [-1])",
    "grad": "tf.gradients(loss, [t])",
    "max": "tf.reduce_max(t)",
    "mean": "tf.reduce_mean(t)",
    "min": "tf.reduce_min(t)",
    "ravel": "tf.reshape(t, [-1])",
    "reshape": "tf.reshape(t, shape)",
    "size": "tf.size(t)",
    "squeeze": "tf.squeeze(t)",
    "sum": "tf.reduce_sum(t)",
    "transpose": "tf.transpose(t)",
}


class Valueless:
    """Base of tensors and variables: what has a value only inside a session."""

    __slots__ = ()

    if not TYPE_CHECKING:  # else a checker would let programs do all this

        def __getattr__(self, name: str) -> NoReturn:
            hint = f" {IN_A_SESSION}" if name in _OF_VALUES else ""
            if name in _FUNCTIONS:
                hint = f" Use {_FUNCTIONS[name]}."
            text = f"{type(self).__name__!r} object has no attribute {name!r}{'.' if hint else ''}{hint}"
            raise AttributeError(text, name=name, obj=self)

        def __float__(self) -> NoReturn:
            self._refuse("float() argument must be a string or a real number, not {!r}")

        def __int__(self) -> NoReturn:
            self._refuse("int() argument must be a string, a bytes-like object or a real number, not {!r}")

        def __index__(self) -> NoReturn:
            self._refuse("{!r} object cannot be interpreted as an integer")

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse("unsupported format string passed to {}.__format__")
        return str(self)

    def _refuse(self, text: str) -> NoReturn:
        raise TypeError(f"{text.format(type(self).__name__)}. {IN_A_SESSION}")
