"""`python -m dtflab run`: TF1 programs as they were written, imports and flags and all, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

IMPORTS = """
import sys
import tensorflow as tf
import tensorflow.compat.v1 as v1
from tensorflow.compat import v1 as v1_again
from tensorflow.examples.tutorials.mnist import input_data
import tensorflow.examples.tutorials.mnist.input_data as same
from tensorflow.python.client import device_lib, timeline
from tensorflow.python.platform import gfile
print(tf.__name__, v1 is tf, v1_again is tf, same is input_data)
print(input_data.read_data_sets.__name__, timeline.Timeline.__name__, gfile.GFile is tf.gfile.GFile)
print([d.name for d in device_lib.list_local_devices()])
"""
INSIDES = """
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.framework import constant_op, dtypes as dtypes_lib, errors_impl, ops
from tensorflow.python.framework.errors_impl import OutOfRangeError
from tensorflow.python.ops import array_ops, data_flow_ops, ref_variable, resource_variable_ops, state_ops, variables
from tensorflow.python.platform import gfile, test, tf_logging
from tensorflow.python.training import basic_session_run_hooks, coordinator, saver as saver_lib, training_util
from tensorflow.python.training import input as inp
from tensorflow.python.ops import parsing_ops
from tensorflow.python.util import compat
import tensorflow.python.ops.nn_grad
import tensorflow as tf
with ops.Graph().as_default():
    queue = data_flow_ops.FIFOQueue(10, dtypes_lib.float32)
    enqueue = queue.enqueue((constant_op.constant(3.0),))
    with session.Session(config=config_pb2.ConfigProto()) as sess:
        sess.run(enqueue)
        print(sess.run(queue.dequeue()))
print(array_ops.placeholder is tf.placeholder, state_ops.assign is tf.assign, variables.Variable is tf.Variable)
print(errors_impl.OutOfRangeError is OutOfRangeError is tf.errors.OutOfRangeError, test.TestCase is tf.test.TestCase)
print(saver_lib.Saver is tf.train.Saver, coordinator.Coordinator is tf.train.Coordinator)
print(basic_session_run_hooks.StopAtStepHook is tf.train.StopAtStepHook, tf_logging.info is tf.logging.info)
print(isinstance(ref_variable.RefVariable(1), variables.RefVariable), variables.VariableV1 is tf.Variable)
print(resource_variable_ops.is_resource_variable(resource_variable_ops.ResourceVariable(1)))
print(compat.as_bytes("a") == b"a" and parsing_ops.decode_raw_v1 is tf.decode_raw)
print(inp._as_tensor_list({"y": 2, 1: 1}) == [1, 2], inp._as_original_type({"y": 0, 1: 0}, [1, 2]) == {"y": 2, 1: 1})
"""
PATCHED = """
from unittest import mock
from tensorflow.python.framework import tensor_util
from tensorflow.python.platform import googletest, tf_logging
from tensorflow.python.summary.writer import writer, writer_cache
from tensorflow.python.training import basic_session_run_hooks, monitored_session, saver
import tensorflow as tf
with mock.patch.object(tf_logging, "warning") as warning, tf.summary.FileWriter("here") as file:
    file.add_graph(tf.GraphDef())
print(warning.call_count, tf_logging.warning is tf.logging.warning is not warning)
with mock.patch.object(writer_cache, "FileWriter") as fake:
    print(writer_cache.FileWriterCache.get("elsewhere") is fake.return_value)
print(writer.FileWriter is writer_cache.FileWriter is tf.summary.FileWriter)
print(issubclass(monitored_session._HookedSession, monitored_session._WrappedSession))
print(issubclass(basic_session_run_hooks.NeverTriggerTimer, basic_session_run_hooks.SecondOrStepTimer))
print(googletest.GetTempDir() == tf.test.get_temp_dir())
print(tensor_util.MakeNdarray(tf.make_tensor_proto([1, 2])).tolist())
with tf.Graph().as_default():
    v = tf.Variable(1)
    print(saver._get_saver_or_default() is saver._get_saver_or_default())
"""
SAVING = """
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.framework import meta_graph
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import io_ops
from tensorflow.python.saved_model import builder as saved_model_builder, loader, tag_constants
from tensorflow.python.saved_model import signature_constants, signature_def_utils
from tensorflow.python.tools.inspect_checkpoint import print_tensors_in_checkpoint_file
import tensorflow as tf
with tf.name_scope("layer"):
    v = tf.Variable([1.0, 2.0], name="v")
meta_graph.copy_scoped_meta_graph("layer", "copy")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(sess, "m")
    print(sess.run(io_ops.restore_v2(path, ["copy/v"], [""], [tf.float32])))
    builder = saved_model_builder.SavedModelBuilder("model")
    signature = signature_def_utils.predict_signature_def({"x": v}, {"y": v})
    signatures = {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature}
    builder.add_meta_graph_and_variables(sess, [tag_constants.SERVING], signatures)
    builder.save()
print(pywrap_tensorflow.NewCheckpointReader(path).get_tensor("layer/v"))
print_tensors_in_checkpoint_file(path, "copy/v", False)
with tf.Session(graph=tf.Graph()) as sess:
    loader.load(sess, [tag_constants.SERVING], "model")
    print(sess.run("copy/v:0"), file_io.is_directory("model/variables"))
"""
FLAGS = """
import sys
import tensorflow as tf
tf.app.flags.DEFINE_string("job_name", "", "Either 'ps' or 'worker'")
tf.app.flags.DEFINE_integer(flag_name="task_index", default_value=0, docstring="Index of task within the job")
tf.flags.DEFINE_float("rate", 0.5, "learning rate")
tf.app.flags.DEFINE_boolean("sync", False, "synchronous")
FLAGS = tf.app.flags.FLAGS
print(FLAGS.job_name, FLAGS.task_index, FLAGS.rate, FLAGS.sync)
def main(argv):
    print(argv[1:], __name__)
    return 3
if __name__ == "__main__":
    tf.app.run()
"""


def run(tmp_path: Path, program: str, *args: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "dtflab", "run", str(path), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)


def test_import_paths(tmp_path):
    done = run(tmp_path, IMPORTS)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "dtflab True True True", "read_data_sets Timeline True", "['/device:CPU:0']",
    ]  # fmt: skip


def test_urllib_request_is_there_as_after_the_import_of_tensorflow(tmp_path):
    done = run(tmp_path, "import urllib\nimport tensorflow as tf\nprint(urllib.request.pathname2url('a b'))")
    assert (done.stdout, done.stderr) == ("a%20b\n", "")
    code = "import dtflab, sys; print('urllib.request' in sys.modules)"  # it takes 33 ms
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "False\n"


def test_private_modules_that_old_repositories_import(tmp_path):
    done = run(tmp_path, INSIDES)
    assert done.stderr == ""
    assert done.stdout.split() == ["3.0", *["True"] * 15]


def test_private_modules_of_saving(tmp_path):
    done = run(tmp_path, SAVING)
    assert [line for line in done.stderr.splitlines() if not line.startswith(("INFO", "WARNING"))] == []
    assert done.stdout.splitlines() == [
        "[array([1., 2.], dtype=float32)]", "[1. 2.]", "tensor: copy/v (float32) [2]", "[1. 2.]",
        "# Total number of params: 4", "[1. 2.] True",
    ]  # fmt: skip


def test_what_is_patched_in_private_modules_takes_effect(tmp_path):
    done = run(tmp_path, PATCHED)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["1 True", *["True"] * 5, "[1, 2]", "True"]


PATHS = """
import tensorflow as tf
import tensorflow.python.framework.ops as ops
import tensorflow.python.platform.gfile as gfile
import tensorflow.python.ops.data_flow_ops
import tensorflow.nn as nn
import tensorflow.compat.v1.nn as nn_again
import tensorflow.gfile, tensorflow.app
from tensorflow.errors import OutOfRangeError
from tensorflow.python_io import TFRecordWriter
from tensorflow.compat.v1.train import Saver
print(ops.Graph is tf.Graph, gfile.GFile is tf.gfile.GFile, nn is tf.nn, nn_again is tf.nn, tf.compat.v1 is tf)
print(tensorflow.python.ops.data_flow_ops.FIFOQueue is tf.FIFOQueue, OutOfRangeError is tf.errors.OutOfRangeError)
print(TFRecordWriter is tf.python_io.TFRecordWriter, Saver is tf.train.Saver)
print(tf.python.client.timeline.Timeline.__name__)
"""
CHILDREN = """
import multiprocessing, subprocess, sys
import tensorflow as tf
def child(queue):
    import tensorflow
    queue.put((tensorflow.__name__, tensorflow.__version__))
if __name__ == "__main__":
    code = "import tensorflow as tf;"
    code += "from tensorflow.python.framework import ops; print(tf.__name__, ops.Graph is tf.Graph)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(*queue.get(timeout=200))
    process.join()
"""


def test_other_ways_to_import_the_same(tmp_path):
    done = run(tmp_path, PATHS)
    assert (done.stderr, done.stdout.split()) == ("", ["True"] * 9 + ["Timeline"])


def test_programs_that_start_programs(tmp_path):
    done = run(tmp_path, CHILDREN)
    assert (done.stdout.split(), done.stderr) == (["dtflab", "True", "dtflab", "1.15.0"], "")


def test_paths_of_dtflab_itself(tmp_path):
    """In a fresh process: nothing else has loaded `compat.v1` before."""
    code = """
import dtflab as tf
print(tf.compat.v1.Session is tf.Session)
import dtflab.timeline, dtflab.nn as nn, dtflab.compat.v1.nn as again
from dtflab.errors import OutOfRangeError
from dtflab.timeline import Timeline
print(nn is tf.nn, again is tf.nn, Timeline is tf.timeline.Timeline, tf.python.client.timeline.Timeline is Timeline)
try:
    import dtflab.no_such_thing
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["True", "True True True True", "No module named 'dtflab.no_such_thing'"]


def test_help_shows_the_programs_own_flags(tmp_path):
    program = """
import tensorflow as tf
tf.app.flags.DEFINE_string("job_name", "", "Either 'ps' or 'worker'")
tf.app.flags.DEFINE_boolean("sync", False, "synchronous or not")
def main(argv): pass
tf.app.run()
"""
    done = run(tmp_path, program, "--help")
    assert "--job_name" in done.stdout and "synchronous or not" in done.stdout


def test_flags_come_from_the_programs_own_command_line(tmp_path):
    done = run(tmp_path, FLAGS, "--job_name", "ps", "--task_index=3", "--sync", "data")
    assert (done.returncode, done.stdout) == (3, "ps 3 0.5 True\n['data'] __main__\n"), done.stderr
    assert run(tmp_path, FLAGS).stdout == " 0 0.5 False\n[] __main__\n"


@pytest.mark.parametrize("args, words", [
    (["--task_index=x"], "flag --task_index=x: invalid literal"),
    (["--nobody=3"], "Unknown command line flag 'nobody'"),
])  # fmt: skip
def test_wrong_flags(tmp_path, args, words):
    done = run(tmp_path, FLAGS, *args)
    assert done.returncode != 0 and words in done.stderr


def test_it_runs_beside_its_own_modules(tmp_path):
    (tmp_path / "helper.py").write_text("import tensorflow as tf\nvalue = tf.constant(7)\n")
    done = run(tmp_path, "import tensorflow as tf, helper\nprint(tf.Session().run(helper.value))")
    assert (done.stdout, done.stderr) == ("7\n", "")


def test_what_is_not_there_is_said(tmp_path):
    done = run(tmp_path, "import tensorflow.contrib.slim")
    assert "ModuleNotFoundError: This program runs on dtflab, which has no tensorflow.contrib.slim" in done.stderr
    done = run(tmp_path, "from tensorflow.contrib import rnn")
    assert "has no tensorflow.contrib.rnn. Use the same without tf.contrib" in done.stderr
    done = run(tmp_path, "from tensorflow.python.ops import nn_ops\nnn_ops.no_such_thing")
    assert "There is no tensorflow.python.ops.nn_ops.no_such_thing" in done.stderr
    done = run(tmp_path, "from tensorflow.python.ops.math_ops import reduce_all_of_it")
    assert "ImportError: There is no tensorflow.python.ops.math_ops.reduce_all_of_it. The nearest" in done.stderr
    command = [sys.executable, "-m", "dtflab", "run", "missing.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 2 and "there is no file 'missing.py'" in done.stderr


def test_tensorflows_own_tests(tmp_path):
    """Their imports and their decorators work."""
    program = """
        from tensorflow.python.framework import constant_op, test_util
        from tensorflow.python.framework.test_util import TensorFlowTestCase
        from tensorflow.python.ops import gen_math_ops
        from tensorflow.python.platform import googletest

        @test_util.with_control_flow_v2
        @test_util.run_all_in_graph_and_eager_modes
        class Sums(TensorFlowTestCase):
            @test_util.run_v1_only("b/120545219")
            def testSum(self):
                with test_util.use_gpu():
                    product = gen_math_ops.mat_mul(constant_op.constant([[2]]), [[3]])
                self.assertAllEqual(product, [[6]])
                self.assertDeviceEqual(product.device, test_util.gpu_device_name() or "/cpu:0")
                test_util.assert_ops_in_graph({"MatMul": "MatMul", "Const": "Const"}, product.graph)
                graph_def = product.graph.as_graph_def()
                self.assertEqual("MatMul", test_util.get_node_def_from_graph("MatMul", graph_def).op)
                self.assertIsNone(test_util.get_node_def_from_graph("Mul", graph_def))
                for wrong in ({"Mul": "Mul"}, {"MatMul": "Mul"}):
                    self.assertRaises(ValueError, test_util.assert_ops_in_graph, wrong, product.graph)

            @test_util.run_in_graph_and_eager_modes(reset_test=True)
            def testWrong(self):
                self.assertAllEqual(1, 2)

            @test_util.run_v2_only
            def testEager(self):
                raise AssertionError

            @test_util.skip_if(lambda: True)
            def testSkipped(self):
                raise AssertionError

        googletest.main()
    """
    done = run(tmp_path, textwrap.dedent(program))
    assert "FAILED (failures=1, skipped=4)" in done.stderr  # skipped is also `test_session`, once per class


def test_flags_in_a_notebook(monkeypatch):
    """The command line is the kernel's; a cell that is run again defines its flags again."""
    code = """
import sys
sys.argv = ["ipykernel_launcher.py", "-f", "kernel.json"]
import dtflab.machine.console
dtflab.machine.console.in_notebook = lambda: True
import dtflab as tf
for default in (1, 2):
    tf.app.flags.DEFINE_integer("steps", default, "how many")
print(tf.app.flags.FLAGS.steps)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("2\n", "")
