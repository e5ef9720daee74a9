"""TestCase, the base class of TF1's own tests: sessions, evaluation, and comparison of arrays, devices, messages.

Stands for `TensorFlowTestCase` of `python/framework/test_util.py`; the rest of it is absl's TestCase. Left out: eager
mode, ragged tensors, GPUs that must be there.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import random
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from absl.testing import absltest
from google.protobuf import text_format
from google.protobuf.message import Message

import dtflab.machine.clock as _clock
from dtflab.base import errors
from dtflab.graph import default_stacks, scopes
from dtflab.graph.device_spec import DeviceSpec
from dtflab.graph.graph import Graph
from dtflab.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.random_seed import set_random_seed
from dtflab.ops.variables.variable import Variable
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.runtime.session import Session

_SEED = 87654321  # TensorFlow's graph-level seed in tests


@functools.cache
def get_temp_dir() -> str:
    """A folder for the files of this process's tests, which is deleted at its end."""
    folder = tempfile.mkdtemp(prefix="dtflab_test_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class CheckedThread:
    """A thread whose failures are those of its test."""

    def __init__(self, test: TestCase, target: Callable[..., Any], args: Any = (), kwargs: Any = None) -> None:
        self._test = test
        self._target = target
        self._args, self._kwargs = args or (), kwargs or {}
        self._error: BaseException | None = None
        self._thread: Any = None

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        """Begin to run the target."""
        self._thread = _clock.REAL.spawn(self._run, name="checked thread")

    def join(self) -> None:
        """Wait for its end; a failure in it fails the test."""
        self._thread.join()
        if self._error is not None:
            self._test.fail(f"Error in checkedThread: {self._error!r}")

    def is_alive(self) -> bool:
        """True while it runs."""
        return bool(self._thread.is_alive())

    def check_termination(self) -> None:
        """Fail if it still runs."""
        if self._thread is not None and self._thread.is_alive():
            self._test.fail("A checked thread was not terminated.")


class TestCase(absltest.TestCase):
    """A test with a fresh default graph, fixed seeds, and its own session when it asks for one."""

    __test__ = False  # pytest: subclasses are tests, this is not

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._tempdir: str | None = None
        self._cached: tuple[Session, Any, Any, bool] | None = None

    def setUp(self) -> None:
        super().setUp()
        self._close_cached_session()
        random.seed(_SEED)
        np.random.seed(_SEED)  # noqa: NPY002 - what the tests themselves draw from
        default_stacks.default_graph_stack.reset()
        default_stacks.default_session_stack.reset()
        scopes.reset_default_graph()
        set_random_seed(_SEED)

    def tearDown(self) -> None:
        for thread in self._threads:
            thread.check_termination()
        self._close_cached_session()
        super().tearDown()

    # ---- sessions ----

    def _close_cached_session(self) -> None:
        if self._cached is not None:
            self._cached[0].close()
            self._cached = None

    def get_temp_dir(self) -> str:
        """A folder of this test, made at the first call."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    @contextlib.contextmanager
    def session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """A new session, the default inside, closed at the end."""
        with Session(graph=graph or scopes.get_default_graph(), config=_soft(config, force_gpu)) as sess:
            yield sess

    @contextlib.contextmanager
    def cached_session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> Iterator[Session]:
        """The session of this test, which stays open to its end; ValueError if asked for with other arguments."""
        if self._cached is None:
            sess = Session(graph=graph or scopes.get_default_graph(), config=_soft(config, force_gpu))
            self._cached = (sess, graph, config, force_gpu)
        sess, made_for, made_with, on_gpu = self._cached
        if graph is not None and graph is not made_for and graph is not sess.graph:
            raise ValueError("The graph used to get the cached session is different than the one that created it.")
        if config is not None and config is not made_with:
            raise ValueError("The config used to get the cached session is different than the one that created it.")
        if force_gpu is not on_gpu:
            raise ValueError("The force_gpu used to get the cached session is different than the one that created it.")
        with sess.graph.as_default(), sess.as_default():
            yield sess

    def test_session(
        self,
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        use_gpu: bool = True,
        force_gpu: bool = False,
    ) -> contextlib.AbstractContextManager[Session]:
        """`cached_session` without a graph; with one, a new session."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test, by its name only.")
        return (self.cached_session if graph is None else self.session)(graph, config, use_gpu, force_gpu)

    test_session.__test__ = False  # type: ignore[attr-defined]

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors or operations, in the default session or one of the test's own."""
        sess = default_stacks.get_default_session()
        if sess is not None:
            return sess.run(tensors)
        with self.test_session() as own:
            return own.run(tensors)

    def checkedThread(self, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> CheckedThread:
        """A thread that must have ended when the test does."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread

    # ---- names that unittest had in TF1's days, and lost in Python 3.12 ----

    assertEquals = absltest.TestCase.assertEqual
    assertNotEquals = absltest.TestCase.assertNotEqual
    assertAlmostEquals = absltest.TestCase.assertAlmostEqual
    assertRaisesRegexp = absltest.TestCase.assertRaisesRegex
    assertRegexpMatches = absltest.TestCase.assertRegex

    # ---- arrays ----

    def _GetNdArray(self, a: Any) -> Any:
        if isinstance(a, Tensor | Variable | IndexedSlices):
            a = self.evaluate(a)
        return a if isinstance(a, np.ndarray | np.generic) else np.array(a)

    def evaluate_if_both_tensors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Both values from one step, if both are tensors."""
        kinds = (Tensor, Variable, Operation)
        return tuple(self.evaluate([a, b])) if isinstance(a, kinds) and isinstance(b, kinds) else (a, b)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Equal shapes and elements; NaN equals NaN."""
        a, b = map(self._GetNdArray, self.evaluate_if_both_tensors(a, b))
        self.assertEqual(a.shape, b.shape, f"{msg or ''} Shape mismatch: expected {a.shape}, got {b.shape}.")
        same = a == b
        if _inexact(a.dtype) and _inexact(b.dtype):
            same = np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b)))
        if not np.all(same):
            where = np.argwhere(np.logical_not(same))[:10].tolist()
            self.fail(f"{msg or ''}\nnot equal where = {where}\nnot equal lhs = {a!r}\nnot equal rhs = {b!r}")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Not equal in some element or in shape."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(f"The two values are equal at all elements. {msg or ''}")

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """|a − b| ≤ atol + rtol·|b| for arrays, or for all of two equal structures of them.

        ValueError if one of them is a dictionary, and the other is none.
        """
        self._assert_all_close(a, b, rtol, atol, msg or "", "")

    def _assert_all_close(self, a: Any, b: Any, rtol: float, atol: float, msg: str, path: str) -> None:
        """`path` is the current place in the structures: `[key][2]`."""
        a, b = (x._asdict() if _is_namedtuple(x) else x for x in (a, b))
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"Can't compare dict to non-dict, a{path} vs b{path}. {msg}")
        if isinstance(a, Mapping):
            self.assertCountEqual(a, b, f"mismatched keys: a{path} has {list(a)}, but b{path} has {list(b)}. {msg}")
            for key in a:
                self._assert_all_close(a[key], b[key], rtol, atol, msg, f"{path}[{key}]")
        elif isinstance(a, list | tuple) and _is_ragged(a):
            self.assertEqual(len(a), len(b), f"mismatched length of a{path} and b{path}. {msg}")
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self._assert_all_close(x, y, rtol, atol, msg, f"{path}[{i}]")
        else:
            self._assert_close(a, b, rtol, atol, f"Mismatched value: a{path} is different from b{path}. {msg}")

    def _assert_close(self, a: Any, b: Any, rtol: float, atol: float, msg: str) -> None:
        a, b = map(self._GetNdArray, self.evaluate_if_both_tensors(a, b))
        self.assertEqual(a.shape, b.shape, f"Shape mismatch: expected {b.shape}, got {a.shape}. {msg}")
        a, b = map(_widened, (a, b))
        far = np.logical_not(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True))
        if np.any(far):
            msg += f"\nnot close where = {np.argwhere(far)[:10].tolist()}\nnot close dif = {np.abs(a - b)[far][:10]}"
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=msg, equal_nan=True)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Some element differs by more than the tolerance."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(f"The two values are close at all elements. {msg or ''}")

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2, msg: str | None = None,
    ) -> None:  # fmt: skip
        """assertAllClose with tolerances that fit the less exact dtype of the two."""
        a, b = map(self._GetNdArray, self.evaluate_if_both_tensors(a, b))
        looser = {"float32": (float_rtol, float_atol), "complex64": (float_rtol, float_atol),
                  "float16": (half_rtol, half_atol), "bfloat16": (bfloat16_rtol, bfloat16_atol)}  # fmt: skip
        for kind in {a.dtype.name, b.dtype.name} & looser.keys():
            rtol, atol = max(rtol, looser[kind][0]), max(atol, looser[kind][1])
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """|f1 − f2| ≤ err, or the same infinity."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1:f} != {f2:f} +/- {err:f} {msg or ''}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """`assertNear` for each pair of numbers in two lists."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """The norm of the difference is less than `err`."""
        distance = _distance(ndarray1, ndarray2)
        self.assertTrue(distance < err, f"{msg or ''}: the distance is {distance}, not < {err}")

    def _NDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float) -> bool:
        return _distance(ndarray1, ndarray2) < err

    def _assert_every(self, a: Any, holds: Callable[[Any], Any], what: str) -> None:
        array = self._GetNdArray(a)
        wrong = array[np.logical_not(holds(array))]
        if wrong.size:
            self.fail(f"Not {what}: {wrong[:10].tolist()}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        self._assert_every(a, lambda x: x > comparison_target, f"> {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        self._assert_every(a, lambda x: x >= comparison_target, f">= {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        self._assert_every(a, lambda x: x < comparison_target, f"< {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        self._assert_every(a, lambda x: x <= comparison_target, f"<= {comparison_target}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        self._assert_every(target, lambda x: np.isin(x, list(expected_set)), f"in {expected_set}")

    def assertAllInRange(
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """All elements, real numbers, lie between two bounds, which belong to the range unless it is open there."""
        target = self._GetNdArray(target)
        if not (np.issubdtype(target.dtype, np.floating) or np.issubdtype(target.dtype, np.integer)):
            self.fail(f"Not of an ordered numeric type, but of {target.dtype}: {target}")
        above = np.greater if open_lower_bound else np.greater_equal
        below = np.less if open_upper_bound else np.less_equal
        self._assert_every(
            target, lambda x: above(x, lower_bound) & below(x, upper_bound), f"between {lower_bound} and {upper_bound}"
        )

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """The static shape of a tensor is that of an array or of another tensor."""
        shapes = [x.get_shape().as_list() if isinstance(x, Tensor) else list(np.shape(x)) for x in (input_a, input_b)]
        self.assertEqual(shapes[0], shapes[1], msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """The dtype of an array or tensor."""
        found = target.dtype if hasattr(target, "dtype") else self._GetNdArray(target).dtype
        self.assertEqual(
            getattr(found, "as_numpy_dtype", found), getattr(expected_dtype, "as_numpy_dtype", expected_dtype)
        )

    # ---- errors, devices, messages ----

    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Any:
        """An error of that class whose text has a match of a regular expression, or for which a predicate is true."""
        predicate = expected_err_re_or_predicate
        if not callable(predicate):
            pattern = predicate

            def predicate(error: Any) -> bool:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                operation = error.op if isinstance(error, errors.OpError) else None
                while operation is not None:
                    text += f"\nCaused by: {operation.name}"
                    operation = getattr(operation, "_original_op", None)
                return re.search(pattern, text) is not None

        return _raises(self, exception_type, predicate)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """`assertRaisesWithPredicateMatch` for the errors of steps."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Two devices, in any of their spellings."""
        self.assertEqual(_canonical(device1), _canonical(device2), msg)

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, validate_message: Message, msg: str | None = None,
        relative_tolerance: float | None = None,
    ) -> None:  # fmt: skip
        """Two messages are equal, floats to six decimals; the expected one may be text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str | bytes):
            expected = text_format.Parse(expected, type(validate_message)(), descriptor_pool=None)
        elif type(expected) is not type(validate_message):
            self.assertEqual(type(expected).__name__, type(validate_message).__name__, msg)
        a, b = (text_format.MessageToString(m).splitlines() for m in (expected, validate_message))
        a, b = ([_rounded(line, relative_tolerance) for line in lines] for lines in (a, b))
        self.assertEqual(a, b, msg)

    def assertProtoEqualsVersion(
        self, expected: str, actual: Any, producer: int | None = None, min_consumer: int = 0, msg: str | None = None
    ) -> None:
        """A GraphDef equals a text description, in this version."""
        from dtflab.graph.graph_def import GRAPH_DEF_VERSION

        versions = f"versions {{ producer: {producer or GRAPH_DEF_VERSION}"
        versions += f" min_consumer: {min_consumer}" if min_consumer else ""
        self.assertProtoEquals(f"{expected} {versions} }}", actual, msg)


@contextlib.contextmanager
def _raises(test: TestCase, kind: Any, predicate: Callable[[Any], Any]) -> Iterator[None]:
    """The context of `assertRaisesWithPredicateMatch`."""
    try:
        yield
    except kind as error:
        if not predicate(error):
            raise AssertionError(f"Exception of type {type(error)}: {error}") from error
    else:
        test.fail(f"{getattr(kind, '__name__', kind)} not raised")


def _soft(config: ConfigProto | None, force_gpu: bool) -> ConfigProto:
    """The config of a test's session: a device missing from this machine is not a failure, unless it is the GPU."""
    return config or ConfigProto(allow_soft_placement=not force_gpu)


def _inexact(dtype: Any) -> bool:
    return bool(np.issubdtype(dtype, np.inexact) or dtype.name == "bfloat16")


def _widened(array: Any) -> Any:
    """Half-precision numbers as float32, with which NumPy compares."""
    return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _distance(a: Any, b: Any) -> float:
    return float(np.linalg.norm(np.asarray(a, float) - np.asarray(b, float)))


def _is_ragged(values: Any) -> bool:
    """True if a sequence is a structure to be compared part by part, not an array."""
    if any(isinstance(v, Mapping | Tensor | Variable | IndexedSlicesValue) for v in values):
        return True
    shapes = {_shape(v) if isinstance(v, list | tuple) else np.shape(v) for v in values}
    return len(shapes) > 1 or "ragged" in shapes


def _shape(values: Any) -> Any:
    try:
        return np.shape(values)
    except ValueError:
        return "ragged"


def _canonical(device: Any) -> str:
    if device is None:
        return ""
    return device.to_string() if isinstance(device, DeviceSpec) else DeviceSpec.from_string(str(device)).to_string()


_FLOAT = re.compile(r"(?<=: )-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)$")  # the value of a field


def _rounded(line: str, tolerance: float | None) -> str:
    digits = 17 if tolerance is None else max(1, int(-np.log10(tolerance)))
    return _FLOAT.sub(lambda match: f"{round(float(match[0]), 6):.{digits}g}", line)
