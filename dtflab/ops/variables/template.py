"""make_template: a function whose variables are made by its first call and shared by the others.

Stands for `python/ops/template.py`. Left out: eager mode, functions of TensorFlow 2, checkpoint tracking.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from dtflab.base import tf_logging
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import get_collection, get_collection_ref
from dtflab.ops.variables import variable_scope


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """`func_` with `kwargs`, in a variable scope of its own called `name_`, made unique, or `unique_name_`.

    The first call makes variables, later ones find them. The scope is the one where the first call is, or where
    this is with `create_scope_now_`.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """What `make_template` gives: call it.

    `variable_scope` is the scope of the variables, None before the first call.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Any = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self.func, self.name, self._unique_name, self._custom_getter = func, name, unique_name, custom_getter
        self._where = traceback.format_stack()[:-2]
        self.variable_scope: Any = None
        self._variables_created = False
        if create_scope_now:
            self.variable_scope = variable_scope.new_scope(unique_name, name, custom_getter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.variable_scope is None:
            opened = variable_scope.variable_scope(self._unique_name, self.name, custom_getter=self._custom_getter)
        else:
            opened = variable_scope.variable_scope(self.variable_scope, reuse=self._variables_created)
        with opened as scope:
            self.variable_scope = self.variable_scope or scope
            try:
                return self._again(args, kwargs) if self._variables_created else self._first(args, kwargs)
            except Exception as error:
                text = error.args[0] if error.args else ""
                error.args = (f"{text}\n\noriginally defined at:\n{''.join(self._where)}", *error.args[1:])
                raise

    def _first(self, args: Any, kwargs: Any) -> Any:
        result = self.func(*args, **kwargs)
        self._variables_created = True
        return result

    def _again(self, args: Any, kwargs: Any) -> Any:
        trainable, all_ = (get_collection_ref(key) for key in _COLLECTIONS)
        before = len(trainable), len(all_)
        result = self.func(*args, **kwargs)
        reason = "created when calling a template after the first time, perhaps you used tf.Variable when you meant "
        if len(trainable) != before[0]:
            raise ValueError(f"Trainable variable {reason}tf.get_variable: {trainable[before[0] :]}")
        if len(all_) != before[1]:
            tf_logging.info("New variables %stf.get_variable: %s", reason, all_[before[1] :])
        return result

    @property
    def var_scope(self) -> Any:
        """Same as `.variable_scope`."""
        return self.variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """What the names of the variables begin with."""
        if self.variable_scope is None:
            return None
        name: str = self.variable_scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    def _collected(self, key: str) -> list[Any]:
        return get_collection(key, self.variable_scope_name) if self._variables_created else []

    @property
    def variables(self) -> list[Any]:
        """The global and the local variables."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Any]:
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        trainable = self.trainable_variables
        return [v for v in self.global_variables if not any(v is t for t in trainable)]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables


_COLLECTIONS = GraphKeys.TRAINABLE_VARIABLES, GraphKeys.GLOBAL_VARIABLES
