"""warm_start: variables of a new model begin with the values that an older one had learnt.

Stands for `python/training/warm_starting_util.py`. Left out: vocabularies that changed (VocabInfo): an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtflab.base import errors, tf_logging as logging
from dtflab.base.grouping import grouped
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import get_collection
from dtflab.ops.training.variable_saveables import op_list_to_dict
from dtflab.ops.variables.variable import Variable
from dtflab.train.checkpoints.checkpoint_utils import init_from_checkpoint


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, Any] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Let the initializers of variables read a checkpoint.

    Args:
      ckpt_to_initialize_from: a directory with checkpoints, or the prefix of one.
      vars_to_warm_start: what names of trainable variables match from the start; a list of such, of all global
        variables; or a list of variables. None: none.
      var_name_to_vocab_info: not supported.
      var_name_to_prev_var_name: names in the checkpoint of variables that were called otherwise.

    Raises ValueError for names in these dicts that no variable has.
    """
    if var_name_to_vocab_info:
        raise errors.UnimplementedError.of(
            "warm_start with vocabularies is not written here; initialize such embeddings in a step of yours"
        )
    renamed = dict(var_name_to_prev_var_name or {})
    parts = _parts(vars_to_warm_start)
    variables = {name: own[0] if len(own) == 1 else own for name, own in parts.items()}
    pairs = [(renamed.get(name, name), variable) for name, variable in variables.items()]
    init_from_checkpoint(ckpt_to_initialize_from, pairs if vars_to_warm_start else [])
    logging.info("Warm-started %d variables.", len(parts))
    unused = renamed.keys() - parts.keys()
    if unused:
        raise ValueError(
            "You provided the following variables in var_name_to_prev_var_name that were not used: "
            f"{unused}.  Perhaps you misspelled them?  Here is the list of viable variable names: {list(parts)}"
        )


def _parts(chosen: Any) -> dict[str, list[Any]]:
    """Name in checkpoints → the variable, or the parts of it."""
    if chosen is None or isinstance(chosen, str):
        found = get_collection(GraphKeys.TRAINABLE_VARIABLES, chosen)
    elif not isinstance(chosen, list):
        raise ValueError(f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(chosen)}")
    elif all(isinstance(name, str) for name in chosen):
        found = [variable for name in chosen for variable in get_collection(GraphKeys.GLOBAL_VARIABLES, name)]
    elif all(isinstance(variable, Variable) for variable in chosen):
        found = chosen
    else:
        raise ValueError(
            "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  "
            f"Given types are {[type(item) for item in chosen]}"
        )
    return grouped((name, variable) for variable in found for name in op_list_to_dict([variable]))
