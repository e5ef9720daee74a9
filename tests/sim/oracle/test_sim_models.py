"""Networks as graphs next to those of Keras: each convolution's, each dense layer's and each pool's shapes."""

from __future__ import annotations

import collections
import importlib

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

from dtflab.sim import models

# tf_keras calls what TensorFlow deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be removed:UserWarning")

KERAS = {
    "inception_v3": "InceptionV3",
    "resnet50": "ResNet50",
    "resnet101": "ResNet101",
    "resnet152": "ResNet152",
    "vgg16": "VGG16",
    "vgg19": "VGG19",
}
OPS = {"Conv2D": "Conv2D", "MatMul": "Dense", "MaxPool": "MaxPooling2D", "AvgPool": "AveragePooling2D"}


@pytest.mark.parametrize("name", KERAS)
def test_layers_are_those_of_keras(name):
    ours = models.get(name)(batch=1)
    with real_tf.Graph().as_default():
        theirs = getattr(importlib.import_module("tf_keras").applications, KERAS[name])(weights=None)
        assert shapes_here(ours) == shapes_there(theirs)
        assert ours.parameters == theirs.count_params()


def shapes_there(model):
    found = collections.Counter()
    for layer in model.layers:
        if type(layer).__name__ in OPS.values():
            kernel = [tuple(w.shape.as_list()) for w in layer.weights[:1]]
            found[type(layer).__name__, *kernel, tuple(layer.output.shape.as_list()[1:])] += 1
    return found


def shapes_here(model):
    found = collections.Counter()
    for op in model.graph.get_operations():
        if op.type in OPS:
            kernel = [tuple(op.inputs[1].shape.as_list())] if len(op.inputs) > 1 else []
            found[OPS[op.type], *kernel, tuple(op.outputs[0].shape.as_list()[1:])] += 1
    return found
