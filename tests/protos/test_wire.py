"""dtflab's messages are TensorFlow's on the wire: same numbers, types and names, nothing lost on the way."""

from __future__ import annotations

import importlib
import pathlib
import random
from collections.abc import Iterator

import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

pytest.importorskip("tensorflow")
from tests.protos import tf_messages

pytestmark = pytest.mark.oracle

PROTOS = pathlib.Path(__file__).resolve().parents[2] / "protos"
OWN = {"link"}  # which TensorFlow does not have
MODULES = [
    importlib.import_module(f"dtflab.protos.{path.stem}_pb2")
    for path in sorted(PROTOS.glob("*.proto"))
    if path.stem not in OWN
]
DEEPEST = 4  # random messages stop nesting here


def messages(parent: object) -> Iterator[Descriptor]:
    """Every message type declared in a module or a message, without the entries of maps."""
    nested = getattr(parent, "message_types_by_name", None) or getattr(parent, "nested_types_by_name", {})
    for message in nested.values():
        if not message.GetOptions().map_entry:
            yield message
            yield from messages(message)


def enums() -> Iterator[EnumDescriptor]:
    for module in MODULES:
        yield from module.DESCRIPTOR.enum_types_by_name.values()
        for message in messages(module.DESCRIPTOR):
            yield from message.enum_types


def theirs(name: str) -> str:
    return "tensorflow" + name.removeprefix("dtflab")


MESSAGES = {m.full_name: m for module in MODULES for m in messages(module.DESCRIPTOR)}
ENUMS = {e.full_name: e for e in enums()}


def fields(descriptor: Descriptor) -> dict[str, object]:
    """The wire's and the Python API's view of each field of a message."""
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    return {
        f.name: {
            "number": f.number,
            "type": f.type,
            "label": f.label,
            "type_name": f.type_name.replace(".tensorflow.", ".dtflab."),
            "oneof": proto.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else None,
            "packed": descriptor.fields_by_name[f.name].is_packed,
            "deprecated": f.options.deprecated,
        }
        for f in proto.field
    }


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 100
    assert {"dtflab.GraphDef", "dtflab.RunGraphRequest", "dtflab.ConfigProto.Experimental"} <= MESSAGES.keys()


@pytest.mark.parametrize("name", MESSAGES)
def test_fields_are_tensorflows(name: str) -> None:
    ours, real = fields(MESSAGES[name]), fields(tf_messages.message_class(theirs(name)).DESCRIPTOR)
    assert ours == {field: real.get(field) for field in ours}


@pytest.mark.parametrize("name", ENUMS)
def test_enum_values_are_tensorflows(name: str) -> None:
    ours, real = {v.name: v.number for v in ENUMS[name].values}, tf_messages.enum_values(theirs(name))
    assert ours == {value: real.get(value) for value in ours}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_tensorflow_sends_comes_back_whole(name: str) -> None:
    ours = message_factory.GetMessageClass(MESSAGES[name])
    real = tf_messages.message_class(theirs(name))
    for seed in range(25):
        sent = filled(real, random.Random(f"{name} {seed}"))
        passed_on = ours.FromString(sent.SerializeToString()).SerializeToString()
        assert real.FromString(passed_on) == sent


@pytest.mark.parametrize("name", MESSAGES)
def test_what_dtflab_sends_is_byte_for_byte_what_tensorflow_would_send(name: str) -> None:
    ours = message_factory.GetMessageClass(MESSAGES[name])
    real = tf_messages.message_class(theirs(name))
    for seed in range(25):
        sent = filled(ours, random.Random(f"{name} {seed}"))
        wire = sent.SerializeToString(deterministic=True)
        understood = real.FromString(wire)
        assert understood.SerializeToString(deterministic=True) == wire
        assert str(understood) == str(sent)


def filled(kind: type[Message], rng: random.Random, depth: int = 0) -> Message:
    """A message with about half of its fields set, fewer the deeper it lies."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        deep = depth >= DEEPEST and field.message_type is not None
        if not deep and rng.random() < 0.6 / (1 + depth / 2):
            set_field(message, field, rng, depth)
    return message


def set_field(message: Message, field: FieldDescriptor, rng: random.Random, depth: int) -> None:
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        for _ in range(rng.randint(1, 2)):
            if value.message_type is None:
                target[scalar(key, rng)] = scalar(value, rng)
            else:
                target[scalar(key, rng)].CopyFrom(one(value, rng, depth))
    elif field.is_repeated:
        values = [one(field, rng, depth) for _ in range(rng.randint(1, 3))]
        target.extend(values)
    elif field.message_type is not None:
        target.SetInParent()
        target.CopyFrom(one(field, rng, depth))
    else:
        setattr(message, field.name, scalar(field, rng))


def one(field: FieldDescriptor, rng: random.Random, depth: int) -> object:
    if field.message_type is None:
        return scalar(field, rng)
    return filled(message_factory.GetMessageClass(field.message_type), rng, depth + 1)


def scalar(field: FieldDescriptor, rng: random.Random) -> object:
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    bits = {
        FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
        FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
        FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    }
    if field.cpp_type in bits:
        low, high = bits[field.cpp_type]
        return rng.choice([low, high, rng.randint(max(low, -200), 200)])
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice([0.5, -2.25, 1024.0, float("inf")])
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    text = "".join(rng.choice("ab/:_é€") for _ in range(rng.randint(0, 6)))
    return text if field.type == FieldDescriptor.TYPE_STRING else text.encode("utf-16")
