"""tf.saved_model: models as directories, as TF1 writes and loads them, and its modules of the same names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.train.checkpoints import saved_model as _saved_model, signatures as _signatures
from dtflab.train.checkpoints.saved_model import ASSETS_DIRECTORY, ASSETS_KEY, GPU, LEGACY_INIT_OP_KEY, MAIN_OP_KEY
from dtflab.train.checkpoints.saved_model import SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT
from dtflab.train.checkpoints.saved_model import SAVED_MODEL_SCHEMA_VERSION, SERVING, TPU, TRAINING, VARIABLES_DIRECTORY
from dtflab.train.checkpoints.saved_model import VARIABLES_FILENAME, SavedModelBuilder as Builder, contains_saved_model
from dtflab.train.checkpoints.saved_model import load, main_op_with_restore, simple_save
from dtflab.train.checkpoints.signatures import CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME, CLASSIFY_OUTPUT_CLASSES
from dtflab.train.checkpoints.signatures import CLASSIFY_OUTPUT_SCORES, DEFAULT_SERVING_SIGNATURE_DEF_KEY
from dtflab.train.checkpoints.signatures import PREDICT_INPUTS, PREDICT_METHOD_NAME, PREDICT_OUTPUTS, REGRESS_INPUTS
from dtflab.train.checkpoints.signatures import REGRESS_METHOD_NAME, REGRESS_OUTPUTS, build_signature_def
from dtflab.train.checkpoints.signatures import build_tensor_info, classification_signature_def
from dtflab.train.checkpoints.signatures import get_tensor_from_tensor_info, is_valid_signature, predict_signature_def
from dtflab.train.checkpoints.signatures import regression_signature_def

maybe_saved_model_directory = contains_saved_model


def _part(module: Any, *names: str) -> SimpleNamespace:
    return SimpleNamespace(**{name: getattr(module, name) for name in names})


# What TF1 has as modules inside of this one.
builder = SimpleNamespace(SavedModelBuilder=Builder)
loader = SimpleNamespace(load=load, maybe_saved_model_directory=maybe_saved_model_directory)
main_op = _part(_saved_model, "main_op", "main_op_with_restore")
tag_constants = _part(_saved_model, "SERVING", "TRAINING", "GPU", "TPU")
constants = _part(
    _saved_model,
    *("ASSETS_DIRECTORY", "ASSETS_KEY", "LEGACY_INIT_OP_KEY", "MAIN_OP_KEY", "SAVED_MODEL_FILENAME_PB"),
    *("SAVED_MODEL_FILENAME_PBTXT", "SAVED_MODEL_SCHEMA_VERSION", "VARIABLES_DIRECTORY", "VARIABLES_FILENAME"),
)
signature_constants = _part(_signatures, *(name for name in vars(_signatures) if name.isupper()))
signature_def_utils = _part(
    _signatures,
    *("build_signature_def", "classification_signature_def", "is_valid_signature", "predict_signature_def"),
    "regression_signature_def",
)
utils = _part(_signatures, "build_tensor_info", "get_tensor_from_tensor_info")

__getattr__ = _missing_in("tf.saved_model", globals())
