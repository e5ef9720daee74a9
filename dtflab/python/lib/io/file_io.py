"""`from tensorflow.python.lib.io import file_io`: the functions of tf.gfile by other names, and whole files at once."""

from __future__ import annotations

import binascii
import filecmp as _filecmp
from typing import Any

from dtflab.api.gfile import Copy as copy, DeleteRecursively as delete_recursively, Exists as file_exists
from dtflab.api.gfile import Glob as get_matching_files, IsDirectory as is_directory, ListDirectory as list_directory
from dtflab.api.gfile import MakeDirs as recursive_create_dir, MkDir as create_dir, Remove as delete_file
from dtflab.api.gfile import Rename as rename, Stat as stat, Walk as walk
from dtflab.base.errors import AlreadyExistsError
from dtflab.files.atomic import replacing
from dtflab.files.gfile import FileStatistics, GFile as FileIO, get_registered_schemes, join
from dtflab.files.paths import local, reported


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """The content of a file: text, or bytes if `binary_mode`."""
    with FileIO(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: str | bytes) -> None:
    """Make text or bytes the content of a file."""
    with FileIO(filename, "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: Any, contents: str | bytes, overwrite: bool = True) -> None:
    """Make text or bytes the content of a file in one step; AlreadyExistsError if it exists, not `overwrite`."""
    if not overwrite and file_exists(filename):
        raise AlreadyExistsError.of("file already exists")
    with replacing(local(filename)) as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


def filecmp(filename_a: Any, filename_b: Any) -> bool:
    """Whether two files hold the same bytes."""
    with reported(f"{filename_a} or {filename_b}"):
        return _filecmp.cmp(local(filename_a), local(filename_b), shallow=False)


def file_crc32(filename: Any, block_size: int = 1 << 24) -> str:
    """The CRC-32 of a file, as Python writes a number in hexadecimal; it is read in blocks of that many bytes."""
    crc = 0
    with FileIO(filename, "rb") as file:
        while block := file.read(block_size):
            crc = binascii.crc32(block, crc)
    return hex(crc)
