"""A stand-in for CuPy on machines without a card: NumPy arrays that refuse what CuPy refuses.

It is not a GPU and says nothing about CUDA: it shows that a kernel keeps to CuPy's interface (`cupy_api.txt`, read off
an installed CuPy by `cupy_api.py`) and never mixes device arrays with NumPy's. Refused, as by CuPy:

- functions, ufuncs, loops of ufuncs, methods and keywords that CuPy doesn't have; dtypes that it doesn't have,
- NumPy arrays next to device arrays, and any silent way from one to the other (`np.asarray`, a list, `range`),
- `ufunc.reduce`, `accumulate`, `reduceat` and `at` where CuPy has none.

Stricter than CuPy: an index out of range, which CuPy wraps round without a word, and NumPy arrays as indices, which
would be copied to the card without a trace, are refused. There are no scalars: the sum of an array is an array.
"""

from __future__ import annotations

import functools
import operator
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

DTYPES = "?bBhHiIlLqQefdFD"
_SCATTERED = {"add": "iILQefd", "maximum": "iILQfd", "minimum": "iILQfd"}  # what `at` can do
_CREATES = {"array", "asarray", "ascontiguousarray", "asfortranarray", "zeros", "ones", "empty", "full", "arange",
            "linspace", "eye", "identity", "broadcast_shapes", "ndim", "shape", "size", "result_type", "can_cast",
            "promote_types", "iscomplexobj", "isscalar", "finfo", "tri"}  # fmt: skip
_ON_HOST = {("full", 1), ("split", 1)}  # arguments that CuPy wants, or takes, in host memory
_FROM_HOST = {"array", "asarray", "ascontiguousarray", "asfortranarray"}


def _read() -> dict[str, dict[str, list[str]]]:
    kinds: dict[str, dict[str, list[str]]] = {"constant": {}, "function": {}, "method": {}, "ufunc": {}}
    for line in (Path(__file__).parent / "cupy_api.txt").read_text().splitlines():
        kind, name, *rest = line.split()
        if kind in kinds:
            kinds[kind][name] = rest
    return kinds


API = _read()


class Hooks(threading.local):
    """Where this thread is, for the stand-in of all of CuPy (fake_cupy.py): device, stream, and the calls that report
    to it.
    """

    device = 0
    stream: Any = None

    def made(self, array: np.ndarray) -> None:
        """An array has been made on the device."""

    def copied(self, kind: str, array: np.ndarray, stream: Any) -> None:
        """An array crosses between host and device."""


hooks = Hooks()
_owners: weakref.WeakValueDictionary[int, StrictArray] = weakref.WeakValueDictionary()  # by id of NumPy's array


def _owner(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def bare(value: Any) -> Any:
    """The NumPy side of what may be given to CuPy; TypeError for a NumPy array, as CuPy's."""
    if isinstance(value, StrictArray):
        if value._device != hooks.device:
            raise ValueError(
                f"The device where the array resides ({value._device}) is different from the current ({hooks.device})."
            )
        return value._array
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, list | tuple):
        return type(value)(map(bare, value))
    return value


def wrapped(value: Any) -> Any:
    """Arrays and NumPy scalars as device arrays, in whatever they are."""
    if isinstance(value, np.ndarray | np.generic):
        return StrictArray(value)
    if type(value) in (list, tuple):
        return type(value)(map(wrapped, value))
    return value


def _check_call(name: str, allowed: list[str], args: Any, kwargs: Any) -> None:
    if "*" not in allowed and len(args) > len(allowed):
        raise TypeError(f"cupy.{name} takes {allowed}, not {len(args)} arguments")
    if unknown := kwargs.keys() - set(allowed):
        raise TypeError(f"cupy.{name} has no {sorted(unknown)}, only {allowed}")


class StrictUfunc:
    """A ufunc with CuPy's loops only."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._ufunc = getattr(np, name)
        self._loops = [loop.split("->") for loop in API["ufunc"][name]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _check_call(self.__name__, ["out", "where", "dtype", "casting"], (), kwargs)
        ins = args[: self._ufunc.nin]
        self._check_loop(ins, kwargs.get("dtype"))
        result = self._ufunc(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()})
        out = kwargs.get("out", args[self._ufunc.nin] if len(args) > self._ufunc.nin else None)
        return wrapped(result) if out is None else out

    def _check_loop(self, ins: Any, dtype: Any) -> None:
        """CuPy takes the first loop that all arrays can be cast to; it must give what NumPy's gives."""
        kinds = [x.dtype if isinstance(x, StrictArray | np.generic) else None for x in map(_plain_ok, ins)]
        if dtype is not None or all(kind is None for kind in kinds):
            return
        weak = [x if k is None else k for x, k in zip(ins, kinds, strict=True)]
        whole = np.result_type(*weak)
        for taken, given in self._loops:
            if all(np.can_cast(whole if k is None else k, t) for k, t in zip(kinds, taken, strict=True)):
                theirs = self._ufunc.resolve_dtypes((*(k or type(x) for k, x in zip(kinds, ins)), *[None] * len(given)))
                if [np.dtype(g) for g in given] != list(theirs[len(ins) :]):
                    raise TypeError(f"cupy.{self.__name__} of {kinds} gives {given}, NumPy's {theirs[len(ins) :]}")
                return
        raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{self.__name__}")

    def at(self, a: StrictArray, indices: Any, b: Any = None) -> None:
        if self.__name__ not in _SCATTERED:
            raise NotImplementedError(f"`cupy_{self.__name__}.at` is not supported yet")
        plain = all(isinstance(i, slice | int) for i in (indices if isinstance(indices, tuple) else (indices,)))
        if not plain and a.dtype.char not in _SCATTERED[self.__name__]:
            raise TypeError(f"scatter of {self.__name__} does not support {a.dtype}")
        self._ufunc.at(a._array, _index(indices), bare(b))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`cupy_{self.__name__}.reduce` is not supported yet")
        return wrapped(self._ufunc.reduce(_array(array), axis, dtype, bare(out), keepdims))

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`cupy_{self.__name__}.accumulate` is not supported yet")
        return wrapped(self._ufunc.accumulate(_array(array), axis, dtype, bare(out)))

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ != "add":
            raise NotImplementedError(f"`cupy_{self.__name__}.reduceat` is not supported yet")
        return wrapped(self._ufunc.reduceat(_array(array), bare(indices), axis, dtype, bare(out)))

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        return wrapped(self._ufunc.outer(bare(a), bare(b), **kwargs))


def _plain_ok(value: Any) -> Any:
    bare(value)
    return value


def _array(value: Any) -> Any:
    if not isinstance(value, StrictArray):
        raise TypeError(f"a device array is needed, not {type(value)}")
    return value._array


def _function(name: str) -> Any:
    """A function of CuPy by its name, without what NumPy's takes and CuPy's doesn't."""
    space: Any = functools.reduce(getattr, name.split(".")[:-1], np)
    function, allowed = getattr(space, name.split(".")[-1]), API["function"][name]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check_call(name, allowed, args, kwargs)
        if name in _FROM_HOST and args and isinstance(args[0], np.ndarray | np.generic):
            return StrictArray(np.array(args[0], *args[1:], **kwargs))
        if name not in _CREATES and not _has_array(args[0] if args else next(iter(kwargs.values()))):
            raise TypeError(f"cupy.{name} needs device arrays, not {type(args[0])}")
        kwargs.pop("blocking", None)
        plain = [a if (name, i) in _ON_HOST and isinstance(a, np.ndarray) else bare(a) for i, a in enumerate(args)]
        result = function(*plain, **{k: bare(v) for k, v in kwargs.items()})
        return kwargs["out"] if kwargs.get("out") is not None else wrapped(result)

    return call


def _has_array(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_has_array, value))
    return isinstance(value, StrictArray)


def _index(index: Any) -> Any:
    """An index that CuPy takes without copying anything to the card."""
    if isinstance(index, tuple):
        return tuple(_index(i) for i in index)
    if isinstance(index, np.ndarray | list):
        raise TypeError(f"an index that is a {type(index).__name__} would be copied to the card unseen: use xp.asarray")
    return bare(index)


class StrictArray:
    """An array "on the device"."""

    __slots__ = ("__weakref__", "_array", "_base", "_device")
    __array_priority__ = 100

    def __init__(self, array: Any) -> None:
        self._array = np.asarray(array)
        if self._array.dtype.char not in DTYPES:
            raise ValueError(f"Unsupported dtype {self._array.dtype}")
        self._device = hooks.device
        owner = _owner(self._array)
        self._base = _owners.get(id(owner))
        if self._base is None:
            _owners[id(owner)] = self
            hooks.made(owner)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method != "__call__" or ufunc.signature is not None or ufunc.__name__ not in API["ufunc"]:
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return getattr(module, ufunc.__name__)(*args, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
        if name not in API["function"]:
            raise TypeError(f"CuPy has no {name}")
        return _function(name)(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return wrapped(_refusing_wraps(operator.getitem, self._array, _index(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        _refusing_wraps(operator.setitem, self._array, _index(index), bare(value))

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Any:
        return map(wrapped, iter(self._array))

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __complex__(self) -> complex:
        return complex(self._array)

    def __repr__(self) -> str:
        return f"strict{self._array!r}"

    def __format__(self, spec: str) -> str:
        return format(self._array, spec)

    @property
    def base(self) -> Any:
        """The array whose memory this is a view of, as CuPy says it: never itself a view; None if it is its own."""
        return self._base

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3}

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        hooks.copied("DtoH", self._array, stream)
        return np.array(self._array)

    def set(self, array: Any, stream: Any = None) -> None:
        if not isinstance(array, np.ndarray) or array.dtype != self.dtype or array.shape != self.shape:
            raise TypeError(f"can't set {self!r} to {array!r}")
        hooks.copied("HtoD", array, stream)
        self._array[...] = array

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        _check_call("ndarray.astype", API["method"]["astype"], (dtype, *args), kwargs)
        return StrictArray(self._array.astype(dtype, *args, **kwargs))

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        return StrictArray(self._array.view() if dtype is None else self._array.view(dtype))


def _refusing_wraps(function: Any, array: Any, index: Any, *value: Any) -> Any:
    try:
        return function(array, index, *value)
    except IndexError as error:
        raise AssertionError(f"CuPy would not say: {error}") from error


def _method(name: str) -> Any:
    def call(self: StrictArray, *args: Any, **kwargs: Any) -> Any:
        _check_call(f"ndarray.{name}", API["method"][name] or [""], args, kwargs)
        result = getattr(self._array, name)(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()})
        return kwargs["out"] if kwargs.get("out") is not None else wrapped(result)

    return call


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


def _operator(name: str, reverse: bool = False, in_place: bool = False) -> Any:
    def call(self: StrictArray, other: Any) -> Any:
        if in_place:
            return getattr(module, name)(self, other, out=self)
        return getattr(module, name)(*((other, self) if reverse else (self, other)))

    return call


def _complete() -> None:
    for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags"):
        setattr(StrictArray, name, property(lambda self, name=name: getattr(self._array, name)))
    for name in ("T", "mT", "real", "imag", "flat"):
        setattr(StrictArray, name, property(lambda self, name=name: wrapped(getattr(self._array, name))))
    for name in API["method"]:
        if not name.startswith("__") and name not in StrictArray.__dict__:
            setattr(StrictArray, name, _method(name))
    for short, name in _BINARY.items():
        setattr(StrictArray, f"__{short}__", _operator(name))
        if name not in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            setattr(StrictArray, f"__r{short}__", _operator(name, reverse=True))
            setattr(StrictArray, f"__i{short}__", _operator(name, in_place=True))
    for short, name in _UNARY.items():
        setattr(StrictArray, f"__{short}__", lambda self, name=name: getattr(module, name)(self))
    StrictArray.__matmul__ = lambda self, other: module.matmul(self, other)  # type: ignore[attr-defined]
    StrictArray.__hash__ = None  # type: ignore[assignment]
    for name in ("item", "tolist"):
        setattr(StrictArray, name, lambda self, name=name: getattr(self._array, name)())


def _module() -> Any:
    tricks = SimpleNamespace()
    space = SimpleNamespace(
        linalg=SimpleNamespace(), fft=SimpleNamespace(), lib=SimpleNamespace(stride_tricks=tricks), ndarray=StrictArray
    )
    for name in API["constant"]:
        if name not in ("linalg", "ndarray", "random", "lib", "fft", "linalg.LinAlgError"):
            setattr(space, name, getattr(np, name))
    space.linalg.LinAlgError = np.linalg.LinAlgError
    for name in (*API["function"], *API["ufunc"]):
        *path, last = name.split(".")
        owner: Any = functools.reduce(getattr, path, space)
        setattr(owner, last, StrictUfunc(name) if name in API["ufunc"] else _function(name))
    return space


module = _module()
_complete()
