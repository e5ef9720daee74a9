"""An op: its interface, shape rule, kernel, gradient and cost, in one class.

Stands for TensorFlow's `op_def.proto`, `op_def_builder.cc` and the registries of ops, kernels and gradients.
Left out: deprecation, experimental type constraints, docs inside OpDefs.

Rule: an op is registered once, by the decorator `op`, whose text is the op's interface: inputs, outputs and
attributes in TensorFlow's own grammar (what `REGISTER_OP` takes). Everything else about it stands in the class below:

    @op("MatMul(a: T, b: T) -> (product: T) where transpose_a: bool = false, T: {float, double}")
    class MatMul(Op):
        def infer(op): ...         # static shapes of the outputs
        def bind(node, xp): ...    # the kernel: a callable over arrays of the module xp; or, flat,
        def kernel(node, xp, a, b): ...    # what it returns, where nothing is to be prepared once per node
        def grad(op, dy): ...      # the gradients of the inputs, as graph ops
        def flops(node, ins, outs): ...
        def bytes(node, ins, outs): ...
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from dtflab.base.limits import beyond, limits
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType


def repeated(one: Any, count: int) -> list[Any]:
    """`count` times the same; ValueError for more than `limits.list_length`.

    A number in an attribute is a few bytes, the list that it asks for is not.
    """
    if count > limits.list_length:
        raise ValueError(beyond("list_length", f"Number of outputs is too big: {count}"))
    return [one] * count


@dataclass(frozen=True)
class ArgDef:
    """One declared input or output; a list when `number_attr` or `type_list_attr` is set."""

    name: str
    type: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        return bool(self.number_attr or self.type_list_attr)

    def types(self, attrs: dict[str, Any]) -> list[DType]:
        """The dtypes of the tensors that this argument stands for, given a node's attrs."""
        if self.type_list_attr:
            types = list(attrs[self.type_list_attr])
        else:
            one = self.type if self.type is not None else attrs[self.type_attr]
            types = repeated(one, attrs[self.number_attr]) if self.number_attr else [one]
        return [t._as_ref for t in types] if self.is_ref else types

    def count(self, attrs: dict[str, Any]) -> int:
        """How many tensors these are."""
        if self.type_list_attr:
            return len(attrs[self.type_list_attr])
        return int(attrs[self.number_attr]) if self.number_attr else 1


@dataclass(frozen=True)
class AttrDef:
    """One declared attribute: `type` is TensorFlow's spelling (`int`, `list(type)`, …)."""

    name: str
    type: str
    default: Any = None
    has_default: bool = False
    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None


@dataclass(frozen=True)
class OpDef:
    """The interface of an op, equal to TensorFlow's OpDef of that name."""

    name: str
    inputs: tuple[ArgDef, ...] = ()
    outputs: tuple[ArgDef, ...] = ()
    attrs: dict[str, AttrDef] = field(default_factory=dict)

    @property
    def input_arg(self) -> tuple[ArgDef, ...]:
        """The inputs, under the name that they have in the OpDef message."""
        return self.inputs

    @property
    def output_arg(self) -> tuple[ArgDef, ...]:
        """The outputs, under that name."""
        return self.outputs

    @functools.cached_property
    def argument_names(self) -> frozenset[str]:
        """The arguments of `apply_op`: names of inputs and attributes."""
        return frozenset([*(arg.name for arg in self.inputs), *self.attrs])

    def input_types(self, attrs: dict[str, Any]) -> list[DType]:
        return [t for arg in self.inputs for t in arg.types(attrs)]

    def output_types(self, attrs: dict[str, Any]) -> list[DType]:
        return [t for arg in self.outputs for t in arg.types(attrs)]

    def with_defaults(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """`attrs` completed with the declared defaults. Raises ValueError naming a missing required attribute."""
        full = dict(attrs)
        for attr in self.attrs.values():
            if attr.name not in full:
                if not attr.has_default:
                    raise ValueError(f"NodeDef missing attr '{attr.name}' from Op<name={self.name}>")
                full[attr.name] = attr.default
        return full


def no_gradient(op: Any, *dys: Any) -> list[None]:
    """The gradient of an op that TensorFlow declares NotDifferentiable: None for each input."""
    return [None] * len(op.inputs)


class Op:
    """Base of all op classes: what the runtime asks of an op, with the usual answers.

    Rules are called on the class; there are no instances, so a rule needs no `self` and no `@staticmethod`.
    """

    op_def: OpDef
    stateful = False  # keeps state between steps: never folded, shared, or assumed equal to its twin
    checks = False  # may fail on purpose: runs even if nobody reads its value
    aliasing = False  # an output may be a view of an input
    needs_ctx = False  # the kernel takes the step context first
    is_async = False  # the kernel takes the step context first and a `done` callback last; or returns its outputs
    control_flow = ""  # switch, merge, enter, exit, next_iteration or loop_cond: run by the executor itself
    allows_uninitialized_input = False  # a reference input may be a variable without a value
    calls_program = False  # the kernel calls a Python function of the program, which may wait
    blas = False  # runs inside BLAS, which `ops/blas.py` keeps on one thread
    shards = False  # `bind` takes the device's Shard, too, and the kernel does large work in parts with it
    kernel: Callable[..., Any] | None = None  # of (node, xp, *inputs): where `bind` would prepare nothing
    into: Callable[..., Callable[..., Any]] | None = None  # as `bind`, of a kernel with `out=` (`ops/forwarding.py`)
    grad: Callable[..., Sequence[Any]] | None = None
    zeros: Callable[[Any, int], Any] | None = None  # stands for the gradient of an output that nothing depends on

    def __init_subclass__(cls) -> None:
        for name, rule in list(vars(cls).items()):
            if isinstance(rule, FunctionType):
                setattr(cls, name, staticmethod(rule))

    @staticmethod
    def infer(op: Any) -> list[Any]:
        """Static shapes of the outputs; the default knows nothing."""
        from dtflab.graph.tensor_shape import TensorShape

        return [TensorShape(None)] * len(op.outputs)

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        """The kernel of `node` over the array module `xp` (numpy or cupy)."""
        if cls.kernel is None:
            raise NotImplementedError(f"Op {node.op} (node '{node.name}') has no kernel in dtflab")
        return functools.partial(cls.kernel, node, xp)

    @staticmethod
    def flops(node: Any, ins: Sequence[Any], outs: Sequence[Any]) -> int:
        """Arithmetic operations of one run; `ins` and `outs` have shapes. Default: one per output element."""
        return sum(elements(x) for x in outs)

    @staticmethod
    def bytes(node: Any, ins: Sequence[Any], outs: Sequence[Any]) -> int:
        """Bytes of memory that one run reads and writes. Default: all inputs and all outputs."""
        return sum(map(nbytes, (*ins, *outs)))


def elements(array: Any) -> int:
    """Number of elements of anything with a `shape`."""
    return math.prod(int(dim) for dim in getattr(array, "shape", ()))


def nbytes(array: Any) -> int:
    """Bytes of anything with a `shape` and a NumPy `dtype`; of strings their characters, of handles none."""
    dtype = getattr(array, "dtype", None)
    if isinstance(array, bytes):
        return len(array)
    if getattr(dtype, "kind", "O") == "O":
        return sum(len(text) for text in getattr(array, "flat", ()) if isinstance(text, bytes))
    return elements(array) * int(array.dtype.itemsize)


_registry: dict[str, type[Op]] = {}


def op(*interfaces: str) -> Callable[[type], type[Op]]:
    """Class decorator that registers an op under its interface; one for each of several, all with the class's rules."""

    def register(cls: type) -> type[Op]:
        for interface in interfaces:
            op_name = interface.partition("(")[0].strip()
            if op_name in _registry:
                raise ValueError(f"Op '{op_name}' is registered twice")
            kind = cls if len(interfaces) == 1 else type(op_name, (cls,), {"__doc__": cls.__doc__})
            kind.op_def = _Interface(interface)  # type: ignore[attr-defined]
            _registry[op_name] = kind
        return cls

    return register


class _Interface:
    """An op's `op_def` until somebody asks for it. A program uses few ops; to read all took an eighth of the import."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, _: Any, owner: Any) -> OpDef:
        owner.op_def = parse_interface(self.text)
        found: OpDef = owner.op_def
        return found


def get(name: str) -> type[Op]:
    """The op class registered under `name`; KeyError-free: raises NotFoundError that names the op."""
    try:
        return _registry[name]
    except KeyError:
        from dtflab.base import errors

        raise errors.NotFoundError.of(
            f"Op type not registered '{name}' in dtflab. It is a TensorFlow op that dtflab does not have yet, "
            "or a misspelt name; dir(tf.raw_ops) lists those that exist."
        ) from None


def names() -> list[str]:
    """Names of all registered ops, sorted."""
    return sorted(_registry)


# -- the interface grammar ------------------------------------------------------------------------------------

_INTERFACE = re.compile(r"(\w+)\s*\((.*?)\)\s*->\s*\((.*?)\)[ ]*(?:(?:where\b|\n)(.*))?\Z", re.S)
_BETWEEN_ATTRS = re.compile(r"\n|,\s*(?=\w+\s*:)")  # a comma inside of a set or a list has no name and colon after it
_NUMBER_TYPES = (
    "float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
    "quint16, uint16, complex128, half, uint32, uint64"
)
_REAL_NUMBER_TYPES = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
_QUANTIZED_TYPES = "qint8, quint8, qint32, qint16, quint16"


def parse_interface(text: str) -> OpDef:
    """Parse `Name(in: T, …) -> (out: T, …) where attr: type, …`; a new line stands for `where` and for a comma, too."""
    match = _INTERFACE.match(text.strip())
    if match is None:
        raise ValueError(f"not an op interface: {text!r}")
    name, inputs, outs, declared = match.groups()
    attrs = {a.name: a for a in map(_parse_attr, filter(str.strip, _BETWEEN_ATTRS.split(declared or "")))}
    return OpDef(name, _parse_args(inputs, attrs), _parse_args(outs, attrs), attrs)


def _parse_args(text: str, attrs: dict[str, AttrDef]) -> tuple[ArgDef, ...]:
    return tuple(_parse_arg(part.strip(), attrs) for part in text.split(",") if part.strip())


def _parse_arg(text: str, attrs: dict[str, AttrDef]) -> ArgDef:
    name, type_text = (part.strip() for part in text.split(":"))
    is_ref = type_text.startswith("Ref(")
    if is_ref:
        type_text = type_text[4:-1].strip()
    number_attr = ""
    if "*" in type_text:
        number_attr, type_text = (part.strip() for part in type_text.split("*"))
    attr = attrs.get(type_text)
    if attr is None:
        return ArgDef(name, type=dtypes.as_dtype(type_text), number_attr=number_attr, is_ref=is_ref)
    if attr.type == "list(type)":
        return ArgDef(name, type_list_attr=type_text, is_ref=is_ref)
    return ArgDef(name, type_attr=type_text, number_attr=number_attr, is_ref=is_ref)


_ATTR = re.compile(
    r"\s*(?P<name>\w+)\s*:\s*(?P<list>list\()?(?P<type>\{[^}]*\}|\w+)\)?\s*"
    r"(?:>=\s*(?P<min>-?\d+))?\s*(?:=\s*(?P<default>.*\S))?\s*\Z"
)


def _parse_attr(line: str) -> AttrDef:
    match = _ATTR.match(line)
    if match is None:
        raise ValueError(f"not an attribute declaration: {line!r}")
    kind, allowed = _kind_and_allowed(match["type"])
    if match["list"]:
        kind = f"list({kind})"
    minimum = int(match["min"]) if match["min"] else None
    text = match["default"]
    default = _parse_default(kind, text) if text is not None else None
    return AttrDef(match["name"], kind, default, text is not None, allowed, minimum)


def _kind_and_allowed(text: str) -> tuple[str, tuple[Any, ...] | None]:
    sets = {"numbertype": _NUMBER_TYPES, "realnumbertype": _REAL_NUMBER_TYPES, "quantizedtype": _QUANTIZED_TYPES}
    if text in sets:
        return "type", _types(sets[text])
    if not text.startswith("{"):
        return text, None
    if "'" in text:
        return "string", tuple(s.encode() for s in re.findall(r"'([^']*)'", text))
    return "type", _types(text[1:-1])


def _types(text: str) -> tuple[DType, ...]:
    return tuple(dtypes.as_dtype(t.strip()) for t in text.split(",") if t.strip())


def _parse_default(kind: str, text: str) -> Any:
    if kind.startswith("list("):
        items = text.strip()[1:-1].split(",")
        return [_parse_default(kind[5:-1], item.strip()) for item in items if item.strip()]
    return _DEFAULT_PARSERS[kind](text)


def single(value: Any) -> float:
    """A float attribute is a float32, here as on the wire: 0.1 is 0.10000000149011612."""
    return float(np.float32(value))


def _parse_shape(text: str) -> Any:
    from dtflab.graph.tensor_shape import TensorShape

    if text == "unknown":
        return TensorShape(None)
    return TensorShape([None if d.strip() in ("?", "-1") else int(d) for d in text[1:-1].split(",") if d.strip()])


def _parse_array(text: str) -> Any:
    """A list with its dtype before it: `uint8 [255, 0]`."""
    dtype, _, items = text.partition(" ")
    return np.array([float(item) for item in items.strip("[]").split(",")]).astype(dtype)


_DEFAULT_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": lambda s: s == "true",
    "int": int,
    "float": single,
    "string": lambda s: s[1:-1].replace("\\n", "\n").encode(),
    "type": dtypes.as_dtype,
    "shape": _parse_shape,
    "tensor": _parse_array,
}
