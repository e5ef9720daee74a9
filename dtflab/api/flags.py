"""tf.flags, also `tf.app.flags`: absl's flags, as TF1 wraps them.

Stands for `python/platform/flags.py`. Flags are parsed at the first use of `FLAGS.x`. In a notebook, whose command line
belongs to the kernel, every flag has its default until it is set, and a cell may define its flags again.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags as _absl
from absl.flags import *  # noqa: F403

from dtflab.machine.console import in_notebook as _in_notebook

_absl.disclaim_key_flags()  # the flags belong to the programs that define them, not to this file
_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class _Flags:
    """The values of all flags, parsed when the first is asked for."""

    def _parsed(self) -> Any:
        if not _absl.FLAGS.is_parsed():
            _absl.FLAGS(sys.argv[:1] if _in_notebook() else sys.argv)
        return _absl.FLAGS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parsed(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_absl.FLAGS, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_absl.FLAGS, name)

    def __getitem__(self, name: str) -> Any:
        return _absl.FLAGS[name]

    def __setitem__(self, name: str, flag: Any) -> None:
        _absl.FLAGS[name] = flag

    def __contains__(self, name: str) -> bool:
        return name in _absl.FLAGS

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _absl.FLAGS(*args, **kwargs)

    def __iter__(self) -> Iterator[str]:
        return iter(_absl.FLAGS)

    def __len__(self) -> int:
        return len(_absl.FLAGS)

    def __dir__(self) -> list[str]:
        return dir(_absl.FLAGS)

    def __str__(self) -> str:
        return str(_absl.FLAGS)


def _with_old_names(define: Callable[..., Any]) -> Callable[..., Any]:
    """`define`, also by the names that its arguments had before absl."""

    @functools.wraps(define)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        kwargs = {_OLD_NAMES.get(name, name): value for name, value in kwargs.items()}
        if _in_notebook():
            kwargs.setdefault("allow_override", True)
        return define(*args, **kwargs)

    return wrapped


FLAGS: Any = _Flags()  # type: ignore[no-redef]
DEFINE_string = _with_old_names(_absl.DEFINE_string)
DEFINE_boolean = _with_old_names(_absl.DEFINE_boolean)
DEFINE_bool = DEFINE_boolean
DEFINE_float = _with_old_names(_absl.DEFINE_float)
DEFINE_integer = _with_old_names(_absl.DEFINE_integer)
