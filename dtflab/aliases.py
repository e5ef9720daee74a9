"""Old import paths: `import tensorflow as tf` gives dtflab, for a program that is run by `python -m dtflab run`.

A path of TensorFlow is the same path in dtflab (`tensorflow.python.client.timeline`), or what the table says. Any other
module under `tensorflow.python` and `tensorflow.core`, which old repositories import although they are private, is an
`Insides`: it finds each name in dtflab's module of the same name, or in the public namespaces.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import dtflab
from dtflab.api import raw_ops
from dtflab.base.missing_names import instead_of, missing

ROOT = "tensorflow"
_INSIDES = (f"{ROOT}.python", f"{ROOT}.core")
_ELSEWHERE = {
    "tensorflow.python.platform.tf_logging": "dtflab.base.tf_logging",
    "tensorflow.python.summary.writer.writer": "dtflab.train.summaries.summary_writer",
    "tensorflow.python.summary.writer.writer_cache": "dtflab.train.summaries.summary_writer",
    "tensorflow.examples.tutorials.mnist.input_data": "dtflab.datasets.mnist",
    "tensorflow.contrib.learn.python.learn.datasets.mnist": "dtflab.datasets.mnist",
}
_DEPTH = 3  # of the modules: `tensorflow.python.ops.array_ops`
_DEEPER = tuple(  # folders of modules
    f"{ROOT}.{folder}" for folder in ("core.lib.core", "python.lib.core", "python.lib.io", "python.summary.writer")
)
_SEVERAL = {  # of ours make one module of TensorFlow's
    "basic_session_run_hooks": ("hooks", "recording_hooks"),
    "control_flow_ops": ("control.functions", "control_flow_context", "cond", "case", "while_loop", "while_context"),
    "init_ops": ("initializers",),
    "input": ("input", "batching"),
    "meta_graph": ("meta_graph", "meta_graph_import"),
    "device": ("device_spec",),
    "monitored_session": ("monitored_session", "wrapped_session"),
    "ops": ("graph", "operation", "scopes", "indexed_slices", "convert", "gradients"),
    "ref_variable": ("reference_variable",),
    "session": ("session", "client"),
    "tensor_util": ("static_value", "tensor_proto"),
    "variable_scope": ("variable_scope", "variable_store", "variable_slices"),
    "variables": ("variables", "reference_variable", "partitioned_variables"),
}
_NOW = {  # names within TensorFlow that differ from the public ones, or from dtflab's
    "DeviceSpecV1": "DeviceSpec",
    "GetTempDir": "get_temp_dir",
    "MakeNdarray": "make_ndarray",
    "VariableAggregationV2": "VariableAggregation",
    "VariableV1": "Variable",
    "_DeviceAttributes": "DeviceAttributes",
    "_PartitionInfo": "PartitionInfo",
    "_SwitchRefOrTensor": "switch_ref_or_tensor",
    "_default_graph_stack": "default_graph_stack",
    "_default_session_stack": "default_session_stack",
    "_get_saver_or_default": "get_saver_or_default",
    "decode_raw_v1": "decode_raw",
    "identity_initializer": "Identity",
}
_ROOMS = ("graph", "ops", "runtime", "cluster", "train", "files", "api", "protos")  # with the folders in them


class Insides(ModuleType):
    """A private module of TensorFlow, by way of dtflab's names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__name__.count(".") < _DEPTH:  # a folder has modules, but no other names
            raise AttributeError(name)
        for place in _places(*self.__name__.split(".")[-2:]):
            if hasattr(place, _NOW.get(name, name)):
                found = getattr(place, _NOW.get(name, name))
                setattr(self, name, found)
                return found
        raise missing(self.__name__, name, dir(dtflab))


@functools.cache
def _places(folder: str, module: str) -> list[Any]:
    """Where a name of TensorFlow's module of that name may be: in dtflab's own of that name, else in what is public.

    dtflab's `resource_variable` is TensorFlow's `resource_variable_ops`, and its `saved_model` is a folder there. What
    TensorFlow generates comes first in modules of nothing else, and last in those that have it next to functions of
    their own: `io_ops.restore_v2`.
    """
    stems = (*_SEVERAL.get(module, (module, module.removesuffix("_ops").removesuffix("_lib"))), folder)
    own = [f"dtflab.{module}", *(f"{room}.{stem}" for stem in stems for room in _rooms())]
    found = [importlib.import_module(path) for path in own if _spec(path) is not None]
    namespaces = [getattr(dtflab, name) for name in ("errors", "train", *dtflab._NAMESPACES)]
    generated = [_Generated()] if module.endswith("_ops") else []
    if module.startswith("gen_") or module == "training_ops":
        return [*generated, *found, dtflab, *namespaces]
    return [*found, dtflab, *namespaces, *generated]


@functools.cache
def _rooms() -> list[str]:
    """Each room, followed by its folders: `dtflab.ops`, `dtflab.ops.arrays`, …"""
    found = []
    for room in map("dtflab.{}".format, _ROOMS):
        inside = pkgutil.iter_modules(importlib.import_module(room).__path__, room + ".")
        found += [room, *(module.name for module in inside if module.ispkg)]
    return found


class _Generated:
    """Functions that TensorFlow generates: `gen_math_ops.mat_mul` adds a MatMul, and takes arguments by place, too."""

    def __getattr__(self, name: str) -> Any:
        op_types = {op_type.lower(): op_type for op_type in dir(raw_ops)}
        if name.replace("_", "") not in op_types:
            raise AttributeError(name)
        return raw_ops.function_of(op_types[name.replace("_", "")], by_name_only=False)


class Aliases(MetaPathFinder, Loader):
    """Finds modules of TensorFlow in dtflab."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != ROOT:
            return None
        if not (_target(fullname) or _is_inside(fullname) or _leads_somewhere(fullname)):
            parent, _, name = fullname.rpartition(".")
            if isinstance(sys.modules.get(parent), Insides):
                raise ImportError(str(missing(parent, name, dir(dtflab))))
            if fullname.startswith(f"{ROOT}.contrib."):  # under its own name `from tensorflow.contrib import` hides it
                said = f"This program runs on dtflab, which has no {fullname}.{instead_of('tf.contrib')}"
                raise ModuleNotFoundError(said, name=f"{ROOT}.contrib")
            raise ModuleNotFoundError(
                f"This program runs on dtflab, which has no {fullname}. What TF1 programs import from there may be "
                "under tf itself.",
                name=fullname,
            )
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return Insides(spec.name) if _is_inside(spec.name) else None

    def exec_module(self, module: ModuleType) -> None:
        """Put dtflab's module in the place of the new one, if there is one; else hang it where its path leads."""
        target = _target(module.__name__)
        if target is not None:
            sys.modules[module.__name__] = importlib.import_module(target)
            return
        folder, _, name = module.__name__.rpartition(".")
        own = sys.modules.get("dtflab" + folder.removeprefix(ROOT))  # what `tensorflow.python` is as an attribute
        if own is not None and not hasattr(own, name):
            setattr(own, name, module)
        real = sys.modules.get("dtflab" + module.__name__.removeprefix(ROOT))
        if real is not None:  # a folder that dtflab has, too, with modules that hold something
            vars(module).update((key, value) for key, value in vars(real).items() if isinstance(value, ModuleType))


def _target(fullname: str) -> str | None:
    """The module of dtflab that stands for one of TensorFlow; of the insides, only one that holds something."""
    own = _ELSEWHERE.get(fullname) or "dtflab" + fullname.removeprefix(ROOT)
    spec = _spec(own)
    if spec is None or (_is_inside(fullname) and spec.submodule_search_locations is not None):
        return None
    return own


def _spec(path: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(path)
    except ModuleNotFoundError:  # nor is there the folder
        return None


def _is_inside(fullname: str) -> bool:
    known = fullname.count(".") <= _DEPTH or fullname.startswith(_DEEPER)
    return known and any(fullname == inside or fullname.startswith(inside + ".") for inside in _INSIDES)


def _leads_somewhere(fullname: str) -> bool:
    """True for the folders on the way to a path in the table."""
    return any(path.startswith(fullname + ".") for path in _ELSEWHERE)


def install() -> None:
    """From now on, `import tensorflow` imports dtflab in this process; RuntimeError if TensorFlow is already loaded."""
    if ROOT in sys.modules and sys.modules[ROOT] is not dtflab:
        raise RuntimeError("TensorFlow itself is already loaded in this process; run the program in a new one.")
    if not any(isinstance(finder, Aliases) for finder in sys.meta_path):
        importlib.import_module("dtflab.python")
        importlib.import_module("urllib.request")  # TensorFlow loads it; programs that only `import urllib` use it
        dtflab.__version__ = dtflab.VERSION  # the program asks for that of TensorFlow
        sys.meta_path.insert(0, Aliases())
