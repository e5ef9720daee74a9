"""tf.strings: what is done with strings."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.summaries.functions import string_format as format
from dtflab.ops.text.functions import as_string, reduce_join, regex_full_match, regex_replace, string_join as join
from dtflab.ops.text.functions import string_length as length, string_lower as lower, string_strip as strip
from dtflab.ops.text.functions import string_to_hash_bucket as to_hash_bucket
from dtflab.ops.text.functions import string_to_hash_bucket_fast as to_hash_bucket_fast
from dtflab.ops.text.functions import string_to_hash_bucket_strong as to_hash_bucket_strong
from dtflab.ops.text.functions import string_to_number as to_number, string_upper as upper, strings_split as split
from dtflab.ops.text.functions import substr, unsorted_segment_join

__getattr__ = _missing_in("tf.strings", globals())
