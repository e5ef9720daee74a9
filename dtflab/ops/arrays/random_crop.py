"""random_crop: a piece of a tensor, cut out at a random place.

Stands for `python/ops/random_crop_ops.py`. Left out: the stateless form.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.control.functions import with_dependencies
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sampling import draws as random


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A piece of shape `size`, a vector, out of `value`, all places being equally likely.

    InvalidArgumentError if `value` is smaller than that.
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        wanted: Any = convert_to_tensor(size, dtypes.int32, name="size")
        shape: Any = arrays.shape(value)
        fits = reduce.reduce_all(shape >= wanted)
        check = assertions.Assert(fits, ["Need value.shape >= size, got ", shape, wanted], summarize=1000)
        shape = with_dependencies([check], shape)
        places: Any = random.random_uniform(arrays.shape(shape), maxval=wanted.dtype.max, dtype=wanted.dtype, seed=seed)
        return indexing.slice(value, places % (shape - wanted + 1), wanted, name=scope)
