"""Scaffold: the operations that every training program needs next to its model.

Stands for `Scaffold` of `python/training/monitored_session.py`. Left out: savers of objects (`tf.train.Checkpoint`),
initializers of TensorFlow 2's SavedModels.

Rule: for each piece, what the program passed counts; else what is in the piece's collection; else it is made and
entered there, so that a second Scaffold of the same graph finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base import tf_logging as logging
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, get_collection, get_default_graph
from dtflab.ops import registered_resources as resources
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.summaries.functions import merge_all
from dtflab.ops.tables.functions import tables_initializer
from dtflab.ops.variables import functions as variables
from dtflab.train.checkpoints.saver import get_saver_or_default

_PIECES = "init_op init_feed_dict ready_op ready_for_local_init_op local_init_op local_init_feed_dict summary_op saver"


class Scaffold:
    """The pieces around a model: how it is initialized, known to be ready, summarized and saved.

    Args:
      init_op: initializes the model; all global variables if None.
      init_feed_dict: its feeds.
      init_fn: `init_fn(scaffold, session)`, called after `init_op`; as an attribute it takes the session only.
      ready_op: a vector of strings, the names of what is not initialized.
      ready_for_local_init_op: the same for global variables, asked before `local_init_op`.
      local_init_op: initializes the resources of each session; all local variables and tables if None.
      summary_op: a string, the summaries merged.
      saver: a `tf.train.Saver`.
      copy_from_scaffold: where the pieces come from that are not given.
      local_init_feed_dict: feeds of `local_init_op`.

    Raises:
      TypeError: `copy_from_scaffold` is not a Scaffold.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        self.init_op = init_op
        self.init_feed_dict = init_feed_dict
        self.ready_op = ready_op
        self.ready_for_local_init_op = ready_for_local_init_op
        self.local_init_op = local_init_op
        self.local_init_feed_dict = local_init_feed_dict
        self.summary_op = summary_op
        self.saver = saver
        self._user_init_fn = init_fn
        if copy_from_scaffold is not None:
            self._copy(copy_from_scaffold)
        user_fn = self._user_init_fn
        self.init_fn = (lambda session: user_fn(self, session)) if user_fn else None

    def _copy(self, other: Scaffold) -> None:
        if not isinstance(other, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")
        for piece in _PIECES.split():
            if getattr(self, piece) is None:
                setattr(self, piece, getattr(other, piece))
        self._user_init_fn = self._user_init_fn or other._user_init_fn

    def finalize(self) -> Scaffold:
        """Make the pieces that are missing; after this, nothing can be added to the graph."""
        for piece, key, make in (
            ("init_op", GraphKeys.INIT_OP, _default_init_op),
            ("ready_op", GraphKeys.READY_OP, _default_ready_op),
            ("ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP, _default_ready_for_local_init_op),
            ("local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op),
            ("summary_op", GraphKeys.SUMMARY_OP, merge_all),
        ):
            if getattr(self, piece) is None:
                setattr(self, piece, Scaffold.get_or_default(piece, key, make))
        if self.saver is None:
            self.saver = get_saver_or_default()
        self.saver.build()
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one element of a collection; made and entered if there is none. RuntimeError if there are more."""
        found = get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which one to use by '
                f"passing it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """An operation that initializes local variables, tables, and the resources of one session."""
        return control.group(
            variables.local_variables_initializer(),
            tables_initializer(),
            resources.initialize_resources(resources.local_resources()),
        )


def _default_init_op() -> Operation:
    return control.group(
        variables.global_variables_initializer(), resources.initialize_resources(resources.shared_resources())
    )


def _default_ready_op() -> Tensor:
    missing = [variables.report_uninitialized_variables(), resources.report_uninitialized_resources()]
    return arrays.concat(missing, 0)


def _default_ready_for_local_init_op() -> Tensor:
    missing = variables.report_uninitialized_variables(variables.global_variables())
    return arrays.concat([missing, resources.report_uninitialized_resources(resources.shared_resources())], 0)
