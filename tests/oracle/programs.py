"""The programs of a test module: functions of `tf`, which TensorFlow and dtflab run alike."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle.graph_defs import both


class Programs(list[Callable[..., Any]]):
    """`program = Programs()` begins the list, `@program` adds a function to it, `@program.each()` tests each of them.

    A test may stand above the programs: pytest asks for the list when the whole module is there.
    """

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.append(function)
        return function

    def both_kinds(self, function: Callable[[Any, bool], Any]) -> Callable[[Any, bool], Any]:
        """Adds two programs, `function(tf, use_resource)` with reference variables and with resource variables."""
        for use_resource in (False, True):

            def run(tf: Any, use_resource: bool = use_resource) -> Any:
                return function(tf, use_resource)

            functools.update_wrapper(run, function)  # a record depends on what is wrapped
            run.__name__ = f"{function.__name__}_{'resource' if use_resource else 'reference'}"
            self.append(run)
        return function

    def same_answers(self) -> Callable[[Any], None]:
        """The test that TensorFlow and dtflab give the same answers: `test_same_answer = program.same_answers()`."""

        @self.each()
        def test_same_answer(run: Callable[[Any], Any]) -> None:
            theirs, ours = both(run)
            assert ours == theirs

        return test_same_answer

    def each(self, argument: str = "run") -> pytest.MarkDecorator:
        return pytest.mark.parametrize(argument, self, ids=lambda function: function.__name__)
