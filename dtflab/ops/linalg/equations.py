"""The equations of einsum: labels in, labels out, and the order in which many operands meet.

Stands for `core/util/einsum_op_util.cc` and the parsing in `python/ops/special_math_ops.py`. Knows nothing of tensors.

Rule: inside, an equation's labels are small letters, and each axis that `...` stands for is a capital one, the same in
both operands for axes that broadcast together.
"""

from __future__ import annotations

import collections
import itertools
import math
import re
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.ops.messages import invalid

_DOTS = "0"  # stands for `...` while the text is taken apart


def split(equation: str, count: int) -> tuple[list[str], str]:
    """The labels of the one or two inputs and those of the output; ValueError for any other equation."""
    parts = equation.split("->")
    if len(parts) != 2:
        raise ValueError(f"Expecting exactly one '->' in einsum equation: {equation}")
    inputs, output = parts[0].split(","), parts[1]
    if len(inputs) not in (1, 2):
        raise ValueError(f"Expecting 1 or 2 input subscripts in equation '{equation}' but got: {len(inputs)}")
    if len(inputs) != count:
        raise ValueError(f"Expected {len(inputs)} inputs for equation {equation} but got: {count}")
    for label in output.replace("...", ""):
        if label not in parts[0]:
            text = f"has label '{label}' which is not present in the input subscripts"
            raise ValueError(f"Einsum output subscripts for equation '{equation}' {text}")
    return inputs, output


def named(inputs: Sequence[str], output: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of inputs of these ranks and of the output, one letter per axis."""
    found = list(dict.fromkeys("".join(inputs).replace(".", "")))
    if len(found) > 26:
        raise invalid(f"At most 26 labels can be in one equation, here are {len(found)}: {','.join(inputs)}->{output}")
    letters = dict(zip(found, string.ascii_lowercase))
    dots = ["" if "..." not in s else _capitals(s, rank) for s, rank in zip(inputs, ranks, strict=True)]

    def labels(subscripts: str, capitals: str) -> str:
        before, _, after = subscripts.partition("...")
        return "".join(letters[s] for s in before) + capitals + "".join(letters[s] for s in after)

    return [labels(s, d) for s, d in zip(inputs, dots)], labels(output, max(dots, key=len) if "..." in output else "")


def _capitals(subscripts: str, rank: int) -> str:
    """Letters for the axes of `...`: Z for the last, Y for the one before it."""
    count = rank - len(subscripts.replace("...", ""))
    if count < 0:
        raise invalid(f"Expected input with rank at least {rank - count} for '{subscripts}', but got rank {rank}")
    return string.ascii_uppercase[26 - count :]


def resolved(equation: str, count: int) -> str:
    """The equation with its output spelt out; without one these are the labels that occur once, in order."""
    text = equation.replace(" ", "").replace("...", _DOTS)
    if not re.fullmatch(f"[a-zA-Z{_DOTS},]*(->[a-zA-Z{_DOTS}]*)?", text) or _DOTS in equation:
        raise ValueError(f"Subscripts have incorrect format: {text}")
    left, arrow, output = text.partition("->")
    if len(left.split(",")) != count:
        raise ValueError(f'Got {count} inputs for equation "{equation}", expecting {len(left.split(","))}')
    if not arrow:
        times = collections.Counter(left.replace(",", ""))
        output = "".join(sorted(label for label, n in times.items() if n == 1))
    if len(set(output)) != len(output):
        raise ValueError(f"Output subscripts contain a label appearing more than once: {equation}")
    for label in output:
        if label not in left and label != _DOTS:
            raise ValueError(f"Output subscripts contain the label {label} not present in the input subscripts.")
    return f"{left}->{output}".replace(_DOTS, "...")


def ordered_pairs(equation: str, shapes: Sequence[Any]) -> list[tuple[tuple[int, int], str]]:
    """Steps (two operands to take out of the list, their equation), each result put at the list's end.

    Each step takes the pair whose product is smallest compared with the two, as opt_einsum does, which TensorFlow uses.
    """
    left, _, output = equation.replace("...", _DOTS).partition("->")
    operands = left.split(",")
    sizes = _sizes(equation, operands, shapes)
    numbered = dict(enumerate(operands))  # each result gets the next number
    steps = []
    for number in range(len(operands), 2 * len(operands) - 1):
        pair = _next_pair(numbered, output, sizes)
        order = list(numbered)
        places = sorted(map(order.index, pair), reverse=True)
        taken = [numbered.pop(order[i]) for i in places]
        wanted = "".join([*numbered.values(), output])
        made = "".join(s for s in dict.fromkeys("".join(taken)) if s in wanted) if numbered else output
        numbered[number] = made
        steps.append(((places[0], places[1]), f"{','.join(taken)}->{made}".replace(_DOTS, "...")))
    return steps


def _next_pair(operands: dict[int, str], output: str, sizes: dict[str, int]) -> tuple[int, int]:
    """The numbers of the two operands to multiply next."""

    def places(labels: set[str]) -> int:
        return math.prod(sizes[s] for s in labels)

    def cost(pair: tuple[int, int]) -> tuple[int, int, int]:
        a, b = (set(operands[n]) for n in pair)
        others = {s for n, labels in operands.items() if n not in pair for s in labels}
        return places((a | b) & (others | set(output))) - places(a) - places(b), pair[1], pair[0]

    pairs = list(itertools.combinations(operands, 2))
    equal = [pair for pair in pairs if set(operands[pair[0]]) == set(operands[pair[1]])]
    summed = [pair for pair in pairs if set(operands[pair[0]]) & set(operands[pair[1]]) - set(output)]
    if equal or summed:
        return min(summed, key=cost) if not equal else equal[0]
    small = sorted(operands, key=lambda n: (places(set(operands[n]) & set(output)), n))
    return small[0], small[1]


def _sizes(equation: str, operands: Sequence[str], shapes: Sequence[Any]) -> dict[str, int]:
    """The size of each label, 1 where no shape tells; of `...` the number of places."""
    sizes = dict.fromkeys("".join(operands), 1)
    for i, (labels, shape) in enumerate(zip(operands, shapes)):
        if shape is None:
            continue
        extra = len(shape) - len(labels)
        if extra < -1 or (extra and _DOTS not in labels):
            wanted = f"must be equal to the number of dimensions in shape {shape}"
            raise ValueError(f"Number of named labels in input #{i} of equation {equation} {wanted}")
        at = labels.find(_DOTS)
        if at >= 0:
            between = [d for d in shape[at : at + extra + 1] if d]
            shape = [*shape[:at], int(np.prod(between, dtype=np.int64)), *shape[at + extra + 1 :]]
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(sizes[label], size or 1)
    return sizes
