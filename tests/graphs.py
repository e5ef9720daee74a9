"""Random graphs for the laws: a recipe is data, and is built again for every way of running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np

import dtflab as tf
from dtflab.graph.apply_op import apply_op

KINDS = ("const", "add", "mul", "neg", "matmul", "cond", "split", "loop", "variable")
CROSSINGS = ("text", "empty", "scalar", "wide", "state")  # other values that cross, and one that each step changes


class Line(NamedTuple):
    """One step of a recipe: what to make, of which earlier values, where, and after what."""

    kind: str
    a: int
    b: int
    place: int
    after: int | None


def lines(kinds: tuple[str, ...]) -> st.SearchStrategy[Line]:
    number = st.integers(0, 30)
    return st.builds(Line, st.sampled_from(kinds), number, number, st.integers(0, 5), st.none() | number)


recipes = st.lists(lines(KINDS), min_size=2, max_size=14)
crossing_recipes = st.lists(lines(KINDS + CROSSINGS), min_size=2, max_size=14)


class Built(NamedTuple):
    graph: tf.Graph
    values: list[tf.Tensor]
    initializers: list[tf.Operation]


def build(recipe: list[Line], device: Callable[[int], str]) -> Built:
    """The graph of a recipe with its nodes on `device(place)`."""
    graph = tf.Graph()
    values: list[tf.Tensor] = []
    initializers: list[tf.Operation] = []
    with graph.as_default():
        for number, line in enumerate(recipe):
            after = [values[line.after % len(values)]] if line.after is not None and values else []
            with tf.device(device(line.place)), tf.control_dependencies(after):
                values.append(_make(line, number, values, initializers, device))
    return Built(graph, values, initializers)


def _make(line, number, values, initializers, device):
    def earlier(index):
        return values[index % len(values)] if values else _constant(index)

    a, b = earlier(line.a), earlier(line.b)
    match line.kind:
        case "const":
            return _constant(number)
        case "add":
            return tf.add(a, b)
        case "mul":
            return tf.multiply(a, b)
        case "neg":
            return tf.negative(a)
        case "matmul":
            return tf.tanh(tf.matmul(a, b))
        case "split":
            return tf.concat(tf.split(a, 2, axis=0)[::-1], axis=0)
        case "cond":
            return _cond(a, b, line, device)
        case "loop":
            return _loop(a, line, number, device)
        case "variable":
            variable = tf.Variable(_constant(number).op.attrs["value"], name=f"v{number}")
            with tf.control_dependencies(None):
                initializers.append(variable.initializer)
            return tf.add(variable, a)
        case "state":
            variable = tf.Variable(
                _constant(number).op.attrs["value"], name=f"state{number}", use_resource=bool(line.b % 2)
            )
            with tf.control_dependencies(None):
                initializers.append(variable.initializer)
            return tf.identity(tf.assign_add(variable, tf.tanh(a)))
    return _crossing(a, b, line, device)


def _crossing(a, b, line, device):
    """A value of another kind that goes from one device to the next."""
    match line.kind:
        case "text":
            text = tf.as_string(tf.bitcast(a, tf.int32))
            with tf.device(device(line.place + 1)):
                return tf.bitcast(tf.string_to_number(text, tf.int32), tf.float32)
        case "empty":
            nothing = tf.slice(a, [0, 0], [0, 2])
            with tf.device(device(line.place + 1)):
                return tf.concat([nothing, b], axis=0)
        case "scalar":
            largest = tf.reduce_max(a)
            with tf.device(device(line.place + 1)):
                return tf.minimum(b, largest)
        case "wide":  # 150 KB each; the first is read once the second is there
            first, second = (tf.tile(x, [150, 128]) for x in (a, b))
            with tf.device(device(line.place + 1)):
                top = _corner(second)
                with tf.control_dependencies([top]):
                    return tf.subtract(_corner(first), top)
    raise AssertionError(line.kind)


def _corner(wide: tf.Tensor) -> tf.Tensor:
    """The tile of which a matrix is made, or another one if its tiles differ."""
    return tf.reduce_max(tf.reshape(wide, [150, 2, 128, 2]), [0, 2])


def _constant(seed: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).standard_normal((2, 2)).astype(np.float32))


def _cond(a, b, line, device):
    """A conditional whose branches are elsewhere: what is not taken is dead on both sides of the crossing."""
    no, yes = apply_op("Switch", data=a, pred=bool(line.b % 2))
    with tf.device(device(line.place + 1)):
        yes = tf.add(yes, b)
    with tf.device(device(line.place + 2)):
        no = tf.negative(no)
    return apply_op("Merge", inputs=[no, yes])[0]


def _loop(a, line, number, device):
    """A loop of `b % 4` turns with its body on another device; in the body a conditional, a loop, or neither."""
    frame = f"loop{number}"
    turns = tf.constant(line.b % 4)
    x = apply_op("Enter", data=a, frame_name=frame, parallel_iterations=1 + line.a % 3)
    i = apply_op("Enter", data=tf.constant(0), frame_name=frame, parallel_iterations=1 + line.a % 3)
    limit = apply_op("Enter", data=turns, frame_name=frame, is_constant=True)
    with tf.control_dependencies(None):
        i = apply_op("Merge", inputs=[i, i])[0]
        x = apply_op("Merge", inputs=[x, x])[0]
        go_on = apply_op("LoopCond", input=tf.less(i, limit))
        i_in = tf.identity(apply_op("Switch", data=i, pred=go_on)[1])  # dead after the last turn
        x_out, x_in = apply_op("Switch", data=x, pred=go_on)
        with tf.device(device(line.place + 1)):
            x_next = _body(x_in, i_in, line, frame, device)
        with tf.control_dependencies([i_in]):
            i_next = tf.add(i_in, tf.constant(1))
        i.op._update_input(1, apply_op("NextIteration", data=i_next))
        x.op._update_input(1, apply_op("NextIteration", data=x_next))
        return apply_op("Exit", data=x_out)


def _body(x, i, line, frame, device):
    inner = line._replace(place=line.place + 1, b=line.b // 4)
    match line.a % 4 if frame.count("/") < 2 else 0:
        case 1:
            with tf.control_dependencies([i]):
                return _cond(x, tf.negative(x), inner, device)
        case 2:
            with tf.control_dependencies([i]):
                return _loop(x, inner._replace(a=line.a // 4), f"{frame}/inner", device)
    return tf.tanh(tf.negative(x))


def run(built: Built, session: tf.Session) -> list[np.ndarray]:
    """All values of a built graph, in one step."""
    if built.initializers:
        session.run(built.initializers)
    return session.run(built.values, options=tf.RunOptions(timeout_in_ms=20_000))


def run_in_steps(built: Built, session: tf.Session) -> list[np.ndarray]:
    """Run the graph like `run`, one set of ready nodes at a time."""
    if built.initializers:
        session.step_through(built.initializers).finish()
    return session.step_through(built.values, options=tf.RunOptions(timeout_in_ms=20_000)).finish()
