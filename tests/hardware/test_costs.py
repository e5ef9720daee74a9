"""The costs of ops, against figures worked out by hand; and the time that this takes."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph import op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.graph import Graph
from dtflab.graph.node import make_node
from dtflab.hardware import costs
from dtflab.hardware.catalogue import cpu, gpu
from dtflab.hardware.costs import HANDLE, Cost
from dtflab.hardware.parts import Processor

F32, F64, I32, I64 = tf.float32, tf.float64, tf.int32, tf.int64
SAME = {"strides": [1, 2, 2, 1], "padding": "SAME"}
POOL = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
CONV = {"T": F32, "strides": [1, 2, 2, 1], "padding": b"SAME", "explicit_paddings": []}

# op, attributes, shapes in, shapes out, flops, bytes
TABLE = [
    # products
    ("MatMul", {"T": F32}, [(3, 4), (4, 5)], [(3, 5)], 2 * 3 * 4 * 5, 4 * (12 + 20 + 15)),
    ("MatMul", {"T": F64, "transpose_b": True}, [(3, 4), (5, 4)], [(3, 5)], 2 * 60, 8 * (12 + 20 + 15)),
    ("BatchMatMulV2", {"T": F32}, [(2, 1, 3, 4), (5, 4, 6)], [(2, 5, 3, 6)], 2 * 10 * 72, 4 * (24 + 120 + 180)),
    ("Einsum", {"T": F32, "N": 2, "equation": b"ij,jk->ik"}, [(3, 4), (4, 5)], [(3, 5)], 120, 4 * 47),
    ("Einsum", {"T": F32, "N": 2, "equation": b"i,j->ij"}, [(3,), (4,)], [(3, 4)], 12, 4 * (3 + 4 + 12)),
    ("Einsum", {"T": F32, "N": 1, "equation": b"ij->ji"}, [(3, 4)], [(4, 3)], 0, 4 * 24),
    ("SparseTensorDenseMatMul", {"T": F32}, [(7, 2), (7,), (2,), (4, 5)], [(3, 5)], 2 * 7 * 5,
     8 * 14 + 4 * 7 + 8 * 2 + 4 * (20 + 15)),
    # windows
    ("Conv2D", CONV, [(2, 9, 9, 3), (3, 3, 3, 8)], [(2, 5, 5, 8)], 2 * 400 * 27, 4 * (486 + 216 + 400)),
    ("Conv2DBackpropInput", CONV, [(4,), (3, 3, 3, 8), (2, 5, 5, 8)], [(2, 9, 9, 3)], 2 * 400 * 27,
     4 * (4 + 216 + 400 + 486)),
    ("Conv2DBackpropFilter", CONV, [(2, 9, 9, 3), (4,), (2, 5, 5, 8)], [(3, 3, 3, 8)], 2 * 400 * 27,
     4 * (486 + 4 + 400 + 216)),
    ("DepthwiseConv2dNative", CONV, [(2, 9, 9, 3), (3, 3, 3, 2)], [(2, 5, 5, 6)], 2 * 300 * 9, 4 * (486 + 54 + 300)),
    ("MaxPool", {"T": F32, **POOL}, [(2, 9, 9, 3)], [(2, 5, 5, 3)], 150 * 9, 4 * (486 + 150)),
    ("AvgPoolGrad", {"T": F32, **POOL}, [(4,), (2, 5, 5, 3)], [(2, 9, 9, 3)], 150 * 9, 4 * (4 + 150 + 486)),
    ("Dilation2D", {"T": F32, "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": b"SAME"},
     [(2, 9, 9, 3), (3, 3, 3)], [(2, 9, 9, 3)], 2 * 9 * 486, 4 * (486 + 27 + 486)),
    ("Conv3D", {"T": F32, "strides": [1] * 5, "padding": b"VALID"}, [(2, 5, 5, 5, 3), (2, 2, 2, 3, 4)],
     [(2, 4, 4, 4, 4)], 2 * 512 * 24, 4 * (750 + 96 + 512)),
    ("DepthwiseConv2dNativeBackpropInput", CONV, [(4,), (3, 3, 3, 2), (2, 5, 5, 6)], [(2, 9, 9, 3)], 2 * 300 * 9,
     4 * (4 + 54 + 300 + 486)),
    ("MaxPoolGrad", {"T": F32, **POOL}, [(2, 9, 9, 3), (2, 5, 5, 3), (2, 5, 5, 3)], [(2, 9, 9, 3)], 150 * 9,
     4 * (486 + 150 + 150 + 486)),
    ("MaxPoolGradWithArgmax", {"T": F32, "Targmax": I64, **POOL}, [(2, 9, 9, 3), (2, 5, 5, 3), (2, 5, 5, 3)],
     [(2, 9, 9, 3)], 150, 4 * (486 + 150 + 486) + 8 * 150),
    ("LRN", {"T": F32, "depth_radius": 2}, [(1, 4, 4, 8)], [(1, 4, 4, 8)], 9 * 128, 4 * 256),
    # element by element, and many to few
    ("Add", {"T": F32}, [(3, 4), (4,)], [(3, 4)], 12, 4 * (12 + 4 + 12)),
    ("AddN", {"T": F32, "N": 3}, [(6,)] * 3, [(6,)], 12, 4 * 24),
    ("Relu", {"T": tf.float16}, [(10,)], [(10,)], 10, 40),
    ("BiasAdd", {"T": F32}, [(2, 5, 5, 3), (3,)], [(2, 5, 5, 3)], 150, 4 * (150 + 3 + 150)),
    ("Sum", {"T": F32}, [(3, 4), (1,)], [(4,)], 12, 4 * (12 + 1 + 4)),
    ("Softmax", {"T": F32}, [(3, 4)], [(3, 4)], 60, 96),
    ("FusedBatchNormV3", {"T": F32, "U": F32}, [(2, 4, 4, 3)] + [(3,)] * 4, [(2, 4, 4, 3)] + [(3,)] * 4 + [(0,)],
     8 * 96, 4 * (96 + 12 + 96 + 12)),
    ("SegmentSum", {"T": F32, "Tindices": I32}, [(6, 4), (6,)], [(3, 4)], 24, 4 * (24 + 6 + 12)),
    ("FusedBatchNormGradV3", {"T": F32, "U": F32}, [(2, 4, 4, 3)] * 2 + [(3,)] * 4,
     [(2, 4, 4, 3), (3,), (3,), (0,), (0,)], 11 * 96, 4 * (192 + 12 + 96 + 6)),
    ("SoftmaxCrossEntropyWithLogits", {"T": F32}, [(3, 4), (3, 4)], [(3,), (3, 4)], 8 * 12, 4 * (24 + 3 + 12)),
    ("UnsortedSegmentSum", {"T": F32, "Tindices": I32, "Tnumsegments": I32}, [(6, 4), (6,), ()], [(9, 4)], 24,
     4 * (24 + 6 + 1 + 36)),
    ("Cumsum", {"T": F32, "Tidx": I32}, [(6, 4), ()], [(6, 4)], 24, 4 * (24 + 1 + 24)),
    ("Where", {"T": tf.bool}, [(6, 4)], [(5, 2)], 24, 24 + 8 * 10),
    ("Unique", {"T": I32, "out_idx": I32}, [(100,)], [(7,), (100,)], 100, 4 * 207),
    ("TopKV2", {"T": F32}, [(10, 1000), ()], [(10, 8), (10, 8)], 10_000 * 4, 4 * (10_000 + 1 + 80 + 80)),
    ("LowerBound", {"T": F32}, [(2, 1000), (2, 5)], [(2, 5)], 10 * 10, 4 * (2000 + 10 + 10)),
    ("RandomUniform", {"T": I32, "dtype": F32}, [(2,)], [(50, 40)], 20 * 2000, 4 * (2 + 2000)),
    # linear algebra and transforms
    ("Cholesky", {"T": F64}, [(5, 12, 12)], [(5, 12, 12)], 5 * 12**3 // 3, 8 * 2 * 720),
    ("MatrixInverse", {"T": F64}, [(12, 12)], [(12, 12)], 2 * 12**3, 8 * 288),
    ("MatrixDeterminant", {"T": F64}, [(12, 12)], [()], 2 * 12**3 // 3, 8 * 145),
    ("MatrixSolve", {"T": F64}, [(12, 12), (12, 2)], [(12, 2)], 2 * 12**3 // 3 + 2 * 144 * 2, 8 * (144 + 48)),
    ("MatrixTriangularSolve", {"T": F64}, [(12, 12), (12, 2)], [(12, 2)], 144 * 2, 8 * (144 + 48)),
    ("Qr", {"T": F64}, [(12, 6)], [(12, 6), (6, 6)], 4 * 12 * 36 - 4 * 216 // 3, 8 * (72 + 72 + 36)),
    ("Svd", {"T": F64}, [(12, 6)], [(6,), (12, 6), (6, 6)], 14 * 12 * 36 + 8 * 216, 8 * (72 + 6 + 72 + 36)),
    ("Svd", {"T": F64, "compute_uv": False}, [(2, 6, 12)], [(2, 6), (0,), (0,)],
     2 * (4 * 12 * 36 - 4 * 216 // 3), 8 * (144 + 12)),
    ("Lu", {"T": F64, "output_idx_type": I32}, [(12, 12)], [(12, 12), (12,)], 2 * 12**3 // 3, 8 * 288 + 4 * 12),
    ("MatrixSolveLs", {"T": F64}, [(12, 6), (12, 2), ()], [(6, 2)], 12 * 36 + 2 * 12 * 6 * 2 + 72 + 2 * 36 * 2,
     8 * (72 + 24 + 1 + 12)),
    ("Eig", {"T": F64, "Tout": tf.complex128}, [(12, 12)], [(12,), (12, 12)], 25 * 12**3, 8 * 144 + 16 * 156),
    ("SelfAdjointEigV2", {"T": F64, "compute_v": False}, [(12, 12)], [(12,), (0,)], 4 * 12**3 // 3, 8 * 156),
    ("SelfAdjointEigV2", {"T": F64}, [(12, 12)], [(12,), (12, 12)], 9 * 12**3, 8 * (144 + 12 + 144)),
    ("FFT", {"Tcomplex": tf.complex64}, [(3, 256)], [(3, 256)], 5 * 768 * 8, 8 * 2 * 768),
    ("FFT2D", {"Tcomplex": tf.complex64}, [(3, 16, 16)], [(3, 16, 16)], 5 * 768 * 8, 8 * 2 * 768),
    ("RFFT", {"Treal": F32, "Tcomplex": tf.complex64}, [(3, 256), (1,)], [(3, 129)], 5 * 768 * 8 // 2,
     4 * 768 + 4 + 8 * 387),
    # what only looks, and what moves without computing
    ("Reshape", {"T": F32, "Tshape": I32}, [(3, 4), (1,)], [(12,)], 0, 0),
    ("Identity", {"T": F32}, [(3, 4)], [(3, 4)], 0, 0),
    ("ExpandDims", {"T": F32}, [(3,), ()], [(3, 1)], 0, 0),
    ("Shape", {"T": F32}, [(3, 4)], [(2,)], 0, 0),
    ("Transpose", {"T": F32}, [(3, 4), (2,)], [(4, 3)], 0, 4 * (12 + 2 + 12)),
    ("ConcatV2", {"T": F32, "N": 2}, [(2, 3), (4, 3), ()], [(6, 3)], 18, 4 * (18 + 1 + 18)),
    ("Slice", {"T": F32, "Index": I32}, [(1000, 4), (2,), (2,)], [(3, 4)], 0, 4 * (4 + 2 * 12)),
    ("GatherV2", {"Tparams": F32, "Tindices": I64, "Taxis": I32}, [(10**6, 64), (32,), ()], [(32, 64)], 0,
     8 * 32 + 4 + 2 * 4 * 2048),
    ("SparseSegmentSum", {"T": F32, "Tidx": I32}, [(1000, 8), (20,), (20,)], [(5, 8)], 160,
     4 * (20 * 8 + 20 + 20 + 40)),
    ("DynamicPartition", {"T": F32, "num_partitions": 2}, [(6, 4), (6,)], [(2, 4), (4, 4)], 0, 4 * (24 + 6 + 24)),
    ("TensorListStack", {"element_dtype": F32}, [HANDLE, (1,)], [(6, 4)], 0, 4 * (1 + 2 * 24)),
    ("TensorArrayGatherV3", {"dtype": F32}, [HANDLE, (6,), ()], [(6, 4)], 0, 4 * (6 + 1 + 2 * 24)),
    ("TensorArrayWriteV3", {"T": F32}, [HANDLE, (), (6, 4), ()], [()], 0, 0),
    # variables
    ("ReadVariableOp", {"dtype": F32}, [HANDLE], [(1000,)], 0, 0),
    ("ResourceGather", {"dtype": F32, "Tindices": I64}, [HANDLE, (32,)], [(32, 64)], 0, 8 * 32 + 2 * 4 * 2048),
    ("AssignVariableOp", {"dtype": F32}, [HANDLE, (1000,)], [], 0, 4 * 2 * 1000),
    ("AssignSubVariableOp", {"dtype": F32}, [HANDLE, (1000,)], [], 1000, 4 * 3 * 1000),
    ("Assign", {"T": F32}, [(1000,), (1000,)], [(1000,)], 0, 4 * 2 * 1000),
    ("AssignAdd", {"T": F32}, [(1000,), (1000,)], [(1000,)], 1000, 4 * 3 * 1000),
    ("ScatterAdd", {"T": F32, "Tindices": I64}, [(10**6, 4), (3,), (3, 4)], [(10**6, 4)], 12, 8 * 3 + 4 * 3 * 12),
    ("ScatterUpdate", {"T": F32, "Tindices": I64}, [(10**6, 4), (3,), (3, 4)], [(10**6, 4)], 12, 8 * 3 + 4 * 2 * 12),
    ("ResourceApplyGradientDescent", {"T": F32}, [HANDLE, (), (1000,)], [], 2000, 4 * (1 + 3 * 1000)),
    ("ApplyMomentum", {"T": F32}, [(1000,)] * 2 + [(), (1000,), ()], [(1000,)], 4000, 4 * (1 + 5 * 1000 + 1)),
    ("ApplyAdam", {"T": F32}, [(10,)] * 3 + [()] * 6 + [(10,)], [(10,)], 120, 4 * (6 + 7 * 10)),
    ("SparseApplyAdagrad", {"T": F32, "Tindices": I64}, [(10**6, 4)] * 2 + [(), (3, 4), (3,)], [(10**6, 4)], 6 * 12,
     4 * 1 + 8 * 3 + 4 * 5 * 12),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs", "ins", "outs", "flops", "nbytes"), TABLE, ids=[row[0] for row in TABLE])
def test_costs_by_hand(op, attrs, ins, outs, flops, nbytes):
    cost = costs.of_node(make_node("it", op, **attrs), ins, outs)
    assert cost == Cost(flops, nbytes)


def test_multiply_accumulates_of_a_small_net_are_exact():
    """LeNet-5 as of 1998 but with all maps connected; the counts are those of its layers, written out."""
    with Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 32, 32, 1])
        c1 = tf.nn.conv2d(x, tf.zeros([5, 5, 1, 6]), [1, 1, 1, 1], "VALID")
        s2 = tf.nn.avg_pool(c1, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        c3 = tf.nn.conv2d(s2, tf.zeros([5, 5, 6, 16]), [1, 1, 1, 1], "VALID")
        s4 = tf.nn.avg_pool(c3, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        c5 = tf.matmul(tf.reshape(s4, [-1, 400]), tf.zeros([400, 120]))
        f6 = tf.matmul(c5, tf.zeros([120, 84]))
        out = tf.matmul(f6, tf.zeros([84, 10]))
        macs = [costs.of_op(y.op, batch=3).flops // 2 // 3 for y in (c1, c3, c5, f6, out)]
    assert macs == [28 * 28 * 6 * 25, 10 * 10 * 16 * 150, 48_000, 10_080, 840]


def test_gradients_of_a_convolution_cost_as_much_as_itself():
    with Graph().as_default():
        x, w = tf.zeros([2, 9, 9, 3]), tf.zeros([3, 3, 3, 8])
        y = tf.nn.conv2d(x, w, [1, 2, 2, 1], "VALID")
        both = tf.gradients(y, [x, w])
        assert {costs.of_op(t.op).flops for t in (y, *both)} == {2 * 2 * 4 * 4 * 8 * 27}


# -- how much is known ------------------------------------------------------------------------------------------


def test_arrays_tensors_shapes_and_tuples_tell_the_same():
    with Graph().as_default():
        y = tf.matmul(tf.zeros([3, 4]), tf.zeros([4, 5]))
    node = y.op.node()
    arrays = [np.zeros((3, 4), np.float32), np.zeros((4, 5), np.float32)], [np.zeros((3, 5), np.float32)]
    expected = Cost(120, 188)
    assert costs.of_op(y.op) == expected
    assert costs.of_node(node, *arrays) == expected
    assert costs.of_node(node, [(3, 4), tf.TensorShape([4, 5])], [[3, 5]]) == expected


def test_a_size_that_is_not_known_is_an_error_that_names_the_op():
    with Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4])
        y = tf.matmul(x, tf.zeros([4, 5]), name="layer")
        z = tf.tanh(tf.placeholder(tf.float32), name="any")
    assert costs.of_op(y.op, batch=3) == Cost(120, 188)
    with pytest.raises(ValueError, match=r"cost of op 'layer' \(MatMul\) is unknown: .* \(\?, 4\)\. Give `batch`"):
        costs.of_op(y.op)
    with pytest.raises(ValueError, match=r"cost of op 'any' \(Tanh\) is unknown: .* <unknown>"):
        costs.of_op(z.op, batch=3)


def test_a_variable_by_reference_is_as_large_as_its_value():
    with Graph().as_default():
        v = tf.Variable(np.zeros(7, np.float32))
        with tf.Session() as sess:
            sess.run(v.initializer)
            assert costs.of_op(v.initializer) == Cost(0, 56)
            assert costs.of_op(tf.assign_add(v, tf.ones([7])).op) == Cost(7, 84)


def test_types_that_nodes_compute_in():
    with Graph().as_default():
        assert costs.dtype_of((tf.zeros([2], tf.float16) + 1).op.node()) == "float16"
        assert costs.dtype_of(tf.cast(tf.zeros([2]), tf.float64).op.node()) == "float64"
        drawn = apply_op("RandomUniform", None, shape=tf.constant([2]), dtype=tf.float64)
        assert costs.dtype_of(drawn.op.node()) == "float64"
        assert costs.dtype_of(tf.no_op().node()) == "float32"


# -- what takes no time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "Const", "NoOp", "Placeholder", "_Send", "_Recv", "_Arg", "_Retval", "Switch", "Merge", "Enter", "NextIteration",
    "QueueDequeueV2", "QueueEnqueueManyV2", "AccumulatorTakeGradient", "IteratorGetNext", "ControlTrigger", "Identity",
    "Reshape", "Shape", "ReadVariableOp", "VariableV2",
])  # fmt: skip
def test_ops_that_are_free(name):
    assert costs.is_free(op_registry.get(name))


@pytest.mark.parametrize("name", ["MatMul", "Transpose", "Assign", "ApplyAdam", "Sum", "RandomUniform", "GatherV2"])
def test_ops_that_are_not_free(name):
    assert not costs.is_free(op_registry.get(name))


def test_views_and_reads_of_variables_are_not_launched():
    with Graph().as_default():
        x = tf.zeros([3, 4])
        for y in (tf.reshape(x, [12]), tf.identity(x), tf.expand_dims(x, 0), tf.squeeze(x), tf.shape(x)):
            assert costs.seconds(costs.of_op(y.op), gpu("K40")) == 0


# -- time -----------------------------------------------------------------------------------------------------------

ROUND = Processor("round", "GPU", {"float32": 1e12, "float16": 4e12}, 1 << 30, 1e11, 1e-6, 10, "made up")


def test_the_roofline():
    assert costs.seconds(Cost(10**9, 10), ROUND, efficiency=1.0) == 1e-6 + 1e-3  # arithmetic
    assert costs.seconds(Cost(10, 10**8), ROUND, efficiency=1.0) == 1e-6 + 1e-3  # memory
    assert costs.seconds(Cost(10**9, 10), ROUND, tf.float16, efficiency=0.5) == 1e-6 + 0.5e-3
    assert costs.seconds(Cost(10**9, 10), ROUND) == 1e-6 + 1e-3 / costs.EFFICIENCY
    assert costs.seconds(Cost(0, 0), ROUND) == 0


def test_kernels_on_all_cores_together_are_as_fast_as_the_host():
    host = cpu("2x Xeon E5-2690 v3")
    one, all_ = (costs.seconds(Cost(10**9, 10**6), host, cores=n) - host.launch_s for n in (1, host.cores))
    assert one == pytest.approx(host.cores * all_)
    assert costs.seconds(Cost(10**9, 10**6), host, cores=1000) - host.launch_s == pytest.approx(all_)


@pytest.mark.parametrize("efficiency", [0, -1, float("nan")])
def test_an_efficiency_is_above_0(efficiency):
    with pytest.raises(ValueError, match="above 0"):
        costs.seconds(Cost(1, 1), ROUND, efficiency=efficiency)


def test_costs_add_up():
    assert Cost(1, 2) + Cost(3, 4) == Cost(4, 6)
    assert sum([Cost(1, 2), Cost(3, 4)], Cost(0, 0)) == Cost(4, 6)


def test_time_scales_with_its_constants():
    """Twice as fast in everything: half the time."""
    random = np.random.default_rng(0)
    twice = Processor("twice", "GPU", {"float32": 2e12, "float16": 8e12}, 1 << 30, 2e11, 0.5e-6, 10, "made up")
    for flops, nbytes in random.integers(1, 10**10, (50, 2)).tolist():
        cost = Cost(flops, nbytes)
        assert costs.seconds(cost, ROUND) == pytest.approx(2 * costs.seconds(cost, twice), rel=1e-12)


def test_an_update_says_how_often_it_touches_its_variable():
    with Graph().as_default():
        var = apply_op("VariableV2", "v", shape=tf.TensorShape([10]), dtype=tf.float32)
        step = apply_op("ApplyGradientDescent", "step", var=var, alpha=tf.constant(0.1), delta=tf.zeros([10]))
        assert costs.of_op(step.op) == Cost(20, 4 * (1 + 30))
