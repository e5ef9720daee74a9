"""tf.strings: what is done with strings."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.summaries.functions import string_format as format
from dtflab.ops.text.functions import (
    as_string,
    reduce_join,
    regex_full_match,
    regex_replace,
    string_join as join,
    string_length as length,
    string_lower as lower,
    string_strip as strip,
    string_to_hash_bucket as to_hash_bucket,
    string_to_hash_bucket_fast as to_hash_bucket_fast,
    string_to_hash_bucket_strong as to_hash_bucket_strong,
    string_to_number as to_number,
    string_upper as upper,
    strings_split as split,
    substr,
    unsorted_segment_join,
)


def __getattr__(name: str) -> Any:
    raise _missing("tf.strings", name, globals())
