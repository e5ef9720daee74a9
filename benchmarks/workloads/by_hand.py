"""A training step of each network by hand: the bare NumPy kernels, with the memory of the last step.

Each function takes the weights, which its step updates in place, and returns the step. What the libraries must do is
done here in the fastest way that NumPy has. What only libraries do (graphs, feeds, finding kernels) is not there.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

Step = Callable[[], Any]
RATE = np.float32(0.1)


def descend(weight: Any, slope: Any) -> None:
    """Gradient descent; destroys the slope."""
    slope *= RATE
    weight -= slope


def adam(rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Callable[..., None]:
    """An optimizer with the moments of each weight that it has seen."""
    moments: dict[int, tuple[Any, ...]] = {}

    def update(weight: Any, slope: Any) -> None:
        if id(weight) not in moments:
            moments[id(weight)] = *(np.zeros_like(weight) for _ in range(3)), [1.0, 1.0]
        first, second, other, powers = moments[id(weight)]
        powers[:] = powers[0] * beta1, powers[1] * beta2
        step = rate * np.sqrt(1 - powers[1]) / (1 - powers[0])
        np.multiply(slope, slope, out=other)
        for moment, value, beta in ((first, slope, beta1), (second, other, beta2)):
            value -= moment
            value *= np.float32(1 - beta)
            moment += value
        np.sqrt(second, out=other)
        other += np.float32(epsilon)
        np.divide(first, other, out=other)
        other *= np.float32(step)
        weight -= other

    return update


def _softmax_slope(logits: Any, labels: Any) -> Any:
    """The gradient of the mean cross entropy."""
    logits -= logits.max(1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(1, keepdims=True)
    logits -= labels
    logits /= np.float32(len(labels))
    return logits


def perceptron(weights: list[Any], x: Any, labels: Any, update: Callable[..., None] = descend) -> Step:
    """Dense layers with Relu between them; weights and biases take turns."""
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    outputs = [np.empty((len(x), w.shape[1]), np.float32) for w, _ in pairs]
    slopes = [np.empty_like(output) for output in outputs]
    changes = [np.empty_like(w) for w, _ in pairs]

    def step() -> None:
        layer = x
        for (w, b), output in zip(pairs, outputs):
            np.matmul(layer, w, out=output)
            output += b
            layer = output if output is outputs[-1] else np.maximum(output, 0, out=output)
        slope = _softmax_slope(outputs[-1], labels)
        for i in reversed(range(len(pairs))):
            w, b = pairs[i]
            np.matmul((outputs[i - 1] if i else x).T, slope, out=changes[i])
            bias_slope = slope.sum(0)
            if i:
                slope = np.matmul(slope, w.T, out=slopes[i - 1])
                slope *= outputs[i - 1] > 0
            update(w, changes[i])
            update(b, bias_slope)

    return step


# ---- the network of the MNIST tutorial ----------------------------------------------------------------------


def _in_halves(function: Callable[[slice], Any], count: int) -> list[Any]:
    """The results for both halves of a range, at the same time: BLAS has threads only for its own products."""
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(function, slice(count // 2, count))
        return [function(slice(count // 2)), second.result()]


class _Convolution:
    """5×5 windows, SAME, image by image: the windows of one image stay in the cache."""

    def __init__(self, images: int, side: int, channels: int) -> None:
        padded = np.zeros((images, side + 4, side + 4, channels), np.float32)
        self.inside = padded[:, 2:-2, 2:-2]
        image, row, column, value = padded.strides
        # Each piece that is copied is as long as it can be: all channels of a window's row, or a row of the image.
        shape, strides = (side, side, 5, 5 * channels), (row, column, row, value)
        if channels == 1:
            shape, strides = (5, 5, side, side), (row, column, row, column)
        self._windows = np.lib.stride_tricks.as_strided(padded, (images, *shape), (image, *strides))
        self._memory = threading.local()

    def windows(self, image: int) -> Any:
        """The windows of an image as a matrix of one row each."""
        windows = self._windows[image]
        if not hasattr(self._memory, "matrix"):
            self._memory.matrix = np.empty(windows.shape, np.float32)
        matrix = self._memory.matrix
        np.copyto(matrix, windows)
        flat = matrix.reshape(matrix.shape[0] * matrix.shape[1], -1)
        return flat.T if len(flat) == 25 else flat


def _maxima(layer: Any, out: Any) -> None:
    """Take the maxima of 2×2 values."""
    np.maximum(layer[::2, ::2], layer[::2, 1::2], out=out)
    np.maximum(out, layer[1::2, ::2], out=out)
    np.maximum(out, layer[1::2, 1::2], out=out)


def _maxima_slope(layer: Any, maxima: Any, slope: Any, out: Any) -> None:
    """The gradient of Relu and maxima, from that of the maxima; a maximum of 0 passes nothing on."""
    slope *= maxima > 0
    for i, j in itertools.product((0, 1), repeat=2):
        np.multiply(layer[i::2, j::2] == maxima, slope, out=out[i::2, j::2])


def convolutional(weights: list[Any], x: Any, labels: Any, rate: float = 0.01) -> tuple[Step, Step]:
    """A training step and a forward pass of two convolutions with pools, a hidden layer and the classes."""
    w1, b1, w2, b2, w3, b3, w4, b4 = weights
    images = len(x)
    first, second, back = (_Convolution(images, *shape) for shape in ((28, 1), (14, 32), (14, 64)))
    first.inside[...] = x.reshape(images, 28, 28, 1)
    ones = np.ones(28 * 28, np.float32)
    flat1, flat2 = w1.reshape(-1, 32), w2.reshape(-1, 64)
    layer1, layer2 = (np.empty((images, side, side, n), np.float32) for side, n in ((28, 32), (14, 64)))
    maxima = np.empty((images, 7, 7, 64), np.float32)
    flat = maxima.reshape(images, -1)
    slope_of_flat = np.empty_like(flat)
    hidden = np.empty((images, len(b3)), np.float32)

    def features(part: slice) -> None:
        for i in range(images)[part]:
            for windows, w, b, layer, out in (
                (first, flat1, b1, layer1[i], second.inside[i]),
                (second, flat2, b2, layer2[i], maxima[i]),
            ):
                np.matmul(windows.windows(i), w, out=layer.reshape(-1, len(b)))
                layer += b
                np.maximum(layer, 0, out=layer)
                _maxima(layer, out)

    def hide(part: slice) -> None:
        np.matmul(flat, w3[:, part], out=hidden[:, part])

    def forward() -> Any:
        _in_halves(features, images)
        _in_halves(hide, len(b3))
        hidden[...] += b3
        np.maximum(hidden, 0, out=hidden)
        return hidden @ w4 + b4

    def step() -> None:
        slope4 = _softmax_slope(forward(), labels)
        slope3 = slope4 @ w4.T
        slope3 *= hidden > 0
        scaled = slope3 * np.float32(rate)

        def descend_hidden(part: slice) -> None:
            for start in range(*part.indices(len(w3)))[::128]:  # its gradient is used while it is in the cache
                block = slice(start, min(start + 128, part.stop))
                np.matmul(slope3, w3[block].T, out=slope_of_flat[:, block])
                w3[block] -= flat[:, block].T @ scaled

        flipped = w2[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, 32)

        def slopes(part: slice) -> list[Any]:
            totals = [np.zeros_like(weight) for weight in (flat1, b1, flat2, b2)]
            of_layer1, of_layer2 = np.empty_like(layer1[0]), np.empty_like(layer2[0])
            for i in range(images)[part]:
                _maxima_slope(layer2[i], maxima[i], slope_of_flat[i].reshape(7, 7, 64), of_layer2)
                back.inside[i] = of_layer2
                of_maxima = back.windows(i) @ flipped
                _maxima_slope(layer1[i], second.inside[i], of_maxima.reshape(14, 14, 32), of_layer1)
                flat_slopes = of_layer1.reshape(-1, 32), of_layer2.reshape(-1, 64)
                for windows, slope, total in zip((first, second), flat_slopes, (totals[:2], totals[2:])):
                    total[0] += windows.windows(i).T @ slope
                    total[1] += ones[: len(slope)] @ slope  # BLAS adds rows faster than `sum`
            return totals

        _in_halves(descend_hidden, len(w3))
        for part in _in_halves(slopes, images):
            for weight, change in zip((flat1, b1, flat2, b2), part):
                weight -= np.float32(rate) * change
        b3[...] -= scaled.sum(0)
        w4[...] -= np.float32(rate) * (hidden.T @ slope4)
        b4[...] -= np.float32(rate) * slope4.sum(0)

    return step, forward


# ---- a recurrent network ------------------------------------------------------------------------------------


def recurrent(weights: list[Any], x: Any, labels: Any, rate: float = 0.01) -> tuple[Step, Step]:
    """A training step and a forward pass of BasicLSTMCell over the rows of images; the last output is classified."""
    kernel, bias, w, b = weights
    batch, units = len(x), len(bias) // 4
    turns, inputs = 28, len(kernel) - units
    rows = np.ascontiguousarray(x.reshape(batch, turns, inputs).transpose(1, 0, 2))
    seen = np.zeros((turns, batch, inputs + units), np.float32)  # what the cell gets each turn
    seen[:, :, :inputs] = rows
    gates = np.empty((turns, batch, 4 * units), np.float32)  # i, j, f, o of each turn
    cells = np.zeros((turns + 1, batch, units), np.float32)
    tanhs = np.empty((turns, batch, units), np.float32)
    outputs = np.empty((turns, batch, units), np.float32)
    slopes = np.empty_like(gates)
    other = np.empty((batch, units), np.float32)
    parts = [slice(i * units, (i + 1) * units) for i in range(4)]
    i, j, f, o = parts
    scale = np.full(4 * units, 0.5, np.float32)  # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2
    scale[j] = 1
    shift = np.full(4 * units, 0.5, np.float32)
    shift[j] = 0

    def forward() -> Any:
        offset = bias.copy()
        offset[f] += 1
        np.matmul(rows.reshape(-1, inputs), kernel[:inputs], out=gates.reshape(-1, 4 * units))
        for t, gate in enumerate(gates):
            if t:
                seen[t, :, inputs:] = outputs[t - 1]
                gate += outputs[t - 1] @ kernel[inputs:]
            gate += offset
            gate *= scale
            np.tanh(gate, out=gate)
            gate *= scale
            gate += shift
            np.multiply(cells[t], gate[:, f], out=cells[t + 1])
            cells[t + 1] += np.multiply(gate[:, i], gate[:, j], out=other)
            np.tanh(cells[t + 1], out=tanhs[t])
            np.multiply(tanhs[t], gate[:, o], out=outputs[t])
        return outputs[-1] @ w + b

    def step() -> None:
        slope = _softmax_slope(forward(), labels)
        of_output, of_cell = slope @ w.T, np.zeros((batch, units), np.float32)
        for t in reversed(range(turns)):
            gate, out = gates[t], slopes[t]
            of_cell += (1 - tanhs[t] * tanhs[t]) * gate[:, o] * of_output
            np.subtract(1, gate, out=out)
            out *= gate  # the slope of the sigmoids
            np.subtract(1, gate[:, j] * gate[:, j], out=out[:, j])
            for part, factor in ((i, gate[:, j]), (j, gate[:, i]), (f, cells[t])):
                out[:, part] *= np.multiply(of_cell, factor, out=other)
            out[:, o] *= np.multiply(of_output, tanhs[t], out=other)
            of_cell *= gate[:, f]
            if t:
                np.matmul(out, kernel[inputs:].T, out=of_output)
        flat = slopes.reshape(-1, 4 * units)
        for weight, change in (
            (w, outputs[-1].T @ slope),
            (b, slope.sum(0)),
            (kernel, seen.reshape(len(flat), -1).T @ flat),
            (bias, flat.sum(0)),
        ):
            change *= np.float32(rate)
            weight -= change

    return step, forward
