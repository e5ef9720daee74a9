"""tf.case and tf.switch_case: one of several pieces of graph runs.

Stands for `python/ops/control_flow_case.py` and `control_flow_switch_case.py`.

Rule: both are chains of `cond`. TensorFlow makes one `Case` op of functions for `switch_case`, which dtflab, having no
functions, does not.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import tf_logging
from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops.arrays.functions import cast, stack
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.control.cond import cond
from dtflab.ops.math.functions import equal, less_equal
from dtflab.ops.reduce.functions import reduce_sum

Branch = Callable[[], Any]


def case(
    pred_fn_pairs: Any,
    default: Branch | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = "case",
) -> Any:
    """The result of the first function whose predicate is true, else of `default()`.

    `pred_fn_pairs` are pairs of a scalar bool tensor and a function, in a list or dict; see `cond` for what the
    functions return and for `strict`. Without `default` it is an error in the step (InvalidArgumentError) if all are
    false, with `exclusive` if several are true. TypeError for pairs of anything else.
    """
    predicates, actions = _checked_pairs(pred_fn_pairs, exclusive, name)
    with name_scope(name, "case", [*predicates]):
        if default is None:
            *predicates, last_predicate = predicates
            *actions, last_action = actions
            default = functools.partial(_default_action, predicates, last_predicate, last_action)
        chosen = default
        for predicate, action in zip(reversed(predicates), reversed(actions)):
            chosen = functools.partial(cond, predicate, true_fn=action, false_fn=chosen, strict=strict)
        if not exclusive:
            return chosen()
        with control_dependencies([_at_most_true(predicates, 1, "Input error: exclusive=True")]):
            return chosen()


def _default_action(others: Sequence[Tensor], predicate: Tensor, action: Branch) -> Any:
    """The last pair's function as the default: if it is called, its predicate must be true."""
    said = ["Input error: None of conditions evaluated as True:", stack([*others, predicate], name="preds_c")]
    text = f"Implementation error: selected default action #{len(others)} was called, but some of other predicates are"
    with control_dependencies([_at_most_true(others, 0, f"{text} True: "), Assert(predicate, said)]):
        return action()


def _at_most_true(predicates: Sequence[Tensor], limit: int, text: str) -> Operation:
    """An operation that fails if more than `limit` of the predicates are true."""
    values = stack(predicates, name="preds_c")
    count = reduce_sum(cast(values, dtypes.int32), name="num_true_conds")
    condition = less_equal(count, constant(limit, name="n_true_conds"))
    names = ", ".join(p.name for p in predicates)
    said = f"{text}: more than {limit} conditions ({names}) evaluated as True:"
    return Assert(condition, [said, values], summarize=len(predicates))


_UNORDERED = (
    "%s: An unordered dictionary of predicate/fn pairs was provided, but exclusive=False. The order of conditional "
    "tests is deterministic but not guaranteed."
)


def _checked_pairs(pairs: Any, exclusive: bool, name: str | None) -> tuple[Sequence[Tensor], Sequence[Branch]]:
    if not isinstance(pairs, list | tuple | dict):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pairs)}")
    if isinstance(pairs, dict):
        if not isinstance(pairs, collections.OrderedDict):
            if not exclusive:
                tf_logging.warning(_UNORDERED, name)
            pairs = dict(sorted(pairs.items(), key=lambda pair: str(pair[0].name)))
        pairs = list(pairs.items())
    for pair in pairs:
        _check_two("pred_fn_pairs", pair)
        _check_pair(*pair)
    predicates, actions = zip(*pairs)
    return predicates, actions


def _check_two(argument: str, pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"Each entry in '{argument}' must be a 2-tuple. Received {pair}.")


def _check_pair(predicate: Any, action: Any) -> None:
    if not isinstance(predicate, Tensor):
        raise TypeError(f"pred must be a Tensor, got: {predicate}")
    if predicate.dtype != dtypes.bool:
        raise TypeError(f"pred must be Tensor of type bool: {predicate.name}")
    if not callable(action):
        raise TypeError(f"fn for pred {predicate.name} must be callable.")


def switch_case(
    branch_index: Tensor, branch_fns: Any, default: Branch | None = None, name: str | None = "switch_case"
) -> Any:
    """The result of function number `branch_index`, a scalar integer tensor; for any other number that of `default()`.

    `branch_fns` is a list of functions, or number → function as dict or pairs, the numbers being 0, 1, 2, …. Without
    `default` the last one takes its place. TypeError and ValueError for other arguments.
    """
    *branches, last = _checked_branches(branch_index, branch_fns, default)
    with name_scope(name, "case", [branch_index]):
        chosen = last
        for number in reversed(range(len(branches))):
            is_this = equal(branch_index, number)
            chosen = functools.partial(cond, is_this, branches[number], chosen, strict=True)
        return chosen()


def _checked_branches(branch_index: Any, branch_fns: Any, default: Branch | None) -> list[Branch]:
    """The functions in the order of their numbers, the default last."""
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype}")
    if not branch_fns:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if not isinstance(branch_fns, list | tuple | dict):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    pairs = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    if all(map(callable, pairs)):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        _check_two("branch_fns", pair)
        _check_numbered(*pair)
    by_number = dict(pairs)
    if sorted(number for number, _ in pairs) != list(range(len(pairs))):
        found = ",".join(map(str, sorted(number for number, _ in pairs)))
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {{{found}}}"
        )
    return [by_number[number] for number in range(len(pairs))] + ([] if default is None else [default])


def _check_numbered(number: Any, action: Any) -> None:
    if not isinstance(number, int):
        raise TypeError(f"key must be a Python `int`, got {type(number)}")
    if not callable(action):
        raise TypeError(f"fn for key {number} must be callable.")
