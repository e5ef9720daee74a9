"""Names of devices: what a user asks for (`/job:ps/gpu:*`), and the full name of where something is.

The first half, what `tf.device` takes, stands for `python/framework/device_spec.py` and `device.py`;
the second, what the placer reads in a node, for `core/util/device_name_utils.cc`. Left out: custom devices.
The rule it obeys: a field that is None, or `*`, is open; merging fills open fields, the inner scope wins.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from dtflab.base.suggestions import did_you_mean

_SPEC_FIELDS = ("job", "replica", "task", "device_type", "device_index")
_ATTRIBUTES = ("job", "replica", "task", "device", "cpu", "gpu")
_SHORT_TYPES = frozenset({"CPU", "GPU", "TPU", "EPU", "CUSTOM"})  # these may be written `/cpu:0`, in any case


class DeviceName(NamedTuple):
    """The five fields of a device name; None is an open field."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    def __str__(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        text += "" if self.replica is None else f"/replica:{self.replica}"
        text += "" if self.task is None else f"/task:{self.task}"
        if self.type is not None or self.id is not None:
            kind = "*" if self.type is None else self.type
            text += f"/device:{kind}:{'*' if self.id is None else self.id}"
        return text


class DeviceSpec:
    """A possibly partial device name: `DeviceSpec(job="ps", task=0)`, `DeviceSpec.from_string("/gpu:1")`."""

    __slots__ = ("device_index", "device_type", "job", "replica", "task")

    job: str | None
    replica: int | None  # nearly always 0
    task: int | None  # the number of the task in its job
    device_type: str | None  # `CPU`, `GPU`, …
    device_index: int | None  # the number of the device among those of its type in the task

    def __init__(
        self, job: Any = None, replica: Any = None, task: Any = None, device_type: Any = None, device_index: Any = None
    ) -> None:
        self.job = job
        self.replica = replica
        self.task = task
        self.device_type = device_type
        self.device_index = device_index

    def __setattr__(self, field: str, value: Any) -> None:
        """Names are kept as text, numbers as int; `cpu` and `gpu` are also understood in small letters."""
        if value is not None:
            value = int(value) if field in ("replica", "task", "device_index") else str(value)
        small = field == "device_type" and value in ("cpu", "gpu")
        super().__setattr__(field, value.upper() if small else value)

    @classmethod
    def from_string(cls, spec: str | None) -> DeviceSpec:
        """The spec for a string such as `/job:ps/task:0/cpu:0`; every part is optional."""
        return cls(*_parse_request(spec or ""))

    def parse_from_string(self, spec: str | None) -> DeviceSpec:
        """Replaces every field by what the string says; returns self."""
        self._set(_parse_request(spec or ""))
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Overwrites the fields that `dev` specifies."""
        self._set(self.make_merged_spec(dev)._fields())

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A new spec: the fields that `dev` specifies, the others from here."""
        pairs = zip(self._fields(), dev._fields(), strict=True)
        return type(self)(*(mine if theirs is None else theirs for mine, theirs in pairs))

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """A new spec with the given fields set, also to None."""
        fields = dict(zip(_SPEC_FIELDS, self._fields(), strict=True))
        return type(self)(**(fields | kwargs))

    def to_string(self) -> str:
        """The canonical string, which from_string reads back; an index without a type is not shown."""
        name = DeviceName(*self._fields())
        return str(name if name.type is not None else name._replace(id=None))

    def _fields(self) -> tuple[Any, ...]:
        return self.job, self.replica, self.task, self.device_type, self.device_index

    def _set(self, fields: tuple[Any, ...]) -> None:
        self.job, self.replica, self.task, self.device_type, self.device_index = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in zip(_SPEC_FIELDS, self._fields(), strict=True))
        return f"<DeviceSpec({fields})>"


@functools.lru_cache(maxsize=4096)
def _parse_request(spec: str) -> DeviceName:
    """The fields of a user's string. Forgiving, as TF's Python is: the leading slash may be missing."""
    fields: dict[str, str] = {}
    device: tuple[str | None, int | None] = (None, None)
    for part in spec.split("/"):
        match part.split(":"):
            case ["", *_]:  # before the leading slash, or between two
                pass
            case ["job" | "replica" | "task" as field, text]:
                fields[field] = text
            case ["device", kind, index]:
                device = _device(spec, device, kind, index)
            case [kind, *index] if kind.upper() in _SHORT_TYPES and len(index) < 2:
                device = _device(spec, device, kind.upper(), index[0] if index else "*")
            case [attribute, *_]:
                raise _unknown(attribute, spec)
    replica, task = (_number(spec, field, fields.get(field)) for field in ("replica", "task"))
    return DeviceName(fields.get("job"), replica, task, *device)


def _unknown(attribute: str, spec: str) -> ValueError:
    error = ValueError(f"Unknown attribute '{attribute}' is encountered while parsing the device spec: '{spec}'.")
    error.add_note(f"Write a device like /job:worker/task:0/gpu:0.{did_you_mean(attribute, _ATTRIBUTES)}")
    return error


def _device(spec: str, earlier: tuple[str | None, int | None], kind: str, index: str) -> tuple[str | None, int | None]:
    if earlier[0] is not None:
        raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
    return kind, None if index == "*" else _number(spec, "device", index)


def _number(spec: str, field: str, text: str | None) -> int | None:
    """A number in the spec; where Python's own error would not say of which spec, this one does."""
    try:
        return None if text is None else int(text)
    except ValueError:
        others = "* for any" if field == "device" else f"leave the {field} out"
        raise ValueError(
            f"{text!r} is not the number of a {field}, while parsing the device spec: '{spec}'. Write a whole number, "
            f"or {others}."
        ) from None


def canonical_name(device: str | DeviceSpec | None) -> str:
    """The one way to write a device: `/cpu:0` is `/device:CPU:0`."""
    if device is None:
        return ""
    spec = device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(device)
    return spec.to_string()


def merge_device(spec: str | DeviceSpec | None) -> Callable[[Any], DeviceSpec]:
    """A device function: what the op asks for itself (`op.device`), completed from `spec`."""
    outer = spec if isinstance(spec, DeviceSpec) else DeviceSpec.from_string(spec)

    def merged(op: Any) -> DeviceSpec:
        return outer.make_merged_spec(DeviceSpec.from_string(op.device))

    return merged


# -- what stands in a node, and where it may go ------------------------------------------------------------

_KNOWN = 1 << 14  # names, or pairs of them: the sessions of a thousand workers ask for those of two thousand devices

_PART = re.compile(
    r"/job:(?P<job>\*|[A-Za-z][A-Za-z0-9_]*)(?=/|\Z)"
    r"|/replica:(?P<replica>\*|\d{1,10})(?=/|\Z)"
    r"|/task:(?P<task>\*|\d{1,10})(?=/|\Z)"
    r"|/device:(?P<type>\*|[A-Za-z]\w*)(?::(?P<id>\*|\d{1,10}))?(?=/|\Z)"
    r"|/(?P<short>cpu|CPU|gpu|GPU):(?P<short_id>\*|\d{1,10})(?=/|\Z)",
    re.ASCII,
)


@functools.lru_cache(maxsize=_KNOWN)
def parse(name: str) -> DeviceName:
    """The fields of a device name in a node. Strict, as TF's runtime is: `cpu:0` is a ValueError."""
    fields: dict[str, str] = {}
    position = 0
    while position < len(name) and name != "/":
        part = _PART.match(name, position)
        if part is None:
            raise ValueError(f"Malformed device specification '{name}'")
        fields |= {key: value for key, value in part.groupdict().items() if value is not None}
        position = part.end()
    if "short" in fields:
        fields["type"], fields["id"] = fields["short"].upper(), fields["short_id"]
    closed = {key: value for key, value in fields.items() if value != "*"}
    replica, task, index = (int(closed[key]) if key in closed else None for key in ("replica", "task", "id"))
    return DeviceName(closed.get("job"), replica, task, closed.get("type"), index)


def full_name(job: str, replica: int, task: int, device_type: str, index: int) -> str:
    """The complete name of one device of a cluster."""
    return f"/job:{job}/replica:{replica}/task:{task}/device:{device_type}:{index}"


def task_name(full: str) -> str:
    """The part of a full name that says which task: `/job:worker/replica:0/task:1`."""
    return str(parse(full)._replace(type=None, id=None))


def name_of_task(job: str, index: int) -> str:
    """The full name of a task of a cluster: `/job:worker/replica:0/task:1`."""
    return f"/job:{job}/replica:0/task:{index}"


def job_and_index(task: str) -> tuple[str, int]:
    """The job and the number in it of a task, from its full name."""
    name = parse(task)
    return name.job or "", name.task or 0


def plain(name: str) -> str:
    """A task's or device's full name without its replica, which is always 0, as one writes it in `tf.device`."""
    return name.replace("/replica:0", "")


def label(device: str) -> str:
    """A device as people call it: `ps:0`, `worker:1 GPU:0`, in a session without a cluster `CPU:0`."""
    name = parse(device)
    own = f"{name.type or 'CPU'}:{name.id or 0}"
    if name.job in (None, "localhost"):
        return own
    return f"{name.job}:{name.task or 0}" + ("" if own == "CPU:0" else f" {own}")


@functools.lru_cache(maxsize=_KNOWN)
def matches(requested: str, full: str) -> bool:
    """True if the device `full` has every field that `requested` specifies."""
    return all(want is None or want == have for want, have in zip(parse(requested), parse(full), strict=True))


def merge(target: str, other: str, allow_soft_placement: bool = False) -> str:
    """The name that asks for both, for ops that must share a device; ValueError where they contradict.

    With soft placement a contradiction of type or index is given up instead: the field becomes open.
    """
    a, b = parse(target), parse(other)
    merged = DeviceName._make(theirs if mine is None else mine for mine, theirs in zip(a, b, strict=True))
    for i, (field, word) in enumerate(_PLURAL.items()):
        mine, theirs = a[i], b[i]
        if mine is None or theirs is None or mine == theirs:
            continue
        if not allow_soft_placement or field not in ("type", "id"):
            so_far = DeviceName._make(merged[:i] + a[i:])  # as TensorFlow reports it
            raise ValueError(f"Cannot merge devices with incompatible {word}: '{so_far}' and '{b}'")
        merged = merged._replace(id=None) if field == "id" else merged._replace(type=None, id=None)
    return str(merged)


_PLURAL = {"job": "jobs", "replica": "replicas", "task": "tasks", "type": "types", "id": "ids"}
