"""Signatures: inputs and outputs of a saved model, under names that do not depend on its graph.

Stands for `python/saved_model/{signature_constants,signature_def_utils_impl,utils_impl}.py`.
Left out: signatures of training (Estimator), composite tensors other than SparseTensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import get_default_graph, prepend_scope
from dtflab.ops.sparse.sparse_tensor import SparseTensor
from dtflab.protos.meta_graph_pb2 import SignatureDef, TensorInfo

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
CLASSIFY_INPUTS = "inputs"
CLASSIFY_METHOD_NAME = "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES = "classes"
CLASSIFY_OUTPUT_SCORES = "scores"
PREDICT_INPUTS = "inputs"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"
PREDICT_OUTPUTS = "outputs"
REGRESS_INPUTS = "inputs"
REGRESS_METHOD_NAME = "tensorflow/serving/regress"
REGRESS_OUTPUTS = "outputs"


def build_tensor_info(tensor: Any) -> TensorInfo:
    """Name, dtype and shape of a tensor, variable or SparseTensor."""
    info = TensorInfo(tensor_shape=tensor.get_shape().as_proto())
    info.dtype = dtypes.as_dtype(tensor.dtype).as_datatype_enum  # type: ignore[assignment]  # any number
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


def get_tensor_from_tensor_info(tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None) -> Any:
    """The tensor or SparseTensor that a TensorInfo names, in `graph` (the default one) under `import_scope`."""
    graph = graph or get_default_graph()

    def find(name: str) -> Tensor:
        return graph.get_tensor_by_name(prepend_scope(name, import_scope))

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return find(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        names = parts.indices_tensor_name, parts.values_tensor_name, parts.dense_shape_tensor_name
        return SparseTensor(*map(find, names))
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}. Expected `coo_sparse` or `name`.")


def build_signature_def(
    inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None, method_name: str | None = None
) -> SignatureDef:
    """A SignatureDef of TensorInfos."""
    message = SignatureDef(method_name=method_name or "")
    for given, field in ((inputs, message.inputs), (outputs, message.outputs)):
        for key, info in (given or {}).items():
            field[key].CopyFrom(info)
    return message


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """The signature of a model that maps any tensors to any others."""
    for side, name in ((inputs, "inputs"), (outputs, "outputs")):
        if not side:
            raise ValueError(f"Prediction `{name}` cannot be None or empty.")
    taken, given = ({key: build_tensor_info(tensor) for key, tensor in side.items()} for side in (inputs, outputs))
    return build_signature_def(taken, given, PREDICT_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> SignatureDef:
    """The signature of a model that maps serialized Examples to numbers."""
    if examples is None or predictions is None:
        raise ValueError(f"Regression `{'examples' if examples is None else 'predictions'}` cannot be None.")
    return build_signature_def(
        {REGRESS_INPUTS: _checked(examples, dtypes.string, "Regression input")},
        {REGRESS_OUTPUTS: _checked(predictions, dtypes.float32, "Regression output")},
        REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> SignatureDef:
    """The signature of a model that maps serialized Examples to classes, scores of them, or both."""
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    outputs = {}
    if classes is not None:
        outputs[CLASSIFY_OUTPUT_CLASSES] = _checked(classes, dtypes.string, "Classification classes")
    if scores is not None:
        outputs[CLASSIFY_OUTPUT_SCORES] = _checked(scores, dtypes.float32, "Classification scores")
    inputs = {CLASSIFY_INPUTS: _checked(examples, dtypes.string, "Classification input")}
    return build_signature_def(inputs, outputs, CLASSIFY_METHOD_NAME)


def _checked(tensor: Any, dtype: dtypes.DType, what: str) -> TensorInfo:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{what} must be a Tensor. Found {type(tensor)}.")
    if tensor.dtype != dtype:
        raise ValueError(f"{what} tensors must be of type {dtype.name}. Found tensors with type {tensor.dtype.name}.")
    return build_tensor_info(tensor)


def is_valid_signature(signature_def: Any) -> bool:
    """Whether a SignatureDef is one of the three kinds above."""
    if signature_def is None:
        return False
    inputs = {key: info.dtype for key, info in signature_def.inputs.items()}
    outputs = {key: info.dtype for key, info in signature_def.outputs.items()}
    text, number = dtypes.string.as_datatype_enum, dtypes.float32.as_datatype_enum
    if signature_def.method_name == PREDICT_METHOD_NAME:
        return bool(inputs and outputs)
    if signature_def.method_name == REGRESS_METHOD_NAME:
        return inputs == {REGRESS_INPUTS: text} and outputs == {REGRESS_OUTPUTS: number}
    known = {CLASSIFY_OUTPUT_CLASSES: text, CLASSIFY_OUTPUT_SCORES: number}
    return (
        signature_def.method_name == CLASSIFY_METHOD_NAME
        and inputs == {CLASSIFY_INPUTS: text}
        and bool(outputs)
        and outputs.items() <= known.items()
    )
