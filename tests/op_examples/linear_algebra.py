"""Products over labelled axes, decompositions, solvers."""

from __future__ import annotations

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("Einsum")
def einsum(v: Values) -> list[Example]:
    if v.dtype not in EINSUM_TYPES:
        return []
    one = [("ij->ji", (2, 3)), ("ij->", (2, 3)), ("iji->j", (2, 3, 2)), ("i->ii", (3,)), ("...ij->...ji", (2, 1, 2, 3)),
           ("aabbcd->ca", (2, 2, 2, 2, 3, 2)), ("abcd->ac", (2, 2, 2, 2)), ("->", ()), ("i->", (0,))]  # fmt: skip
    two = [("ij,jk->ik", (2, 3), (3, 2)), ("bij,bkj->bik", (2, 2, 3), (2, 2, 3)), ("i,j->ij", (2,), (3,)),
           ("ij,ij->", (2, 3), (2, 3)), ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("ij,k->j", (2, 3), (2,)),
           ("abc,cd->da", (2, 2, 3), (3, 2)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)), ("a,a->aa", (2,), (2,)),
           ("Ab,bA->A", (2, 3), (3, 2)), ("i...,i...->...", (2, 3), (2, 1)), ("ij,jk->ik", (2, 0), (0, 3)),
           ("baab,b->a", (3, 2, 2, 3), (3,))]  # fmt: skip
    found = [v([v.array(*shape)], equation=equation) for equation, shape in one]
    return [*found, *(v([v.array(*a), v.array(*b)], equation=equation) for equation, a, b in two)]


EINSUM_TYPES = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.complex64, dtypes.float16, dtypes.bfloat16,
)  # fmt: skip
