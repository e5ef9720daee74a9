"""The file `checkpoint` of a directory, which lists its checkpoints, and the files of a checkpoint.

Stands for `python/checkpoint/checkpoint_management.py` and `python/training/checkpoint_utils.py`'s iterator.
Left out: CheckpointManager, which manages the object-based checkpoints of TensorFlow 2.

Rule: the file is a CheckpointState in text form. It is replaced as a whole; what can't be read is reported and
ignored. Relative paths in it start at its directory.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.protobuf import text_format

from dtflab.base import errors, tf_logging as logging
from dtflab.files.atomic import held, remove_leftovers, replacing
from dtflab.files.bundle import ENDING
from dtflab.files.gfile import GFile, exists, glob, remove, stat
from dtflab.files.paths import local
from dtflab.machine.clock import CURRENT
from dtflab.protos.checkpoint_state_pb2 import CheckpointState
from dtflab.protos.saver_pb2 import SaverDef


def _state_path(save_dir: str, latest_filename: str | None) -> str:
    return os.path.join(save_dir, "checkpoint" if latest_filename is None else latest_filename)


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """The CheckpointState of these paths; relative to `save_dir` if that is relative.

    `model_checkpoint_path` is appended to `all_model_checkpoint_paths` if it is not the last there. ValueError if
    there are timestamps, but not one per path.
    """
    paths = list(all_model_checkpoint_paths or [])
    if not paths or paths[-1] != model_checkpoint_path:
        logging.info("%s is not in all_model_checkpoint_paths. Manually adding it.", model_checkpoint_path)
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths "
            f"(got paths {paths} and timestamps {all_model_checkpoint_timestamps})"
        )

    def stored(path: str) -> str:
        return path if os.path.isabs(save_dir) or os.path.isabs(path) else os.path.relpath(path, save_dir)

    return CheckpointState(
        model_checkpoint_path=stored(model_checkpoint_path),
        all_model_checkpoint_paths=map(stored, paths),
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps,
        last_preserved_timestamp=last_preserved_timestamp,
    )


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the file that says which checkpoint in `save_dir` is the latest.

    RuntimeError if that file would lie where the checkpoint is.
    """
    times = all_model_checkpoint_timestamps, last_preserved_timestamp
    update_checkpoint_state_internal(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths, latest_filename, False, *times
    )


def update_checkpoint_state_internal(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """`update_checkpoint_state`, with paths relative to `save_dir` if `save_relative_paths`."""

    def relative(path: str) -> str:
        return os.path.relpath(path, save_dir) if os.path.isabs(path) else path

    latest, paths = model_checkpoint_path, all_model_checkpoint_paths
    if save_relative_paths:
        latest, paths = relative(latest), list(map(relative, paths or []))
    state = generate_checkpoint_state_proto(
        save_dir, latest, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    path = _state_path(save_dir, latest_filename)
    if path == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state.  "
            "Please use a different save path."
        )
    with replacing(local(path)) as file:
        file.write(text_format.MessageToString(state).encode())


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """The state in a directory's file `checkpoint` (or `latest_filename`); None if it is not there or unreadable.

    Paths in it are completed with the directory. ValueError if it names no checkpoint.
    """
    checkpoint_dir = os.fspath(checkpoint_dir)
    path = _state_path(checkpoint_dir, latest_filename)
    try:
        if not exists(path):
            return None
        with GFile(path) as file:
            state: CheckpointState = text_format.Parse(file.read(), CheckpointState())
    except (errors.OpError, text_format.ParseError, UnicodeDecodeError) as error:
        logging.warning("%s: %s", type(error).__name__, error)
        logging.warning("%s: Checkpoint ignored", path)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {checkpoint_dir}")
    state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
    state.all_model_checkpoint_paths[:] = [os.path.join(checkpoint_dir, p) for p in state.all_model_checkpoint_paths]
    return state


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The prefix of the latest checkpoint in a directory, None if there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if checkpoint_exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    logging.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
    return None


def _files_of(checkpoint_prefix: str) -> list[str]:
    """The index of a checkpoint, or the files of one of the old format (V1)."""
    return glob(f"{checkpoint_prefix}.index") or glob(checkpoint_prefix)


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """True if there is a checkpoint of that prefix, in either format."""
    return bool(_files_of(os.fspath(checkpoint_prefix)))


def checkpoints_of(save_path: str) -> list[str]:
    """The checkpoints that were saved as `save_path` with a `global_step`, in the order of their steps."""
    names = [os.path.basename(path) for path in glob(f"{save_path}-*")]
    form = re.compile(re.escape(os.path.basename(save_path)) + r"-(\d+)(\.index)?")  # without: the old format
    steps = {int(found[1]): found[1] for found in map(form.fullmatch, names) if found}
    return [f"{save_path}-{steps[step]}" for step in sorted(steps)]


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """When those of the checkpoints that exist were written, in seconds since 1970."""
    found = [_files_of(prefix) for prefix in checkpoint_prefixes]
    return [stat(files[0]).mtime_nsec / 1e9 for files in found if files]


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: Any = SaverDef.V2, meta_graph_suffix: str = "meta"
) -> None:
    """Delete the files of a checkpoint and its meta graph, as far as they exist."""
    patterns = [meta_graph_filename(checkpoint_prefix, meta_graph_suffix)]
    if checkpoint_format_version == SaverDef.V2:
        patterns += [f"{checkpoint_prefix}.index", f"{checkpoint_prefix}.data-?????-of-?????"]
    else:
        patterns.append(checkpoint_prefix)
    for path in [path for pattern in patterns for path in glob(pattern)]:
        try:
            remove(path)
        except errors.NotFoundError:
            logging.warning("'%s' is gone already, possibly because another process is deleting it", path)
    path = local(checkpoint_prefix)
    with contextlib.suppress(FileNotFoundError), held(path) as is_locked:
        if is_locked:
            remove_leftovers(path, ENDING)


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """Where the meta graph of a checkpoint lies: its shards have one together."""
    whole = re.sub(r"-[\d?]+-of-\d+$", "", checkpoint_filename)
    return f"{whole}.{meta_graph_suffix}"


# -- waiting ------------------------------------------------------------------------------------------------


def wait_for_new_checkpoint(
    checkpoint_dir: str, last_checkpoint: str | None = None, seconds_to_sleep: float = 1, timeout: float | None = None
) -> str | None:
    """The latest checkpoint in a directory once it is another than `last_checkpoint`; None after `timeout` seconds."""
    logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    stop = None if timeout is None else CURRENT.now() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            logging.info("Found new checkpoint at %s", path)
            return path
        if stop is not None and CURRENT.now() + seconds_to_sleep > stop:
            return None
        CURRENT.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Each new checkpoint in a directory, at most one in `min_interval_secs`.

    It ends when none has come for `timeout` seconds. With a `timeout_fn`, which is asked after each checkpoint and
    each time-out, it ends when that says True.
    """
    path = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if found is not None:
            started, path = CURRENT.now(), found
            yield path
            rest = started + min_interval_secs - CURRENT.now()
            if rest > 0:
                CURRENT.sleep(rest)
        elif timeout_fn is None:
            logging.info("Timed-out waiting for a checkpoint (without timeout_fn).")
            return
        if timeout_fn is not None and timeout_fn():
            logging.info("Done. No new checkpoints will be generated.")
            return
