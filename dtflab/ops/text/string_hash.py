"""Strings → numbers of buckets.

Stands for `core/kernels/string_to_hash_bucket_op.h`. The hashes are in `base/hashing.py` and `base/fingerprint.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.base.fingerprint import fingerprint64, siphash
from dtflab.base.hashing import hash64
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.messages import invalid, renamed


def _buckets(node: Any, hashed: Callable[[bytes], int]) -> Callable[[Any], Any]:
    count = node["num_buckets"]

    def kernel(strings: Any) -> Any:
        numbers = [hashed(text) % count for text in strings.ravel().tolist()]
        return np.array(numbers, np.int64).reshape(strings.shape)

    return kernel


@op("""StringToHashBucket(string_tensor: string) -> (output: int64)
       num_buckets: int >= 1""")
class StringToHashBucket(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        return _buckets(node, hash64)


@op("""StringToHashBucketFast(input: string) -> (output: int64)
       num_buckets: int >= 1""")
class StringToHashBucketFast(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        return _buckets(node, fingerprint64)


@op("""StringToHashBucketStrong(input: string) -> (output: int64)
       num_buckets: int >= 1
       key: list(int)""")
class StringToHashBucketStrong(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        key = tuple(node["key"])
        if len(key) != 2:
            raise invalid("Key must have 2 elements")
        return _buckets(node, lambda text: siphash(key, text))


def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """The bucket, below `num_buckets`, of each string: int64. Use `string_to_hash_bucket_fast` in new programs."""
    string_tensor = renamed("input", input, "string_tensor", string_tensor)
    return apply_op("StringToHashBucket", name, string_tensor=string_tensor, num_buckets=num_buckets)


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The bucket, below `num_buckets`, of each string: int64, the same in every release."""
    return apply_op("StringToHashBucketFast", name, input=input, num_buckets=num_buckets)


def string_to_hash_bucket_strong(input: Any, num_buckets: int, key: Sequence[int], name: str | None = None) -> Tensor:
    """As `string_to_hash_bucket_fast`, by a hash that nobody who does not know `key`, two numbers, can foresee."""
    return apply_op("StringToHashBucketStrong", name, input=input, num_buckets=num_buckets, key=key)
