"""Layers: what of a model travels, and when: from one row of a table of models.

Left out: everything else that a Profile knows.

Rule: a row's numbers are kept. What it does not say is taken from the row that is most like it, and likeness is nothing
but bytes and multiply-adds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import NamedTuple

from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.predictions.points import PredictionError, Row

LARGEST_PART = 0.75  # of a model's bytes, at most, in one variable: fc6 of VGG-16 is 0.74 of it
TIMES = 25  # words in a sentence, each way: assumed, the mean of WMT English–German


class Layer(NamedTuple):
    """`nbytes` that each worker pulls and pushes of its variables; `depth`: at what part of the computing it begins."""

    nbytes: float
    depth: float


def profile_of(row: Row, rows: Iterable[Row], batch: int, gmac: float | None = None) -> Profile:
    """The Profile of a row; `rows` are all models, `gmac` if it is known but not from the row.

    Raises PredictionError if that is not enough.
    """
    try:
        if row.number("vocab"):
            return _of_words(row, batch)
        largest_MB, gmac = row.number("largest_variable_MB"), row.number("gmac_per_image") or gmac
        return _of_images(row.what, total_bytes(row), largest_MB, gmac, rows).with_batch(batch)
    except PredictionError:  # names the row already
        raise
    except ValueError as error:
        raise PredictionError(f"{row.what}: {error}") from None


def of_bytes(nbytes: float, rows: Iterable[Row]) -> Profile:
    """A network of images of which only the bytes are known."""
    return _of_images("what is given", nbytes, None, None, rows)


@functools.lru_cache(256)
def layers_of(profile: Profile, dense: bool, part: float) -> tuple[Layer, ...]:
    """The network's layers in forward order; `dense` gradients of embeddings are whole tables, else a batch's rows.

    `part` is how long a number is that travels, relative to float32.
    """
    work = [sum(kernel.flops * kernel.count for kernel in layer.forward) for layer in profile.layers]
    total, done, layers = sum(work) or 1, 0.0, []
    for layer, here in zip(profile.layers, work, strict=True):
        nbytes = layer.variable_bytes if dense else sum(variable.gradient_bytes for variable in layer.variables)
        layers.append(Layer(part * nbytes, done / total))
        done += here
    return tuple(layers)


def total_bytes(row: Row) -> float:
    """Bytes of all variables in float32."""
    params = row.positive("params")
    return params * 4 if params else row.need("fp32_MB", "params") * 1e6


def _of_words(row: Row, batch: int) -> Profile:
    from dtflab.sim.models.seq2seq import ATTENTIONS  # loads all networks

    kind = next((kind for kind in ATTENTIONS if kind and kind in row.text("attention")), None)
    count = {"layers": row.layers, "units": int(row.need("units")), "vocab": int(row.need("vocab"))}
    params = None if row.text("params", "fp32_MB") == "" else total_bytes(row) / 4  # else what its layers add up to
    return Profile.from_table(params=params, **count, attention=kind, steps=TIMES, batch=batch, name=row.what)


def _of_images(name: str, nbytes: float, largest_MB: float | None, gmac: float | None, rows: Iterable[Row]) -> Profile:
    if largest_MB is None or gmac is None:
        like = _most_like(nbytes, gmac, rows)
        gmac = gmac or like.need("gmac_per_image") * nbytes / total_bytes(like)
        largest_MB = largest_MB or min(like.need("largest_variable_MB"), LARGEST_PART * nbytes / 1e6)
    return Profile.from_table(nbytes / 4, min(largest_MB, nbytes / 1e6), gmac, name=name)


def _most_like(nbytes: float, gmac: float | None, rows: Iterable[Row]) -> Row:
    """The complete row that is nearest in bytes and, if known, in multiply-adds."""

    def distance(row: Row) -> float:
        apart = abs(math.log(total_bytes(row) / nbytes))
        return apart + (abs(math.log(row.need("gmac_per_image") / gmac)) if gmac else 0.0)

    def complete(row: Row) -> bool:
        try:
            return all((total_bytes(row), row.positive("largest_variable_MB"), row.positive("gmac_per_image")))
        except PredictionError:  # an odd row must not make others' points be skipped
            return False

    known = list(filter(complete, rows))
    if not known:
        raise PredictionError("no model of the file says its 'largest_variable_MB', so a hot server can't be found")
    return min(known, key=distance)
