from __future__ import annotations

import pytest

from dtflab.base import errors as ours

theirs = pytest.importorskip("tensorflow.python.framework.errors_impl")

CLASSES = sorted(n for n, v in vars(theirs).items() if isinstance(v, type) and issubclass(v, Exception))
CODES = sorted(n for n, v in vars(theirs).items() if n.isupper() and isinstance(v, int))


def test_no_class_is_missing():
    assert len(CLASSES) >= 19
    assert len(CODES) == 17


@pytest.mark.parametrize("name", CLASSES)
def test_class(name):
    our, their = getattr(ours, name), getattr(theirs, name)
    assert [c.__name__ for c in our.__mro__] == [c.__name__ for c in their.__mro__]
    assert our.__doc__ and our.__doc__ != their.__doc__


@pytest.mark.parametrize("name", CODES)
def test_code(name):
    assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize("code", range(1, 17))
def test_exception(code):
    our, their = (lib.exception_type_from_error_code(code) for lib in (ours, theirs))
    assert our.__name__ == their.__name__
    a, b = (cls(None, None, "message") for cls in (our, their))
    for attribute in ("error_code", "message", "node_def", "op", "args", "experimental_payloads"):
        assert getattr(a, attribute) == getattr(b, attribute), attribute
    assert str(a) == str(b)
    assert ours.error_code_from_exception_type(our) == theirs.error_code_from_exception_type(their)


@pytest.mark.parametrize("code", [0, 17, 99, -1])
def test_no_class_for(code):
    for lib in (ours, theirs):
        with pytest.raises(KeyError):
            lib.exception_type_from_error_code(code)
