from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from dtflab.base import errors


def test_a_class_knows_its_code():
    error = errors.NotFoundError(None, None, "no such file")
    assert (error.error_code, error.message, str(error)) == (5, "no such file", "no such file")
    assert isinstance(error, errors.OpError)
    assert repr(error) == "NotFoundError('no such file')"


@pytest.mark.parametrize("code", range(1, 17))
def test_code_to_class_and_back(code):
    cls = errors.exception_type_from_error_code(code)
    assert errors.error_code_from_exception_type(cls) == code
    assert type(errors.from_code(code, "text")) is cls
    assert cls.__name__ in errors.__doc__  # the tree in the docstring is complete


def test_codes_from_elsewhere():
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(errors.OK)
    assert type(errors.from_code(99, "text")) is errors.UnknownError
    assert errors.error_code_from_exception_type(ValueError) == errors.UNKNOWN
    assert errors.OpError(None, None, "text", 9).error_code == 9


def test_a_subclass_keeps_the_code():
    class MyError(errors.AbortedError):
        pass

    assert MyError(None, None, "x").error_code == errors.ABORTED
    assert errors.exception_type_from_error_code(errors.ABORTED) is errors.AbortedError


def test_text_says_where_it_ran_and_where_it_was_made():
    here = test_text_says_where_it_ran_and_where_it_was_made.__code__
    op = SimpleNamespace(name="layer/w", line=(here, here.co_firstlineno))
    error = errors.InternalError(None, op, b"broken")
    error.device = "/job:ps/replica:0/task:0/device:CPU:0"
    error.task = "/job:ps/replica:0/task:0"
    first, device, *_, stack, line, source = str(error).splitlines()
    assert first == "broken"
    assert device.strip() == "On device /job:ps/replica:0/task:0/device:CPU:0"
    assert stack == "Original stack trace for 'layer/w':"
    assert line.strip().startswith(f'File "{__file__}", line {here.co_firstlineno}, in test_text')
    assert source.strip() == "def test_text_says_where_it_ran_and_where_it_was_made():"
    assert error.message == "broken"


def test_the_task_is_said_once():
    error = errors.UnavailableError(None, None, "worker 1 is down")
    error.task = "/job:worker/replica:0/task:1"
    assert str(error) == "worker 1 is down\n\t In task /job:worker/replica:0/task:1"
    error.message = "lost /job:worker/replica:0/task:1"
    assert str(error) == "lost /job:worker/replica:0/task:1"


def test_a_copy_leaves_the_graph_behind():
    error = errors.DataLossError(None, SimpleNamespace(name="read", line=None), "cut off")
    error.device = "/device:CPU:0"
    twin = copy.copy(error)
    assert (type(twin), twin.message, twin.device, twin.op) == (
        type(error),
        "cut off",
        "/device:CPU:0",
        None,
    )
    assert copy.copy(errors.OpError(None, None, "m", 7)).error_code == 7
