"""A Profile of a few published numbers, for networks of which no more is known.

Left out: activations. What a layer hands on and keeps is not in such a table, so cuts through these networks can't be
priced, and their memory is that of variables and gradients.

Rules. Sizes and sums are those of the table; how they lie along the network is assumed, and said here. A network of
images: sizes of layers grow by a constant factor from the first to the last, which has the largest variable; each layer
is a matrix and two vectors, and has as much to compute, but one with more than an eighth of all parameters is dense and
computes one multiply-add for each; and there are four layers for each time that the largest variable fits into the
whole, at least eight. (After a quarter of the way back the gradients of 0.65 of all parameters are there then; in the
networks of `models` that have several large layers of 0.46 to 0.72.) A network of words is `models.seq2seq` in closed
form. There is no optimizer: layers have no updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dtflab.sim.engine.layer_costs import Kernel, LayerCost, VariableCost
from dtflab.sim.models.seq2seq import ATTENTIONS

FLOAT = 4  # bytes
LAYERS_PER_LARGEST, FEWEST_LAYERS = 4, 8
MOST_LAYERS = 10**4  # more are a typing mistake
DENSE_SHARE = 1 / 8


def layers_of_table(
    params: float | None, largest_variable_MB: float | None, gmac_per_image: float | None, layers: int | None,
    units: int | None, vocab: int | None, attention: str | None, steps: int, batch: int, name: str,
) -> list[LayerCost]:  # fmt: skip
    """See Profile.from_table."""
    if layers and units and vocab:
        found = list(_words(batch, layers, units, vocab, attention, steps))
        found = _fitted(found, params) if params else found
    elif params and largest_variable_MB and gmac_per_image:
        largest = largest_variable_MB * 1e6 / FLOAT
        if not largest <= params * (1 + 1e-9):
            sizes = f"{largest:,.0f} numbers, is more than all {params:,.0f}"
            raise ValueError(f"Model '{name}': its largest variable, {sizes}.")
        found = list(_images(batch, int(params), min(largest, params), gmac_per_image * 1e9))
    else:
        raise ValueError(
            f"Model '{name}': params, largest_variable_MB and gmac_per_image make a network of images, layers, units "
            "and vocab one of words; neither is complete."
        )
    return found


# -- images -----------------------------------------------------------------------------------------------------------


def _images(batch: int, params: int, largest: float, macs: float) -> Iterator[LayerCost]:
    """Layers whose sizes grow to the `largest`, and whose multiply-adds are `macs` for an image."""
    sizes = _sizes(params, largest)
    dense = [size > DENSE_SHARE * params for size in sizes]
    rest = max(macs - sum(size for size, is_dense in zip(sizes, dense, strict=True) if is_dense), 0.0)
    each = rest / max(dense.count(False), 1)
    for index, (size, is_dense) in enumerate(zip(sizes, dense, strict=True)):
        vector = round((size / 2) ** 0.5)
        lengths = {"kernel": size - 2 * vector, "scale": vector, "offset": vector}
        variables = [VariableCost(f"layer_{index}/{name}", FLOAT * length) for name, length in lengths.items()]
        macs_here = size if is_dense else each
        op, flops = "MatMul" if is_dense else "Conv2D", round(2 * batch * macs_here)
        yield _layer(f"layer_{index}", Kernel(op, "float32", flops, FLOAT * size, 0, FLOAT * size), variables)


def _sizes(params: int, largest: float) -> list[int]:
    """Whole numbers that grow by one factor up to about `largest`, and whose sum is `params`."""
    count = max(round(LAYERS_PER_LARGEST * params / largest), FEWEST_LAYERS)
    if count > MOST_LAYERS:
        raise ValueError(
            f"{params:,} parameters with at most {largest:,.0f} in a variable would need {count:,} layers; at most "
            f"{MOST_LAYERS} are supported."
        )
    low, high = 0.0, 1.0
    for _ in range(60):  # by halving: 1 + r + r² + … = params / largest
        ratio = (low + high) / 2
        low, high = (ratio, high) if sum(ratio**i for i in range(count)) < params / largest else (low, ratio)
    sizes = [max(round(largest * ratio**i), 8) for i in reversed(range(count))]
    if params <= sum(sizes[:-1]):
        raise ValueError(f"{params:,} parameters in {count} layers do not describe a network.")
    return [*sizes[:-1], params - sum(sizes[:-1])]


# -- words ------------------------------------------------------------------------------------------------------------


def _words(batch: int, layers: int, units: int, vocab: int, attention: str | None, steps: int) -> Iterator[LayerCost]:
    """The layers of `models.seq2seq`, in its order: an embedding and LSTMs each way, then the projection."""
    if attention not in ATTENTIONS:
        raise ValueError(f"attention must be one of {ATTENTIONS}, not {attention!r}.")
    plain = [2] * layers  # how wide the input and the state of a layer are, in units
    asking = {None: plain, "standard": [3, *plain[1:]], "gnmt": [3] * layers}[attention]
    sentence = FLOAT * batch * steps * units
    for side, widths in (("encoder", plain), ("decoder", asking)):
        yield _embedding(side, vocab, units, sentence)
        for index, width in enumerate(widths):
            yield _dense(f"{side}/cell_{index}", batch, steps, width * units, 4 * units, units, bias=True)
        if side == "encoder" and attention:
            yield _dense("decoder/memory_layer", batch * steps, 1, units, units, units)
    if attention == "standard":
        yield _dense("decoder/attention_layer", batch, steps, 2 * units, units, units)
    yield _dense("decoder/projection", batch * steps, 1, units, vocab, 0)


def _embedding(side: str, vocab: int, units: int, rows_bytes: int) -> LayerCost:
    """A table of which words read their rows; the gradient is those rows, and nothing is computed."""
    table = VariableCost(f"{side}/embedding", FLOAT * vocab * units, rows_bytes=rows_bytes)
    return LayerCost(side, (Kernel("Gather", "float32", 0, 2 * rows_bytes),), (), (), (table,), rows_bytes)


def _dense(name: str, rows: int, runs: int, inputs: int, outputs: int, hands_on: int, bias: bool = False) -> LayerCost:
    """`runs` products of [rows, inputs] with a matrix, and rows of `hands_on` numbers from each for the next layer."""
    matrix = FLOAT * inputs * outputs
    variables = [VariableCost(f"{name}/kernel", matrix)]
    variables += [VariableCost(f"{name}/bias", FLOAT * outputs)] if bias else []
    moved = matrix + FLOAT * rows * (inputs + outputs)
    forward = Kernel("MatMul", "float32", 2 * rows * inputs * outputs, moved, 0, matrix, runs)
    return _layer(name, forward, variables, FLOAT * rows * runs * hands_on)


def _fitted(layers: Sequence[LayerCost], params: float) -> list[LayerCost]:
    """The same layers with all variables larger or smaller by one factor, so that their sum is `params`."""
    factor = FLOAT * params / sum(layer.variable_bytes for layer in layers)
    resized = [[replace(v, bytes=round(v.bytes * factor)) for v in layer.variables] for layer in layers]
    return [replace(layer, variables=tuple(own)) for layer, own in zip(layers, resized, strict=True)]


def _layer(name: str, forward: Kernel, variables: Sequence[VariableCost], output: int | None = None) -> LayerCost:
    """A layer whose way back takes two kernels like that of its way forward: to the inputs and to the variables."""
    backward = replace(forward, op=f"{forward.op}Grad", count=2 * forward.count)
    return LayerCost(name, (forward,), (backward,), (), tuple(variables), output)
