"""FunctionAttr: what an attribute of type `func` holds.

Stands for NameAttrList of `attr_value.proto`.

Rule: the attribute itself knows the library that its function is in. So nodes can be pruned, placed, cut and sent to
other tasks, and no stage in between carries functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtflab.base import errors

if TYPE_CHECKING:
    from dtflab.graph.function import Function, Library


class FunctionAttr:
    """A function by name, with values for its attributes."""

    __slots__ = ("attrs", "library", "name")

    def __init__(self, name: str, attrs: dict[str, Any] | None = None, library: Library | None = None) -> None:
        self.name = name
        self.attrs = attrs or {}
        self.library = library

    @property
    def function(self) -> Function:
        """The function; NotFoundError if the graph that this was read from does not define it."""
        if self.library is None or self.name not in self.library:
            raise errors.NotFoundError.of(
                f"Function {self.name} is not defined: the library of the GraphDef does not have it."
            )
        return self.library.function(self.name, self.attrs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionAttr) and (self.name, self.attrs) == (other.name, other.attrs)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<function {self.name}{self.attrs or ''}>"


def bound(value: Any, library: Library) -> Any:
    """The value of an attribute with the functions in it looked up in `library`."""
    if isinstance(value, FunctionAttr):
        attrs = {name: bound(inner, library) for name, inner in value.attrs.items()}
        return FunctionAttr(value.name, attrs, library)
    if isinstance(value, list) and value and isinstance(value[0], FunctionAttr):
        return [bound(item, library) for item in value]
    return value


def functions_in(value: Any) -> list[FunctionAttr]:
    """The functions that the value of an attribute names, those in their own attributes included."""
    if isinstance(value, FunctionAttr):
        return [value, *(inner for attr in value.attrs.values() for inner in functions_in(attr))]
    if isinstance(value, list) and value and isinstance(value[0], FunctionAttr):
        return [inner for item in value for inner in functions_in(item)]
    return []
