"""Mutations of bytes, of protocol buffers by their fields, and of JSON: each is a function of a random generator."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

NUMBERS = (0, 1, -1, 2, 3, 7, 64, 127, 255, 1000, 1 << 20, 1 << 28, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1)
NAMES = (
    "", "x", "y", "x:0", "x:1", "y:0/", "^x", "^", ":", "x:", "x:99999999999", "x:-1", "a b", "loc:@x", "f", "é", "\0",
    "T", "N", "dtype", "value", "shape", "_class", "Const", "Identity", "AddN", "Placeholder", "While", "If", "f" * 300,
    "PartitionedCall", "NoOp", "Switch", "Merge", "Enter", "/cpu:0", "a:99999999999", "/job:lab/task:1", "/job:*",
    "/job:lab/replica:0/task:0/device:CPU:0", "/device:GPU:99999999999999999999",
)  # fmt: skip
ENUMS = (0, 1, 2, 3, 4, 7, 9, 10, 19, 20, 21, 29, 33, 77, 101, 107, 120, 1000)
_WIDTH = {FieldDescriptor.TYPE_INT32: 32, FieldDescriptor.TYPE_SINT32: 32, FieldDescriptor.TYPE_SFIXED32: 32}
_UNSIGNED = {FieldDescriptor.TYPE_UINT32: 32, FieldDescriptor.TYPE_FIXED32: 32, FieldDescriptor.TYPE_UINT64: 64,
             FieldDescriptor.TYPE_FIXED64: 64}  # fmt: skip


def of_bytes(data: bytes, rng: Random) -> bytes:
    """Bits flipped, pieces removed, doubled, moved, or replaced by noise."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, size = rng.randrange(len(out) + 1), rng.choice((1, 1, 2, 4, 8, 32))
        match rng.randrange(6):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 2:
                del out[at : at + size]
            case 3:
                out[at:at] = out[at : at + size]
            case 4:
                out[at : at + size] = rng.randbytes(size)
            case _:
                del out[at:]
    return bytes(out)


def of_message(kind: type[Message], data: bytes, rng: Random) -> bytes:
    """The bytes of a message some of whose fields, at any depth, have changed; now and then bytes of it, too."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return of_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(rng.choice(_inside(message)), rng)
    out = message.SerializeToString(deterministic=True)
    return of_bytes(out, rng) if rng.random() < 0.1 else out


def _inside(message: Message, depth: int = 0) -> list[Message]:
    """The message and those in it."""
    found = [message]
    for field, value in message.ListFields() if depth < 12 else ():
        if _is_map(field):
            entry = field.message_type.fields_by_name["value"]
            found += [m for key in sorted(value) for m in _inside(value[key], depth + 1)] if entry.message_type else []
        elif field.message_type is not None:
            found += [m for v in (value if field.is_repeated else [value]) for m in _inside(v, depth + 1)]
    return found


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _change(message: Message, rng: Random) -> None:
    """One field of a message."""
    fields = message.DESCRIPTOR.fields
    present = [field for field, _ in message.ListFields()]
    field = rng.choice(present if present and rng.random() < 0.8 else fields) if fields else None
    if field is None:
        return
    if rng.random() < 0.1:
        message.ClearField(field.name)
    elif _is_map(field):
        _change_map(getattr(message, field.name), field, rng)
    elif field.is_repeated:
        _change_list(getattr(message, field.name), field, rng)
    elif field.message_type is not None:
        value = getattr(message, field.name)
        value.SetInParent()
        _change(value, rng)
    else:
        setattr(message, field.name, _value(field, rng, getattr(message, field.name)))


def _change_map(found: Any, field: FieldDescriptor, rng: Random) -> None:
    key_field, value_field = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    keys = sorted(found)
    key = rng.choice(keys) if keys and rng.random() < 0.7 else _value(key_field, rng, keys[0] if keys else None)
    if keys and rng.random() < 0.2:
        del found[rng.choice(keys)]
    elif value_field.message_type is None:
        found[key] = _value(value_field, rng, found.get(key))
    elif keys and rng.random() < 0.3:
        found[key].CopyFrom(found[rng.choice(keys)])
    else:
        _change(found[key], rng)


def _change_list(found: Any, field: FieldDescriptor, rng: Random) -> None:
    at = rng.randrange(len(found)) if len(found) else 0
    match rng.randrange(4):
        case 0 if len(found):
            del found[at]
        case 1 if len(found):
            found.append(found[at])
        case 2 if len(found) and field.message_type is not None:
            _change(found[at], rng)
        case 3 if len(found) and field.message_type is None:
            found[at] = _value(field, rng, found[at])
        case _ if field.message_type is not None:
            _change(found.add(), rng)
        case _:
            found.append(_value(field, rng, None))


def _value(field: FieldDescriptor, rng: Random, old: Any) -> Any:
    """A value for a field, interesting or near the old one."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            base = old if old and rng.random() < 0.7 else rng.choice(NAMES).encode()
            return of_bytes(base, rng)
        case FieldDescriptor.CPPTYPE_STRING:
            return rng.choice(NAMES) if not old or rng.random() < 0.7 else old + rng.choice((":0", ":1", "/", "x", "é"))
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return rng.choice(ENUMS)
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return rng.choice((0.0, -1.0, 1e38, float("inf"), float("nan")))
    number = rng.choice(NUMBERS) if rng.random() < 0.7 or old is None else old + rng.choice((-1, 1))
    if field.type in _UNSIGNED:
        return number % (1 << _UNSIGNED[field.type])
    half = 1 << (_WIDTH.get(field.type, 64) - 1)
    return (number + half) % (2 * half) - half


WORDS = ("", "x", "K40", "alexnet", "throughput", "images/s", "1e999", "-1", "nan", "64 (recalled)", "é", "a" * 500)


def of_json(data: bytes, rng: Random) -> bytes:
    """A JSON text one or two of whose values have changed; now and then its bytes."""
    if rng.random() < 0.1:
        return of_bytes(data, rng)
    whole = [json.loads(data)]
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(_places(whole))
        match rng.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder[key], int | float):
                holder[key] = rng.choice((*NUMBERS, -holder[key], holder[key] * 10**6, 1e-300, 10**400))
            case _:
                anything = (None, True, [], {}, [holder[key]], {"x": holder[key]}, *WORDS, *NUMBERS, 0.5)
                holder[key] = rng.choice(anything)
    return json.dumps(whole[0]).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """All (list or dict, index or key) in a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]
