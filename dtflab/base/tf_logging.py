"""tf.logging: the lines that the library writes for the person who runs the program, and that programs add to them.

Stands for `python/platform/tf_logging.py`. Left out: Google's own prefix of a line.

Rules: there is one logger, Python's `tensorflow`, so that programs that configure it by name go on working. Each line
appears once: where the root logger has handlers already, it adds none. `logging` itself is loaded with the first line.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from dtflab.base.missing_names import missing as _missing

if TYPE_CHECKING:
    import logging

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50


@functools.cache
def get_logger() -> logging.Logger:
    """The logger `tensorflow`. It shows warnings on stderr; in an interactive interpreter also infos, on stdout."""
    import logging

    logger = logging.getLogger("tensorflow")
    if not logging.getLogger().handlers and not logger.handlers:
        interactive = hasattr(sys, "ps1") or sys.flags.interactive
        if interactive:
            logger.setLevel(INFO)
        handler = logging.StreamHandler(sys.stdout if interactive else sys.stderr)
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logger.addHandler(handler)
    return logger


# `stacklevel=2`: a line shows where the caller of these functions is, not where they are.


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log `msg % args` at a numeric level."""
    get_logger().log(level, msg, *args, **{"stacklevel": 2, **kwargs})


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    get_logger().debug(msg, *args, **{"stacklevel": 2, **kwargs})


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    get_logger().info(msg, *args, **{"stacklevel": 2, **kwargs})


def warn(msg: Any, *args: Any, **kwargs: Any) -> None:
    get_logger().warning(msg, *args, **{"stacklevel": 2, **kwargs})


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    get_logger().warning(msg, *args, **{"stacklevel": 2, **kwargs})


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    get_logger().error(msg, *args, **{"stacklevel": 2, **kwargs})


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log at the highest level; the program goes on."""
    get_logger().critical(msg, *args, **{"stacklevel": 2, **kwargs})


def vlog(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log `msg % args` at a numeric level."""
    get_logger().log(level, msg, *args, **{"stacklevel": 2, **kwargs})


def TaskLevelStatusMessage(msg: Any) -> None:
    """An error for the person who watches the task."""
    get_logger().error(msg, stacklevel=2)


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Log `msg % args` if `condition` holds."""
    if condition:
        get_logger().log(level, msg, *args, stacklevel=2)


_calls: Counter[tuple[str, int]] = Counter()


def _calls_so_far() -> int:
    """How often the program's line that called our caller has done so before."""
    frame = sys._getframe(2)
    line = frame.f_code.co_filename, frame.f_lineno
    _calls[line] += 1
    return _calls[line] - 1


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log `msg % args` the first time this line is reached and every `n` times after."""
    if _calls_so_far() % n == 0:
        get_logger().log(level, msg, *args, stacklevel=2)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log `msg % args` only the first `n` times that this line is reached."""
    if _calls_so_far() < n:
        get_logger().log(level, msg, *args, stacklevel=2)


def flush() -> None:
    """Write out what the handlers hold."""
    logger = get_logger()
    for handler in logger.handlers + logger.root.handlers:
        handler.flush()


def get_verbosity() -> int:
    """The lowest level that is shown."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: Any) -> None:
    """Show levels from `v` on: `tf.logging.INFO`, or its name."""
    get_logger().setLevel(v)


def __getattr__(name: str) -> Any:
    raise _missing("tf.logging", name, globals())
