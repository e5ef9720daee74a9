"""Variables, of both families: the first input is one."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, Var, examples


@examples("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def assign(v: Values) -> list[Example]:
    return [v(Var(v.array(2, 3)), v.array(2, 3)), v(Var(v.array()), v.array())]


@examples("ReadVariableOp", "VariableShape", "VarIsInitializedOp", "IsVariableInitialized", "RefIdentity")
def about_variable(v: Values) -> list[Example]:
    return [v(Var(v.array(2, 3)), **({"dtype": v.dtype} if v.op == "ReadVariableOp" else {}))]


@examples(
    "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax", "ScatterUpdate",
    "ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul", "ResourceScatterDiv", "ResourceScatterMin",
    "ResourceScatterMax", "ResourceScatterUpdate",
)  # fmt: skip
def scatter(v: Values) -> list[Example]:
    def rows(*where):
        return np.array(where, np.int32)

    found = [
        v(Var(v.array(4, 2)), rows(3, 0), v.positive(2, 2)),
        v(Var(v.array(4)), np.array([1, 2], np.int64), v.positive(2)),
    ]
    if not v.op.endswith("Update"):  # which of two updates of a row wins is not defined
        found.append(v(Var(v.array(4, 2)), rows(3, 0, 3), v.positive(3, 2)))
    return [*found, v(Var(v.array(4, 2)), rows(1), v.positive())]


@examples("ResourceGather")
def resource_gather(v: Values) -> list[Example]:
    return [v(Var(v.array(4, 2)), v.index(4, 3, dtype=t), dtype=v.dtype) for t in (np.int32, np.int64)]


@examples("CountUpTo")
def count_up_to(v: Values) -> list[Example]:
    return [v(Var(np.array(3, v.dtype.as_numpy_dtype)), limit=5)]


@examples("ResourceCountUpTo")
def resource_count_up_to(v: Values) -> list[Example]:
    return [v(Var(np.array(3, v.dtype.as_numpy_dtype)), limit=5, T=v.dtype)]
