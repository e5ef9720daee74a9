"""Benchmarks: TF1's class for programs that measure, and how they are chosen on the command line.

Stands for `python/platform/benchmark.py`. Left out: entries in files for Google's test reporter.

Rule: a subclass of Benchmark is known from then on; methods that begin with `benchmark` run, and each reports an entry,
which is printed as the BenchmarkEntries message that TensorFlow prints.
"""

from __future__ import annotations

import logging
import numbers
import re
import statistics
import sys
import time
from typing import Any

from google.protobuf.text_encoding import CEscape

from dtflab.files.timeline import Timeline
from dtflab.graph import default_stacks, scopes
from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
from dtflab.protos.rewriter_config_pb2 import RewriterConfig
from dtflab.runtime.session import Session

_LOG = logging.getLogger("tensorflow")
_FLAGS = ("--benchmark_filter=", "-benchmark_filter=", "--benchmarks=")  # the last one in TF1
_known: list[type[Benchmark]] = []

Fields = list[tuple[str, Any]]  # of a message: a value is a number, a text, or again such a list


class Benchmark:
    """The base of classes whose methods `benchmark…` measure something and report it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _known.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """True for this class itself, which is not run."""
        return cls is Benchmark

    def report_benchmark(
        self, iters: int | None = None, cpu_time: float | None = None, wall_time: float | None = None,
        throughput: float | None = None, extras: dict[str, Any] | None = None, name: str | None = None,
        metrics: list[dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Print and log an entry: times in seconds, throughput in MB/s, `extras` numbers or texts.

        Its name is the class and `name`, or else the method that is measured. A metric is a dict of `name`, `value`
        and perhaps `min_value` and `max_value`. TypeError for other extras and metrics.
        """
        name = f"{type(self).__name__}.{name or self._running()}"
        known = {"iters": iters, "cpu_time": cpu_time, "wall_time": wall_time, "throughput": throughput}
        _LOG.info("Benchmark [%s] %s, extras: %s, metrics: %s", name, known, extras, metrics)
        entry: Fields = [("name", name), *((key, value) for key, value in known.items() if value is not None)]
        print(_as_text([("entry", entry + _extra_fields(extras) + _metric_fields(metrics))]))

    def _running(self) -> str:
        """The outermost method of this object that is running now."""
        frame: Any = sys._getframe()
        found = ""
        while frame is not None:
            if frame.f_locals.get("self") is self:
                found = frame.f_code.co_name
            frame = frame.f_back
        return found

    def run_op_benchmark(
        self, sess: Session, op_or_tensor: Any, feed_dict: Any = None, burn_iters: int = 2, min_iters: int = 10,
        store_trace: bool = False, store_memory_usage: bool = True, name: str | None = None,
        extras: dict[str, Any] | None = None, mbs: float = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Run `op_or_tensor` `min_iters` times after `burn_iters` that do not count, report the median, return it all.

        `mbs` is how many megabytes a run moves. One more run, which is not timed, shows how much memory each allocator
        needs at most, and with `store_trace` gives a Chrome trace; mean and deviation are only returned, too.
        """
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict)
        times = [_timed(sess, op_or_tensor, feed_dict) for _ in range(min_iters)]
        extras = dict(extras or {})
        unreported: dict[str, Any] = {}
        if store_trace or store_memory_usage:
            metadata = RunMetadata()
            sess.run(op_or_tensor, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
            timeline = Timeline(metadata.step_stats)
            if store_trace:
                unreported["full_trace_chrome_format"] = timeline.generate_chrome_trace_format()
            if store_memory_usage:
                for allocator, most in timeline.analyze_step_stats().allocator_maximums.items():
                    extras[f"allocator_maximum_num_bytes_{allocator}"] = most.num_bytes
        median = statistics.median(times)
        values: dict[str, Any] = {"iters": min_iters, "wall_time": median, "throughput": mbs / median}
        values |= {"extras": extras, "name": name}
        self.report_benchmark(**values)
        deviation = statistics.stdev(times) if len(times) > 1 else -1
        extras.update(unreported, wall_time_mean=statistics.mean(times), wall_time_stdev=deviation)
        return values

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or one for them alone."""
        sess = default_stacks.get_default_session()
        if sess is not None:
            return sess.run(tensors)
        with Session() as own:
            return own.run(tensors)


def _timed(sess: Session, op_or_tensor: Any, feed_dict: Any) -> float:
    start = time.perf_counter()
    sess.run(op_or_tensor, feed_dict)
    return time.perf_counter() - start


# -- entries ----------------------------------------------------------------------------------------------------------


def _extra_fields(extras: Any) -> Fields:
    if extras is None:
        return []
    if not isinstance(extras, dict):
        raise TypeError("extras must be a dict")
    return [("extras", [("key", key), ("value", [_extra(value)])]) for key, value in extras.items()]


def _extra(value: Any) -> tuple[str, Any]:
    return ("double_value", value) if isinstance(value, numbers.Number) else ("string_value", str(value))


def _metric_fields(metrics: Any) -> Fields:
    if metrics is None:
        return []
    if not isinstance(metrics, list):
        raise TypeError("metrics must be a list")
    for metric in metrics:
        for field in ("name", "value"):
            if field not in metric:
                raise TypeError(f"metric must has a '{field}' field")
    limits = ("min_value", "max_value")
    return [
        ("metrics", [*((f, m[f]) for f in ("name", "value")), *((f, [("value", m[f])]) for f in limits if f in m)])
        for m in metrics
    ]


def _as_text(fields: Fields, indent: str = "") -> str:
    """A message in protobuf's text format."""
    lines = []
    value: Any
    for name, value in fields:
        if isinstance(value, list):
            lines.append(f"{indent}{name} {{\n{_as_text(value, indent + '  ')}{indent}}}\n")
        elif isinstance(value, str):
            lines.append(f'{indent}{name}: "{CEscape(value, as_utf8=True)}"\n')  # type: ignore[arg-type]  # text will do, too
        else:
            lines.append(f"{indent}{name}: {repr(float(value)).removesuffix('.0')}\n")
    return "".join(lines)


# -- running them -----------------------------------------------------------------------------------------------------


def benchmark_config() -> ConfigProto:
    """A ConfigProto that keeps TensorFlow from leaving out what is measured; dtflab leaves out nothing."""
    config = ConfigProto()
    config.graph_options.rewrite_options.dependency_optimization = RewriterConfig.OFF
    return config


def taken_filter(argv: list[str]) -> str | None:
    """The pattern of the benchmarks to be run instead of tests, which is removed from the command line."""
    for argument in argv:
        if argument.startswith(_FLAGS):
            argv.remove(argument)
            return argument.partition("=")[2]
    return None


def run_benchmarks(pattern: str) -> None:
    """Run all benchmarks, or those with a match in `module.Class.method`; ValueError if there are none."""
    chosen = []
    for kind in _known:
        names = [n for n in dir(kind) if n.startswith("benchmark") and callable(getattr(kind, n))]
        full = f"{kind.__module__}.{kind.__name__}"
        chosen.append((kind, [n for n in names if pattern == "all" or re.search(pattern, f"{full}.{n}")]))
    if not any(names for _, names in chosen):
        raise ValueError(f"No benchmarks matched the pattern: '{pattern}'")
    for kind, names in chosen:
        if names:
            one = kind()
            for name in names:
                getattr(one, name)()
