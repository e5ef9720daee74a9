"""Reading a checkpoint of either format.

Stands for `core/util/checkpoint_reader.cc` and `CheckpointReader` of `python/util/py_checkpoint_reader.py`.
"""

from __future__ import annotations

import functools
import os.path
import weakref
from typing import Any

from dtflab.base import errors
from dtflab.files.bundle import BundleReader, index_path
from dtflab.files.checkpoint_v1 import V1Reader
from dtflab.files.env import DEFAULT, Env
from dtflab.files.tensor_slice import SavedTensor, brackets
from dtflab.graph.dtypes import DType
from dtflab.protos.types_pb2 import DataType


def open_checkpoint(prefix: str, env: Env = DEFAULT) -> BundleReader | V1Reader:
    """The reader for the checkpoint with this prefix among the files of `env`, a context manager.

    Raises NotFoundError if it does not exist, DataLossError if it is damaged.
    """
    return (BundleReader if os.path.exists(index_path(env.prefix(prefix))) else V1Reader)(prefix, env)


class CheckpointReader:
    """The names, shapes, dtypes and values of a checkpoint's tensors. Its files stay open until the reader ends."""

    def __init__(self, prefix: str) -> None:
        self._reader = open_checkpoint(prefix)
        weakref.finalize(self, self._reader.close)

    @functools.cached_property
    def _tensors(self) -> dict[str, SavedTensor]:
        return dict(self._reader.tensors())

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Name → shape."""
        return {name: list(saved.shape) for name, saved in self._tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Name → dtype."""
        return {name: saved.dtype for name, saved in self._tensors.items()}

    def has_tensor(self, tensor_str: str | bytes) -> bool:
        """Whether there is a tensor of that name."""
        return self._reader.find(_text(tensor_str)) is not None

    def get_tensor(self, tensor_str: str | bytes) -> Any:
        """The value of a tensor, its parts put together. Raises NotFoundError if it is missing."""
        name = _text(tensor_str)
        if not self.has_tensor(name):
            raise errors.NotFoundError.of(f"Key {name} not found in checkpoint")
        value = self._reader.read(name)
        return value if value.ndim else value[()]

    def debug_string(self) -> bytes:
        """One line per tensor: name, dtype, shape, and of how many slices it is made."""
        lines = []
        for name, saved in self._tensors.items():
            slices = f", {len(saved.slices)} slices" if len(saved.slices) > 1 else ""
            kind = DataType.Name(saved.dtype.as_datatype_enum)
            lines.append(f"{name} ({kind}) {brackets(saved.shape)}{slices}\n")
        return "".join(lines).encode()


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
