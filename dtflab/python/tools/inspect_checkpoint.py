"""`from tensorflow.python.tools import inspect_checkpoint`: print what is in a checkpoint.

Left out: the command line.
"""

from __future__ import annotations

import math
import re

from dtflab.base.errors import OpError
from dtflab.files.checkpoint_reader import CheckpointReader
from dtflab.train.checkpoints.checkpoint_utils import NewCheckpointReader


def print_tensors_in_checkpoint_file(
    file_name: str,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Print tensors of a checkpoint, and how many numbers it has; what is wrong with it is printed, too.

    Args:
      file_name: prefix of the checkpoint.
      tensor_name: the tensor to print; without one, a list of all.
      all_tensors: print them all.
      all_tensor_names: print name, dtype and shape of them all.
      count_exclude_pattern: regular expression for names of tensors whose numbers do not count.
    """
    try:
        reader = NewCheckpointReader(file_name)
        if all_tensors or all_tensor_names:
            for name in sorted(reader.get_variable_to_shape_map()):
                _print_tensor(reader, name, all_tensors)
        elif not tensor_name:
            print(reader.debug_string().decode())
        elif reader.has_tensor(tensor_name):
            _print_tensor(reader, tensor_name)
        else:
            print(f"Tensor {tensor_name} not found in checkpoint")
            return
        _print_count(reader, count_exclude_pattern)
    except OpError as error:
        print(error)


def _print_tensor(reader: CheckpointReader, name: str, with_value: bool = True) -> None:
    dtype, shape = reader.get_variable_to_dtype_map()[name], reader.get_variable_to_shape_map()[name]
    print(f"tensor: {name} ({dtype.name}) {shape}")
    if with_value:
        print(reader.get_tensor(name))


def _print_count(reader: CheckpointReader, excluded: str) -> None:
    sizes = {name: math.prod(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    if excluded:
        out = [sizes.pop(name) for name in list(sizes) if re.search(excluded, name)]
        print(f"# Excluding {len(out)} tensors ({sum(out)} params) that match {excluded} when counting.")
    print(f"# Total number of params: {sum(sizes.values())}")
