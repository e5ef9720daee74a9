"""Ops with functions in their attributes, and the lists and optionals that they hand on, mean something in a graph."""

from __future__ import annotations

_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase", "While",
          "StatelessWhile", "ToBool", "FakeParam")  # fmt: skip
_LISTS = ("EmptyTensorList", *(f"TensorList{use}" for use in (
    "Reserve", "FromTensor", "PushBack", "PopBack", "SetItem", "Resize", "ConcatLists", "ScatterV2",
    "ScatterIntoExistingList", "Length", "ElementShape", "GetItem", "Stack", "Gather", "ConcatV2", "Split",
)))  # fmt: skip
_OPTIONALS = ("OptionalFromValue", "OptionalNone", "OptionalHasValue", "OptionalGetValue")

IN_PROGRAMS = {
    **dict.fromkeys(("PyFunc", "PyFuncStateless"), "tests/ops/oracle/test_script.py"),
    **dict.fromkeys(_CALLS, "tests/graph/oracle/test_functions.py"),
    **dict.fromkeys((*_LISTS, *_OPTIONALS), "tests/ops/oracle/test_tensor_lists.py"),
}
