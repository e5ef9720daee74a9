"""A bridge over the names in which NumPy and CuPy differ.

A kernel is written once, over an array module `xp`. CuPy has nearly all of NumPy; what is missing is bridged here, or
in the kernel by a form that both have. `np.array(…, like=x)` makes an array of the module that `x` is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_FUNCTIONS = {"maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}


def reducer(xp: Any, ufunc: str) -> Callable[..., Any]:
    """`reduce(x, axes, keepdims)` by the ufunc of that name; of an empty array only if the ufunc has a neutral element.

    CuPy's ufuncs can't reduce, but for sums and products; its functions can.
    """
    if xp is np:
        reduce = getattr(np, ufunc).reduce
        return lambda x, axes, keep: reduce(x, axes, None, None, keep)
    function = getattr(xp, _FUNCTIONS[ufunc])
    return lambda x, axes, keep: function(x, axes, None, keep)


def accumulator(xp: Any, ufunc: str) -> Callable[..., Any]:
    """`reduce(x, axes, dtype, keepdims)` by "add" or "multiply": outermost axis first unless the last goes, too.

    So NumPy adds long rows: 32×28×28×32 to 32 sums takes 108 µs instead of the 390 over all axes at once.
    """
    reduce = getattr(xp, ufunc).reduce

    def by_axes(x: Any, axes: tuple[int, ...], dtype: Any, keep: bool) -> Any:
        if len(axes) > 1 and x.ndim - 1 not in axes and x.itemsize > 2:  # short floats round each sum in this order
            for axis in sorted(axes)[:-1]:
                x = reduce(x, axis, dtype, None, True)
        return reduce(x, axes, dtype, None, keep)

    return by_axes if xp is np else lambda x, axes, dtype, keep: reduce(x, axes, dtype, None, keep)


def in_host_memory(xp: Any, x: Any) -> Any:
    """The array as one of NumPy's: for few numbers that only a CPU can work with."""
    return x if xp is np else np.array(x.tolist(), x.dtype)


def filled(xp: Any, shape: Any, value: Any, dtype: Any) -> Any:
    """An array of `shape`, all of it the scalar `value`; `xp.full` takes twice as long for a small one.

    It would also cut zeros off the end of a string. A string may come as an array of objects, which holds it.
    """
    out = xp.empty(shape, dtype)
    out.fill(value.item() if isinstance(value, np.ndarray) and value.dtype.hasobject else value)
    return out


def special_function(name: str) -> Callable[[Any], Any]:
    """The function of CuPy that stands for one of SciPy's; NumPy has none."""
    from cupyx.scipy import special

    return getattr(special, name)


# The types for which CuPy adds (…) with the card's atomic operations, in any order.
_ATOMIC = {"add": "iILQefd", "maximum": "iILQfd", "minimum": "iILQfd"}


def scatterer(xp: Any, ufunc: str) -> Callable[[Any, Any, Any], None]:
    """`write(array, places, values)`: array[places] = ufunc(array[places], values), where each duplicate counts.

    `places` is an array of row numbers, or a tuple with such an array for each of the first axes.
    """
    function = getattr(xp, ufunc)
    if xp is np:
        return function.at

    add = scatterer(xp, "add") if ufunc == "subtract" else None

    def write(array: Any, places: Any, values: Any) -> None:
        places = places if isinstance(places, tuple) else (places,)
        if add is not None:
            add(array, places, -values)
        elif array.dtype.char in _ATOMIC.get(ufunc, ""):
            function.at(array, places, values)
        elif not places:
            array[...] = function(array, values)
        else:
            _one_after_the_other(xp, function, array, places, values)

    return write


def _one_after_the_other(xp: Any, function: Any, array: Any, places: tuple[Any, ...], values: Any) -> None:
    """Scatter what CuPy can't: each round takes the places that occurred equally often before."""
    rest = array.shape[len(places) :]
    values = xp.broadcast_to(values, (*places[0].shape, *rest)).reshape(-1, *rest)
    places = tuple(p.reshape(-1) for p in places)
    for some in _rounds(xp, places, array.shape):
        here = tuple(p[some] for p in places)
        array[here] = function(array[here], values[some])


def _rounds(xp: Any, places: tuple[Any, ...], shape: tuple[int, ...]) -> Iterator[Any]:
    """Positions in `places`, so that no place is named twice in one round, and rounds keep the order of the names."""
    numbers = xp.zeros(places[0].shape, np.int64)
    for p, dim in zip(places, shape):
        numbers = numbers * dim + p
    order = xp.argsort(numbers, kind="stable")
    ordered = numbers[order]
    before = xp.arange(len(ordered)) - xp.searchsorted(ordered, ordered)
    for i in range(int(before.max()) + 1 if len(ordered) else 0):
        yield order[before == i]


def strided(xp: Any, x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of the memory of `x` with this shape, where `strides` are the bytes from one element to the next."""
    return xp.lib.stride_tricks.as_strided(x, shape, strides)
