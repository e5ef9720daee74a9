"""tf.initializers: the initializers of variables, and the operations that run them."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.tables.functions import tables_initializer
from dtflab.ops.variables.functions import (
    global_variables_initializer as global_variables,
    local_variables_initializer as local_variables,
    variables_initializer as variables,
)
from dtflab.ops.variables.initializers import (
    Constant as constant,
    GlorotNormal as glorot_normal,
    GlorotUniform as glorot_uniform,
    Identity as identity,
    Ones as ones,
    Orthogonal as orthogonal,
    RandomNormal as random_normal,
    RandomUniform as random_uniform,
    TruncatedNormal as truncated_normal,
    UniformUnitScaling as uniform_unit_scaling,
    VarianceScaling as variance_scaling,
    Zeros as zeros,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)


def __getattr__(name: str) -> Any:
    raise _missing("tf.initializers", name, globals())
