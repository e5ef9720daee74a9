"""Every optimizer next to TensorFlow's: its GraphDef node for node, and its numbers over a hundred steps."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.graph import op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.train.optimizers import slot_creator
from tests.oracle import answers
from tests.oracle.answers import module_of
from tests.oracle.graph_defs import assert_same_graph, both, nodes
from tests.oracle.programs import Programs

# Name → how a program makes it. Rates are as a program has them: numbers, tensors, functions.
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda tf: tf.train.MomentumOptimizer(0.1, lambda: 0.9, use_nesterov=True, name="N"),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.3, initial_accumulator_value=0.2),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(0.2, 0.9, 1e-3),
    "rmsprop": lambda tf: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "centered": lambda tf: tf.train.RMSPropOptimizer(lambda: 0.01, 0.8, 0.3, 0.1, centered=True),
    "adam": lambda tf: tf.train.AdamOptimizer(tf.constant(0.05, tf.float64)),
    "adam locked": lambda tf: tf.train.AdamOptimizer(0.05, 0.8, 0.99, 1e-4, use_locking=True, name="Mine"),
    "adam own scope": lambda tf: tf.train.AdamOptimizer(use_own_namescope_for_non_slot_vars=True),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.1),
    "ftrl shrinking": lambda tf: tf.train.FtrlOptimizer(
        0.3, -0.4, 0.5, accum_name="a", linear_name="l", l2_shrinkage_regularization_strength=0.1, beta=0.3
    ),
    "adagrad da": lambda tf: tf.train.AdagradDAOptimizer(
        0.3, tf.train.get_or_create_global_step(), l1_regularization_strength=0.001
    ),
    "proximal descent": lambda tf: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    "proximal adagrad": lambda tf: tf.train.ProximalAdagradOptimizer(0.3, 0.2, 0.01, 0.02),
}

# TensorFlow's proximal optimizers take a float32 rate for float32 variables alone.
DOUBLES = {k: v for k, v in OPTIMIZERS.items() if not k.startswith("proximal")}
HALVES = {k: v for k, v in DOUBLES.items() if k != "adagrad da"}  # and it has no kernel of AdagradDA for them

each_optimizer = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
both_kinds = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


def model(tf: Any, use_resource: bool, dtype: Any) -> tuple[Any, list[Any]]:
    """A loss with dense gradients and gradients of rows, some of which repeat."""
    with tf.name_scope("model"):
        w = tf.Variable(np.linspace(-1, 1, 6).reshape(2, 3), dtype=dtype, name="w", use_resource=use_resource)
        b = tf.Variable(0.5, dtype=dtype, name="b", use_resource=use_resource)
    start = np.linspace(-2, 2, 10).reshape(5, 2)
    table = tf.Variable(start, dtype=dtype, name="table", use_resource=use_resource)
    rows = tf.gather(table, [1, 3, 1])
    sums = tf.reduce_sum(tf.square(rows - 0.3)) + tf.reduce_sum(tf.square(w * b - 0.2))
    return sums + tf.square(b), [w, b, table]


@both_kinds
@each_optimizer
def test_same_graph(make, use_resource):
    def program(tf):
        loss, _ = model(tf, use_resource, tf.float32)
        with tf.name_scope("train"):
            make(tf).minimize(loss, global_step=tf.train.get_or_create_global_step())

    assert_same_graph(program)


@both_kinds
@pytest.mark.parametrize("make", DOUBLES.values(), ids=DOUBLES)
def test_same_graph_in_double_precision(make, use_resource):
    def program(tf):
        with tf.variable_scope("outer"):
            loss, _ = model(tf, use_resource, tf.float64)
            make(tf).minimize(loss)

    assert_same_graph(program)


def trained(tf: Any, make: Any, use_resource: bool, dtype: str, steps: int) -> tuple[list[str], list[Any]]:
    """The names of all variables and their values after `steps`."""
    loss, variables = model(tf, use_resource, getattr(tf, dtype))
    optimizer = make(tf)
    # All gradients before all updates: TensorFlow may else read what it has updated already.
    gate = optimizer.GATE_GRAPH
    train = optimizer.minimize(loss, tf.train.get_or_create_global_step(), gate_gradients=gate)
    slots = [optimizer.get_slot(v, name) for name in optimizer.get_slot_names() for v in variables]
    assert set(slots) <= set(optimizer.variables())
    found = [*variables, *optimizer.variables()]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        return [v.name for v in found] + optimizer.get_slot_names(), session.run([*found, loss])


@both_kinds
@each_optimizer
def test_same_values_over_a_hundred_steps(make, use_resource):
    (their_names, theirs), (names, ours) = both(lambda tf: trained(tf, make, use_resource, "float32", 100))
    assert names == their_names
    for name, a, b in zip(names, ours, theirs):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 2e-4, 2e-6, err_msg=name)


@both_kinds
@pytest.mark.parametrize("make", DOUBLES.values(), ids=DOUBLES)
def test_same_values_in_double_precision(make, use_resource):
    (their_names, theirs), (names, ours) = both(lambda tf: trained(tf, make, use_resource, "float64", 100))
    assert names == their_names
    for name, a, b in zip(names, ours, theirs):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-9, 1e-12, err_msg=name)


# -- slots ------------------------------------------------------------------------------------------------------------

program = Programs()


@both_kinds
@program.each()
def test_same_graph_and_answer(run, use_resource):
    theirs, ours = both(lambda tf: (run(tf, use_resource), nodes(tf.get_default_graph().as_graph_def())))
    assert ours == theirs


@program
def slots_of_a_partitioned_variable(tf, use_resource):
    partitioner = tf.fixed_size_partitioner(2)
    with tf.variable_scope("model", partitioner=partitioner, use_resource=use_resource):
        table = tf.get_variable("table", [5, 3])
        bias = tf.get_variable("bias", [4], partitioner=tf.fixed_size_partitioner(1))
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [0, 4, 4])) + tf.reduce_sum(bias)
        optimizer = tf.train.AdamOptimizer()
        optimizer.minimize(loss)
        momentum = tf.train.MomentumOptimizer(0.1, 0.9)
        momentum.minimize(loss)
    slots = [o.get_slot(v, n) for o in (optimizer, momentum) for n in o.get_slot_names() for v in table]
    infos = [slot._get_save_slice_info() for slot in slots]
    names = [(v.name, v.shape.as_list()) for v in (*optimizer.variables(), *momentum.variables())]
    return names, [(i.full_name, i.spec, list(i.full_shape), list(i.var_offset)) for i in infos]


@program
def slots_by_hand(tf, use_resource):
    creator = module_of(tf, "python.training.slot_creator", slot_creator)
    v = tf.Variable([1.0, 2.5], name="var", use_resource=use_resource)
    with tf.variable_scope("outer"):
        slots = [
            creator.create_slot(v, v.initial_value * 2.0, name="slot"),
            creator.create_slot(v, v.initial_value * 2.0, name="slot"),
            creator.create_slot(v, tf.constant(3), name="alone", colocate_with_primary=False),
            creator.create_zeros_slot(v, name="zeros", dtype=tf.float64),
            creator.create_zeros_slot(tf.constant([1.0, 2.5], name="const"), name="zeros"),
            creator.create_slot_with_initializer(v, tf.ones_initializer(), v.shape, v.dtype, "ones"),
        ]
    shapeless = tf.Variable(tf.placeholder(tf.float32), validate_shape=False, name="any", use_resource=use_resource)
    slots.append(creator.create_zeros_slot(shapeless, "zeros"))
    return [(s.op.name, str(s.shape), s.dtype.base_dtype.name, s.trainable, type(s.op).__name__) for s in slots]


@program
def variables_of_unknown_shape(tf, use_resource):
    given = tf.placeholder_with_default([[1.0, 2.0]], [None, 2])
    v = tf.Variable(given, validate_shape=False, name="v", use_resource=use_resource)
    loss = tf.reduce_sum(v * v)
    for optimizer in (tf.train.AdagradOptimizer(0.1), tf.train.RMSPropOptimizer(0.1), tf.train.AdamOptimizer(0.1)):
        optimizer.minimize(loss)


@program
def slots_are_shared_and_reused(tf, use_resource):
    w = tf.Variable([1.0], name="w", use_resource=use_resource)
    optimizer = tf.train.AdamOptimizer(name="A")
    first, second = optimizer.minimize(w * 2.0), optimizer.minimize(w * 3.0)
    other = tf.train.AdamOptimizer(name="A").minimize(w * 2.0)
    return len(optimizer.variables()), [v.name for v in optimizer.variables()], first.name, second.name, other.name


@program
def slots_in_scopes_of_reuse(tf, use_resource):
    with tf.variable_scope("m", use_resource=use_resource):
        w = tf.get_variable("w", [2])
    found = []
    for reuse in (tf.AUTO_REUSE, tf.AUTO_REUSE, True, None):
        with tf.variable_scope("m", reuse=reuse):
            try:
                optimizer = tf.train.MomentumOptimizer(0.1, 0.9, name=f"M{reuse}")
                optimizer.minimize(tf.reduce_sum(w))
                found += [v.name for v in optimizer.variables()]
            except ValueError as error:
                found.append(str(error).split(",")[0])
    return found


@program
def every_argument(tf, use_resource):
    with tf.device("/job:ps"):
        w = tf.Variable([[1.0, 2.0]], name="w", use_resource=use_resource)
        step = tf.Variable(0, name="step", trainable=False, use_resource=use_resource)
    with tf.device("/job:worker"):
        loss = tf.matmul(w, w, transpose_b=True)
    optimizer = tf.train.RMSPropOptimizer(0.1, name="R", use_locking=True)
    optimizer.minimize(
        loss,
        step,
        [w],
        optimizer.GATE_GRAPH,
        tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
        True,
        "named",
        tf.constant([[2.0]]),
    )
    tf.train.AdadeltaOptimizer().minimize(w * 2.0, var_list={"a": w}, gate_gradients=optimizer.GATE_NONE)
    pairs = optimizer.compute_gradients(loss, var_list=(w,), grad_loss=tf.constant([[1.0]]))
    optimizer.apply_gradients(iter(pairs), global_step=step, name="applied")
    return [g.dtype.name for g, _ in pairs], [v.name for _, v in pairs]


def test_the_loss_may_be_a_function():
    def trained(tf):
        w = tf.Variable([1.0, 2.0], use_resource=True)  # TensorFlow's tape sees no other kind
        train = tf.train.AdamOptimizer(0.1).minimize(lambda: tf.reduce_sum(w * w), var_list=[w])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [session.run([w, train])[0].tolist() for _ in range(3)]

    theirs, ours = both(trained)
    np.testing.assert_allclose(ours, theirs, 1e-6)


ERRORS: dict[str, Callable[[Any], Any]] = {
    "no name": lambda tf: tf.train.AdamOptimizer(name=""),
    "no variables": lambda tf: tf.train.AdamOptimizer().minimize(tf.constant(1.0)),
    "nothing to apply": lambda tf: tf.train.AdamOptimizer().apply_gradients([]),
    "no gradients": lambda tf: tf.train.AdamOptimizer().minimize(tf.constant(1.0), var_list=[tf.Variable(1.0)]),
    "only None": lambda tf: tf.train.AdamOptimizer().apply_gradients([(None, tf.Variable(1.0))]),
    "text for a gradient": lambda tf: tf.train.AdamOptimizer().apply_gradients([(object(), tf.Variable(1.0))]),
    "a tensor": lambda tf: tf.train.AdamOptimizer().apply_gradients([(1.0, tf.constant(1.0))]),
    "a bad gate": lambda tf: tf.train.AdamOptimizer().minimize(tf.Variable(1.0) * 1.0, gate_gradients=7),
    "integers": lambda tf: tf.train.AdamOptimizer().minimize(tf.Variable(1) * 2),
    "accumulator of zero": lambda tf: tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.0),
    "proximal accumulator": lambda tf: tf.train.ProximalAdagradOptimizer(0.1, initial_accumulator_value=-1.0),
    "dual accumulator": lambda tf: tf.train.AdagradDAOptimizer(0.1, 0, -2.0),
    "ftrl power": lambda tf: tf.train.FtrlOptimizer(0.1, learning_rate_power=0.1),
    "ftrl accumulator": lambda tf: tf.train.FtrlOptimizer(0.1, initial_accumulator_value=-0.1),
    "ftrl l1": lambda tf: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-0.1),
    "ftrl l2": lambda tf: tf.train.FtrlOptimizer(0.1, l2_regularization_strength=-0.1),
    "ftrl shrinkage": lambda tf: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=-0.1),
    "constraint of rows": lambda tf: tf.train.AdamOptimizer().minimize(
        tf.gather(tf.Variable([[1.0]], constraint=tf.nn.relu), [0])
    ),
    "shapes differ": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(
        [(tf.ones([3]), tf.Variable([1.0, 2.0]))]
    ),
}


@pytest.mark.parametrize("wrong", ERRORS.values(), ids=ERRORS)
def test_same_errors(wrong):
    def error(tf):
        try:
            return "nothing", wrong(tf)
        except Exception as error:
            said = re.split(r"[<\[(]", str(error))[0]
            return type(error).__name__, "" if "hapes" in said else said

    theirs, ours = both(error)
    assert ours == theirs


# What the kernels refuse, which shape rules can't see: inputs of ApplyMomentum and its kind, by name.
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("ApplyMomentum", {"lr": [0.1]}),
    ("ApplyMomentum", {"grad": [1.0]}),
    ("ApplyMomentum", {"accum": [1.0, 2.0, 3.0]}),
    ("ApplyAdam", {"beta1": [0.1]}),
    ("ApplyFtrl", {"lr": 0.0}),
    ("ApplyFtrl", {"l1": -1.0}),
    ("ApplyFtrl", {"l2": -1.0}),
    ("ApplyFtrl", {"lr_power": 1.0}),
    ("SparseApplyMomentum", {"indices": [9, 0]}),
    ("SparseApplyMomentum", {"indices": [-1, 0]}),
    ("SparseApplyMomentum", {"indices": [0]}),
    ("SparseApplyMomentum", {"indices": [[0, 1]]}),
    ("SparseApplyMomentum", {"grad": [[1.0], [2.0]]}),
    ("SparseApplyAdagrad", {"lr": [0.1]}),
    ("SparseApplyFtrl", {"l1": -1.0}),
]


@both_kinds
@pytest.mark.parametrize(("op_type", "wrong"), REFUSED)
def test_same_refusals(op_type, wrong, use_resource):
    """Built by dtflab with placeholders for what is wrong, run on both."""
    if use_resource:
        op_type = f"Resource{op_type}"
    with dtflab.Graph().as_default() as graph:
        inputs: dict[str, Any] = {}
        init = []
        for arg in op_registry.get(op_type).op_def.inputs:
            if arg.is_ref or arg.type is dtflab.resource:
                value = wrong.get(arg.name, [[1.0, 2.0], [3.0, 4.0]] if "Sparse" in op_type else [1.0, 2.0])
                initial = dtflab.placeholder_with_default(np.array(value, "f"), None)  # so that no shape is known
                variable = dtflab.Variable(initial, name=arg.name, validate_shape=False, use_resource=use_resource)
                init.append(variable.initializer)
                inputs[arg.name] = variable.handle if use_resource else variable
            else:
                kind = dtflab.int32 if arg.name == "indices" else dtflab.float32
                inputs[arg.name] = dtflab.placeholder(kind, name=arg.name)
        op = apply_op(op_type, "step", **inputs)
        op = op if isinstance(op, dtflab.Operation) else op.op
        name = dtflab.group(*init, name="init").name
    usual = {"grad": [[0.1, 0.2], [0.3, 0.4]] if "Sparse" in op_type else [0.1, 0.2], "indices": [0, 1]}
    feeds = {
        f"{key}:0": wrong.get(key, usual.get(key, 0.5 if key != "lr_power" else -0.5))
        for key, tensor in inputs.items()
        if isinstance(tensor, dtflab.Tensor) and tensor.op.type == "Placeholder"
    }

    def answer(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
            session.run(name)
            try:
                session.run(op.name, feeds)
            except Exception as error:
                return type(error).__name__, _said(str(error))
            return "nothing"

    theirs, ours = answers.both(answer)
    assert ours == theirs


def _said(text: str) -> str:
    """The first line of an error that is not about nodes, without values and shapes."""
    lines = [
        line for line in text.split("\n") if line and not re.match(r"Graph execution|Detected at|Node:|  File", line)
    ]
    return re.split(r"[\[:=]", lines[0])[0].strip()


# -- shared by clients ------------------------------------------------------------------------------------------------

# Settings that are tensors, and a global step, are of one graph; so is an optimizer that has them.
OF_NO_GRAPH = {name: make for name, make in OPTIMIZERS.items() if name not in ("adam", "adagrad da")}


def built_by_clients(tf: Any, make: Callable[[Any], Any], use_resource: bool, clients: int) -> list[Any]:
    """The nodes that threads with a graph each build with one optimizer, or the error's class.

    The constraint is called between the updates of `a` and `b`. Each thread begins when the one before is there, and
    goes on when all are: each has prepared its settings, and none has used them for `b`.
    """
    optimizer, found = make(tf), []
    all_there, one_there = threading.Event(), threading.Semaphore(0)

    def constraint(value: Any) -> Any:
        one_there.release()
        all_there.wait()
        return tf.identity(value)

    def client() -> None:
        try:
            with tf.Graph().as_default() as graph:
                a = tf.Variable([1.0], name="a", constraint=constraint, use_resource=use_resource)
                b = tf.Variable([1.0], name="b", use_resource=use_resource)
                optimizer.minimize(a * a + b * b)
            found.append(nodes(graph.as_graph_def(), gradients=True))
        except Exception as error:
            found.append(type(error).__name__)
        finally:
            one_there.release()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
        one_there.acquire()
    all_there.set()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.live("clients race")
@both_kinds
@pytest.mark.parametrize("make", OF_NO_GRAPH.values(), ids=OF_NO_GRAPH)
def test_clients_in_threads_may_share_an_optimizer(make, use_resource):
    """TensorFlow's keeps the settings of one graph, the last: its clients are processes, ours may be threads."""
    theirs, ours = both(lambda tf: built_by_clients(tf, make, use_resource, 3))
    (alone,) = built_by_clients(dtflab, make, use_resource, 1)
    assert ours == [alone] * 3
    assert theirs.count("ValueError") == 2


def test_an_application_leaves_on_the_optimizer_what_it_does_in_tensorflow():
    """Programs make summaries of `_lr_t` and its kind, count in `_prepare`, and learning rates may be functions."""

    def program(tf):
        class Counting(tf.train.MomentumOptimizer):
            prepared, asked = 0, 0

            def _prepare(self):
                self.prepared += 1
                super()._prepare()

            def rate(self):
                self.asked += 1
                return 0.1

        w, step = tf.Variable(1.0), tf.train.create_global_step()
        adam, dual, counting = tf.train.AdamOptimizer(0.1), tf.train.AdagradDAOptimizer(0.1, step), Counting(0.1, 0.9)
        counting._learning_rate = counting.rate
        for optimizer in (adam, dual, counting, adam, counting):
            optimizer.minimize(w * w)
        tensors = adam._lr_t, adam._beta2_t, dual._learning_rate_tensor, counting._momentum_tensor
        return [t.name for t in tensors], counting.prepared, counting.asked

    theirs, ours = both(program)
    assert ours == theirs


def test_variables_are_listed_while_another_client_builds():
    optimizer, others = dtflab.train.MomentumOptimizer(0.1, 0.9), []

    def build() -> list[str]:
        with dtflab.Graph().as_default():
            w = dtflab.Variable(1.0, name="w")
            optimizer.minimize(w * w)
            return [v.name for v in optimizer.variables()]

    def its_turn(frame: Any, event: str, argument: Any) -> Any:
        """Called at each line of the optimizer's, as if the interpreter changed threads there."""
        if frame.f_code.co_filename != inspect.getsourcefile(dtflab.train.Optimizer):
            return None
        sys.settrace(None)
        others.append(build())
        sys.settrace(its_turn)
        return its_turn

    before = sys.gettrace()
    build()
    sys.settrace(its_turn)
    try:
        assert optimizer.variables() == []
    finally:
        sys.settrace(before)
    assert len(others) > 3 and others == [["w/Momentum:0"]] * len(others)


# -- half precision ---------------------------------------------------------------------------------------------------


def halves() -> list[tuple[str, str]]:
    """Optimizer and dtype, but for RMSProp and bfloat16: TensorFlow has no SparseApplyRMSProp of that."""
    pairs = [(name, dtype) for name in HALVES for dtype in ("float16", "bfloat16")]
    return [(name, dtype) for name, dtype in pairs if name not in ("rmsprop", "centered") or dtype == "float16"]


@both_kinds
@pytest.mark.parametrize(("name", "dtype"), halves())
def test_same_values_in_half_precision(name, dtype, use_resource):
    (_, theirs), (names, ours) = both(lambda tf: trained(tf, OPTIMIZERS[name], use_resource, dtype, 5))
    tolerance = 0.02 if dtype == "float16" else 0.12
    for name, a, b in zip(names, ours, theirs):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.astype("f"), b.astype("f"), tolerance, tolerance, err_msg=name)


# -- bit for bit ------------------------------------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("centered", [False, True])
def test_rms_prop_of_rows_rounds_as_tensorflow(centered, dtype, use_resource):
    """The kernel for rows has another order than the dense one, and momentum makes the last bit grow."""

    def run(tf: Any) -> Any:
        draw = np.random.RandomState(3)
        table = tf.Variable(draw.randn(8, 5), dtype=dtype, use_resource=use_resource)
        gradient = tf.placeholder(dtype, [6, 5])
        slices = tf.IndexedSlices(gradient, tf.constant([1, 7, 0, 2, 5, 4]), [8, 5])
        optimizer = tf.train.RMSPropOptimizer(0.013, 0.87, 0.91, 1e-7, centered=centered)
        train = optimizer.apply_gradients([(slices, table)])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(100):
                session.run(train, {gradient: draw.randn(6, 5)})
            return session.run([table, *optimizer.variables()])

    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_array_equal(ours, theirs)
