"""`tf.test.Benchmark`: one program that measures, run on dtflab and on TensorFlow as a program of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(300)  # a busy machine takes its time to load TensorFlow

PROGRAM = """
import sys
if sys.argv.pop() == "tensorflow":
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
else:
    import dtflab as tf


class Sums(tf.test.Benchmark):
    def _tell(self, **entry):
        self.report_benchmark(**entry)

    def benchmarkEntry(self):
        self._tell(iters=7, wall_time=0.125, cpu_time=2.0, throughput=1e21, extras={"said": 'a "b"\\n\\u00e9'})

    def benchmarkMetrics(self):
        metric = {"name": "loss", "value": 0.5, "max_value": 1}
        self.report_benchmark(name="renamed", metrics=[metric, {"name": "steps", "value": 3}], extras={"rows": 3})

    def benchmarkStep(self):
        with tf.Session(config=tf.test.benchmark_config()) as sess:
            x = tf.placeholder(tf.float32, [10])
            seen = self.run_op_benchmark(
                sess, tf.reduce_sum(x), {x: [1.0] * 10}, min_iters=3, extras={"size": 10}, mbs=4.0, store_trace=True,
                name="sum", store_memory_usage=False)
        assert seen["wall_time"] > 0 and abs(seen["throughput"] * seen["wall_time"] - 4) < 1e-6
        assert seen["extras"]["full_trace_chrome_format"].startswith("{")
        print("STEP", sorted(seen), seen["iters"], seen["name"], sorted(seen["extras"]))

    def benchmarkMistakes(self):
        for entry in ({"extras": [1]}, {"metrics": {}}, {"metrics": [{"value": 1}]}, {"metrics": [{"name": "x"}]}):
            try:
                self.report_benchmark(**entry)
            except TypeError as error:
                print("REFUSED", error)

    def notABenchmark(self):
        raise AssertionError


class Inherited(Sums):
    pass


class Tests(tf.test.TestCase):
    def testRuns(self):
        print("TESTED", tf.test.Benchmark.is_abstract(), Sums.is_abstract())


if __name__ == "__main__":
    tf.test.main()
"""


def run(tmp_path, library, *args):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(path), *args, library]
    return subprocess.run(command, capture_output=True, text=True, timeout=140, cwd=tmp_path)


def printed(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The printed lines, without the measured numbers."""
    measured = ("  wall_time: ", "  throughput: ")
    return [line for line in done.stdout.splitlines() if not line.startswith(measured)]


@pytest.mark.parametrize("pattern, entries", [("benchmark(Entry|Metrics)$", 4), ("Sums.benchmarkMi", 0)])
def test_entries(tmp_path, pattern, entries):
    pytest.importorskip("tensorflow")
    ours, theirs = (run(tmp_path, library, f"--benchmark_filter={pattern}") for library in ("dtflab", "tensorflow"))
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stderr
    assert ours.stdout.count("entry {") == entries
    assert sorted(ours.stdout.split("\n\n")) == sorted(theirs.stdout.split("\n\n"))  # the order of classes is open


def test_a_step(tmp_path):
    pytest.importorskip("tensorflow")
    ours, theirs = (
        run(tmp_path, library, "--benchmark_filter=Sums.benchmarkStep") for library in ("dtflab", "tensorflow")
    )
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stderr
    assert "STEP ['extras', 'iters', 'name'" in ours.stdout
    assert printed(ours) == printed(theirs)


def test_none_or_tests(tmp_path):
    none = run(tmp_path, "dtflab", "--benchmarks=Nobody")
    assert none.returncode != 0 and "No benchmarks matched the pattern: 'Nobody'" in none.stderr
    tests = run(tmp_path, "dtflab")
    assert tests.returncode == 0, tests.stderr
    assert "TESTED True False" in tests.stdout and "entry" not in tests.stdout
