"""tf.strings: what is done with strings."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.summaries.debug import string_format as format
from dtflab.ops.text.as_string import as_string
from dtflab.ops.text.decoding import string_to_number as to_number
from dtflab.ops.text.regex import regex_full_match, regex_replace
from dtflab.ops.text.string_hash import (
    string_to_hash_bucket as to_hash_bucket,
    string_to_hash_bucket_fast as to_hash_bucket_fast,
    string_to_hash_bucket_strong as to_hash_bucket_strong,
)
from dtflab.ops.text.strings import reduce_join, string_join as join, unsorted_segment_join
from dtflab.ops.text.substrings import (
    string_length as length,
    string_lower as lower,
    string_strip as strip,
    string_upper as upper,
    strings_split as split,
    substr,
)


def __getattr__(name: str) -> Any:
    raise _missing("tf.strings", name, globals())
