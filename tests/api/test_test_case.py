"""`tf.test.TestCase`: one test file, run on dtflab and on TensorFlow as a program of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import collections
import os
import sys
if sys.argv.pop() == "tensorflow":
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
else:
    import dtflab as tf
import numpy as np


class Example(tf.test.TestCase):
    def testSessionIsTheDefault(self):
        with self.test_session() as sess:
            v = tf.Variable(3.0)
            v.initializer.run()
            self.assertEqual(3, v.eval())
            self.assertIs(sess, tf.get_default_session())
        with self.cached_session() as again:
            self.assertIs(sess, again)
            self.assertAllClose([4.0], tf.expand_dims(v + 1.0, 0))

    def testSeeds(self):
        with self.cached_session():
            print("SEEDED", tf.random_uniform([2]).eval(), np.random.rand())

    def testGraphOfItsOwn(self):
        with tf.Graph().as_default() as graph:
            c = tf.constant(1)
        with self.session(graph=graph) as sess:
            self.assertEqual(1, sess.run(c))
        self.assertEqual(0, len(tf.get_default_graph().get_operations()))

    def testADeviceThatIsNotThere(self):
        with tf.device("/cpu:7"):
            c = tf.constant(1)
        self.assertEqual(1, self.evaluate(c))
        with self.session() as sess:
            self.assertEqual(1, sess.run(c))
        with self.session(config=tf.ConfigProto()), self.assertRaises(tf.errors.InvalidArgumentError):
            c.eval()

    def testErrors(self):
        x = tf.placeholder(tf.float32, name="x")
        with self.assertRaisesOpError("must feed a value for placeholder"):
            self.evaluate(x + 1)
        with self.cached_session(), self.assertRaisesWithPredicateMatch(ValueError, lambda e: "a" in str(e)):
            raise ValueError("a")

    def testWhatIsEqual(self):
        self.assertAllEqual([b"a"], self.evaluate(tf.constant(["a"])))
        self.assertAllEqual([1.0, np.nan], np.array([1.0, np.nan]))
        self.assertAllClose({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 + 1e-7]})
        self.assertAllClose([[1, 2], [3.0]], [[1, 2], [3.0]])
        self.assertAllCloseAccordingToType(np.float16([1]), np.float16([1.0005]))
        self.assertDeviceEqual("/cpu:0", "/device:CPU:0")
        self.assertItemsEqual([1, 2], [2, 1])
        self.assertArrayNear([1, 2], [1.05, 2], 0.1)
        self.assertShapeEqual(np.ones([2, 3]), tf.ones([2, 3]))
        self.assertAllInRange([1, 2], 1, 2)
        tf.test.assert_equal_graph_def(tf.GraphDef(), tf.GraphDef())

    def testStructures(self):
        Pair = collections.namedtuple("Pair", "x y")
        nested = {"a": (1.0, [{"b": {"c": 2.0}}]), "d": Pair([1.0, 2.0], 3.0)}
        self.assertAllClose(nested, {"a": (1.0, [{"b": {"c": 2.0}}]), "d": {"x": [1.0, 2.0], "y": 3.0}})
        self.assertAllClose([Pair([1.0], [2.0]), Pair([3.0], [4.0])], [([1.0], [2.0]), ([3.0], [4.0])])
        with self.assertRaisesRegex(AssertionError, r"\\[a\\]\\[1\\]\\[0\\]\\[b\\]\\[c\\](.|\\n)*not close dif"):
            self.assertAllClose(nested, {**nested, "a": (1.0, [{"b": {"c": 2.5}}])})
        with self.assertRaisesRegex(AssertionError, "mismatched keys"):
            self.assertAllClose(nested, {"a": nested["a"]})
        with self.assertRaisesRegex(AssertionError, "Shape mismatch"):
            self.assertAllClose({"a": [1.0]}, {"a": [1.0, 2.0]})
        for a, b in (({"a": 1.0}, 1.0), (1.0, {"a": 1.0})):
            with self.assertRaisesRegex(ValueError, "Can't compare dict to non-dict"):
                self.assertAllClose(a, b)

    def testSetUpAgain(self):
        def drawn():
            with self.cached_session() as sess:
                return sess, tf.random_normal([1]).eval(), np.random.rand()

        (one, *first), _, (other, *second) = drawn(), self.setUp(), drawn()
        self.assertIsNot(one, other)
        self.assertEqual(first, second)
        for arguments in (dict(graph=tf.Graph()), dict(config=tf.ConfigProto()), dict(force_gpu=True)):
            with self.assertRaisesRegex(ValueError, "different than the one"), self.cached_session(**arguments):
                self.fail()

    def testOldNames(self):
        self.assertEquals(1, 1)
        self.assertNotEquals(1, 2)
        self.assertAlmostEquals(1.0, 1.0)
        self.assertRegexpMatches("abc", "b.")
        with self.assertRaisesRegexp(ValueError, "b"):
            raise ValueError("abc")

    def testWhatIsNot(self):
        wrong = [
            lambda: self.assertAllEqual([1], [2]),
            lambda: self.assertAllEqual([1], [1, 2]),
            lambda: self.assertAllClose([1.0, 2.0], [1.0, 3.0]),
            lambda: self.assertAllClose([1.0, 2.0], [1.0]),
            lambda: self.assertAllClose({"a": 1.0}, {"a": 2.0}),
            lambda: self.assertNotAllClose([1.0], [1.0]),
            lambda: self.assertDeviceEqual("/cpu:0", "/gpu:0"),
            lambda: self.assertAllInRange([1, 2], 0, 1),
            lambda: self.assertAllInRange([b"a"], 0, 1),
            lambda: self.assertAllInRange([True], 0, 1),
            lambda: self.assertNear(1, 2, 0.5),
        ]
        for i, check in enumerate(wrong):
            with self.assertRaises(AssertionError, msg=str(i)):
                check()

    def testGradients(self):
        with self.cached_session():
            x = tf.constant(np.random.rand(2, 3))
            y = tf.reduce_sum(x * x, 1)
            self.assertLess(tf.test.compute_gradient_error(x, [2, 3], y, [2]), 1e-6)
            found = tf.test.compute_gradient(x, [2, 3], y, [2], x_init_value=np.ones((2, 3)))
            print("GRADIENT", [np.round(j, 3).tolist() for j in found])

    def testFolders(self):
        with tf.gfile.GFile(os.path.join(tf.test.get_temp_dir(), "a"), "w") as file:
            file.write("text")
        self.assertEqual(tf.test.get_temp_dir(), tf.test.get_temp_dir())
        self.assertEqual(os.path.dirname(self.get_temp_dir()), tf.test.get_temp_dir())
        print("FOLDER", tf.test.get_temp_dir())

    def testThread(self):
        seen = []
        thread = self.checkedThread(target=seen.append, args=(3,))
        thread.start()
        thread.join()
        self.assertEqual([3], seen)
        failing = self.checkedThread(target=lambda: self.assertEqual(1, 2))
        failing.start()
        with self.assertRaises(AssertionError):
            failing.join()


if __name__ == "__main__":
    tf.test.main()
"""
TESTS = len(re.findall(r"def test[A-Z]", PROGRAM))


def output_of(library: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, library], capture_output=True, text=True, timeout=140)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(rf"Ran {TESTS + 1} tests.*OK \(skipped=1\)", done.stderr, re.S), done.stderr
    (folder,) = re.findall("^FOLDER (.*)$", done.stdout, re.M)
    assert os.path.isabs(folder) and not os.path.exists(folder)
    return sorted(line for line in done.stdout.splitlines() if line.startswith(("SEEDED", "GRADIENT")))


@pytest.mark.timeout(300)  # a busy machine takes its time to load TensorFlow
def test_it_is_tensorflows():
    pytest.importorskip("tensorflow")
    ours = output_of("dtflab")
    assert len(ours) == 2 and ours == output_of("tensorflow")


def test_a_cluster_for_a_test():
    import dtflab as tf

    workers, ps = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    try:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.Variable(2.0)
            with tf.Session(workers[1].target) as sess:
                sess.run(v.initializer)
                assert sess.run(v) == 2.0 and len(sess.list_devices()) == 3
    finally:
        for server in workers + ps:
            server.stop()


def test_messages():
    """TensorFlow 2.21's own assertProtoEquals fails with today's protobuf."""
    import dtflab as tf

    class Example(tf.test.TestCase):
        def runTest(self):
            self.assertProtoEquals("name: 'b' op: 'Add'", tf.NodeDef(name="b", op="Add"))
            value = tf.Summary.Value(tag="0.25", simple_value=0.125)
            self.assertProtoEquals("tag: '0.25' simple_value: 0.1250001", value)
            for wrong in ("tag: '0.25' simple_value: 0.12501", "tag: '0.2500000001' simple_value: 0.125"):
                with self.assertRaises(AssertionError):
                    self.assertProtoEquals(wrong, value)
            self.assertProtoEquals(tf.NodeDef(name="b"), tf.NodeDef(name="b"))
            with self.assertRaises(AssertionError):
                self.assertProtoEquals("name: 'a'", tf.NodeDef(name="b"))
            with tf.Graph().as_default() as graph:
                tf.no_op("n")
            self.assertProtoEqualsVersion("node { name: 'n' op: 'NoOp' }", graph.as_graph_def())

    result = Example().run()
    assert result.testsRun == 1 and result.wasSuccessful(), result.failures + result.errors
