"""Errors in a notebook: few lines, and those are the user's."""

from __future__ import annotations

import re

import pytest
from IPython.utils.capture import capture_output

from dtflab.base import error_report, errors
from dtflab.graph.node import line_text
from tests.notebook.cells import cell, magic


def test_an_error_is_short(model):
    text = cell(model, "def ask():\n    return sess.run(y)\nask()")
    assert text.startswith("InvalidArgumentError: You must feed a value for placeholder tensor 'x'")
    assert len(text.splitlines()) < 12 and "session.py" not in text and "{{node" not in text
    assert re.search(r"op +x\n", text)
    assert re.search(r"device +/job:worker/replica:0/task:1/device:CPU:0\n", text)
    assert re.search(r"made in +Cell In\[.*\], line 4: +x = tf.placeholder", text)
    assert re.search(r"run in +Cell In\[.*\], line 3: +ask\(\)\n +Cell In\[.*\], line 2, in ask: +return sess", text)


def test_every_frame_on_demand(model):
    cell(model, "sess.run(y)")
    for ask in ("%tb plain", "%tb verbose"):
        text = cell(model, ask)
        assert "session.py" in text and "You must feed" in text
    assert "session.py" not in cell(model, "%tb")


INTERRUPTED = """def hang(value):
    raise KeyboardInterrupt
sess = tf.Session()
z = tf.py_func(hang, [tf.constant(1.0)], tf.float32)
def ask():
    return {what}
ask()
"""


@pytest.mark.parametrize("what", ["sess.run(z)", "sess.step_through(z).finish()"])
def test_an_interrupt_shows_the_users_lines(shell, what):
    text = cell(shell, INTERRUPTED.replace("{what}", what))
    assert text.startswith("KeyboardInterrupt: The run was interrupted.\n\n  run in ") and "library" not in text
    ours = re.search(r"run in +Cell In.*, line 7: +ask\(\)\n +Cell In.*, line 6, in ask: +return sess\.", text)
    assert ours and "line 2, in hang:  raise KeyboardInterrupt" in text
    assert len(text.splitlines()) == 7 and ".py" not in text, text
    everything = cell(shell, "%tb plain")
    assert "dtflab" in everything and everything.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        shell.user_ns["sess"].run(shell.user_ns["z"])


def test_the_client_that_failed_is_named(model):
    text = cell(model, "cluster.run(lambda client: tf.Session(client.target).run(tf.placeholder(tf.float32)))")
    assert re.search(r"\(raised in the client of /job:worker/task:[01]\)", text)


def test_many_calls_are_cut_in_the_middle(model):
    text = cell(model, "def dig(n):\n    return dig(n - 1) if n else sess.run(y)\ndig(50)")
    assert "more" in text and len(text.splitlines()) < 20 and "dig(50)" in text


MISTAKES = {
    "tf.device('/jb:worker').__enter__()": "ValueError: Unknown attribute 'jb' is encountered",
    "sess.run(y, {x: [1.0, 2.0, 3.0]})": "ValueError: Cannot feed value of shape (3,) for Tensor x:0",
    "tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))": "ValueError: Dimensions must be equal, but are 3 and 2",
    "tf.matmul(tf.zeros([3, 2]), tf.zeros([5, 3]), True)": "The second matrix needs 3 rows, as many as the transposed",
    "tf.matmul(tf.zeros([2, 3]), tf.zeros([5, 3]))": "as the first has columns: transpose_b=True gives it these.",
    "tf.matmul(tf.zeros([4, 2, 3]), tf.zeros([4, 5, 3]))": "as the first has columns: transpose_b=True gives it these.",
    "tf.predict('placement/q3', 'XY')": "ValueError: placement/q3 has no X, Y. Its letters are A, B, C, D, E",
    "tf.get_variable('v', [2])": "ValueError: Variable v already exists, disallowed.",
    "y.numpy()": "AttributeError: 'Tensor' object has no attribute 'numpy'. Its value exists only inside a session",
    "float(y)": "TypeError: float() argument must be a string or a real number, not 'Tensor'. Its value exists only in",
    "print(f'{y:.3f}')": "TypeError: unsupported format string passed to Tensor.__format__. Its value exists only",
    "y.item()": "AttributeError: 'Tensor' object has no attribute 'item'. Its value exists only inside a session",
    "y.reshape([1])": "AttributeError: 'Tensor' object has no attribute 'reshape'. Use tf.reshape(t, shape).",
    "y.shap": "AttributeError: 'Tensor' object has no attribute 'shap'",
    "__import__('numpy').sum(y)": "NotImplementedError: Cannot convert a symbolic tf.Tensor (y:0) to a numpy array.",
    "tf.add(y, tf.constant(1))": "To convert it: tf.cast(…, tf.float32).",
    "tf.add(tf.constant(1), y)": "To convert x: tf.cast(…, tf.float32).",  # not y, which would be cut to an integer
    "sess.run('yy:0')": "Did you mean y:0?",
    "sess.run(y, x)": "TypeError: feed_dict must be a dictionary of tensors and their values, not <tf.Tensor 'x:0'",
    "sess.run(y, sess.graph.get_operations()[0])": "To fetch several, give a list of them.",
    "sess.run(y, {x: 'a'})": "The value is fed to x:0, whose dtype is float32.",
    "sess.run(y, {x: [1.0, [2.0]]})": "The value is fed to x:0, whose dtype is float32.",
    "tf.Session(cluster)": "Its address is its `target`: tf.Session(cluster.target).",
    "cluster.run(3)": "TypeError: cluster.run takes a function of one client, cluster.run(work), not 3.",
    "y + old": "must be from the same graph as the other inputs. There are two graphs, as after tf.reset",
    "sess.close(); sess.run(y)": "by close(). Open a new one: sess = tf.Session(…).",
}


@pytest.mark.parametrize(
    ("left", "right", "more", "cure"),
    [
        (
            "[[1.0, 2.0]]",
            "[[1.0, 2.0]]",
            "",
            "needs 2 rows, as many as the first has columns: transpose_b=True gives it",
        ),
        (
            "[[1.0, 2.0]]",
            "[[1.0], [2.0]]",
            ", False, True",
            "transposed second matrix needs 2 rows, as many as the first",
        ),
        ("[[[1.0, 2.0]]]", "[[[1.0, 2.0]]]", "", "needs 2 rows, as many as the first has columns: transpose_b=True"),
        ("[[[1.0], [2.0]]]", "[[[3.0]]]", ", True", "needs 2 rows, as many as the transposed first has columns."),
    ],
)
def test_a_product_that_a_step_can_not_make_has_its_cure(model, left, right, more, cure):
    text = cell(model, f"sess.run(tf.matmul(*(tf.placeholder_with_default(m, None) for m in ({left}, {right})){more}))")
    assert "Matrix size-incompatible" in text and cure in " ".join(text.split())


@pytest.mark.parametrize("code", MISTAKES)
def test_an_error_while_a_graph_is_built_is_as_short(model, code):
    model.run_cell("tf.get_variable('v', [2])\nwith tf.Graph().as_default():\n    old = tf.constant(1.0)").raise_error()
    text = cell(model, f"def ask():\n    {code}\nask()")
    assert MISTAKES[code] in text and ".py" not in text and len(text.splitlines()) < 11, text
    line = re.escape(code)
    assert re.search(rf"run in +Cell In.*, line 3: +ask\(\)\n +Cell In.*, line 2, in ask: +{line}\n", text), text
    assert "All frames: %tb plain" in text
    assert ".py" not in cell(model, "%tb") and ".py" in cell(model, "%tb plain")


def test_lines_break_at_words_before_jupyterlab_breaks_them_anywhere(model, monkeypatch):
    codes = "%dtf_timeline y --fed {x: 1}", "%dtf_timeline y", "sess.run(y, {x: [1.0, 2.0, 3.0]})"
    long = [cell(model, code) for code in codes]
    monkeypatch.setattr(error_report, "_COLUMNS", 78)
    short = [cell(model, code) for code in codes]
    assert [text.split() for text in short] == [text.split() for text in long]
    assert [max(map(len, text.splitlines())) > 78 for text in short + long] == [False] * 3 + [True] * 3
    assert "\n%dtf_timeline train --feed {images: x, labels: y}\n" in short[0]
    deep = cell(model, "def a_function_with_a_name():\n    return [sess.run(y) for number in range(3) if number > -1]\n"
                "a_function_with_a_name()")  # fmt: skip
    assert re.search(r"\n {11}Cell In.*, line 2, in .*\n {11}\S", deep), deep


WORK = """def helper(what):
    {what}
def work(client):
    helper(None)
cluster.run(work)
"""


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("raise ValueError('mine')", "ValueError: mine"),
        ("import json; json.loads('')", "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("assert what", "AssertionError"),
    ],
)
def test_an_error_of_a_users_function_shows_the_users_lines(model, what, says):
    text = cell(model, WORK.replace("{what}", what))
    lines = text.splitlines()
    assert lines[0] == says and len(lines) == 9 and ".py" not in text, text
    found = re.search(
        r"run in +Cell In.*, line 5: .*\n +Cell In.*, line 4, in work: .*\n +Cell.*, line 2, in helper", text
    )
    assert found and re.search(r"\(raised in the client of /job:worker/task:[01]\)\n\nAll frames: %tb plain", text)
    assert "clients.py" in cell(model, "%tb plain")


@pytest.mark.parametrize("code", ["1 / 0", "tf.matmul(1)", "import json; json.loads('')"])
def test_other_errors_are_shown_as_ipython_does(model, code):
    text = cell(model, code)
    assert "Traceback (most recent call last)" in text and "All frames" not in text
    magic(model, "%unload_ext dtflab")
    assert cell(model, code).splitlines()[0] == text.splitlines()[0], "as without dtflab"


def test_a_typo_in_a_device_stays_until_the_graph_is_built_again(model):
    build = "with tf.device('/job:{}/task:0'):\n    z = tf.constant(1.0, name='z')"
    model.run_cell(build.format("wroker")).raise_error()
    for number in range(2):
        text = cell(model, "tf.Session(cluster.target).run(z)")
        assert "This op stays in the graph" in text and "tf.reset_default_graph()" in text, number
        assert "open a new session" in text and re.search(r"op +z\n +made in +Cell", text)
        model.run_cell(build.format("worker")).raise_error()
    model.run_cell(f"tf.reset_default_graph()\n{build.format('worker')}").raise_error()
    text = cell(model, "sess.run(z)")
    assert "is not an element of this graph. There are two graphs" in text and "open a new session" in text
    assert cell(model, "print(tf.Session(cluster.target).run(z))") == "1.0\n"


def test_a_cell_that_ran_twice_is_told_how_to_begin(model):
    text = cell(model, "for _ in range(2):\n    tf.get_variable('w', [1])")
    assert "If its cell ran twice, begin the cell with tf.reset_default_graph()." in text


def test_a_tensor_at_the_end_of_a_cell_says_how_to_get_its_value(model):
    for name, text in ("y", "<tf.Tensor 'y:0' shape=(2,) dtype=float32>"), ("v", "<tf.Variable 'v:0' shape=(2,)"):
        data = model.display_formatter.format(model.user_ns[name])[0]
        assert data["text/plain"].startswith(text), "TensorFlow's"
        assert "its value: <code>sess.run(…)</code>" in data["text/html"] and "&lt;tf." in data["text/html"]
    assert cell(model, "print(y)").startswith('Tensor("y:0", shape=(2,), dtype=float32')
    magic(model, "%unload_ext dtflab")
    assert model.display_formatter.format(model.user_ns["y"])[0].keys() == {"text/plain"}


@pytest.mark.parametrize(
    ("code", "meant"), [("cluster.targt", "target"), ("y.shap", "shape"), ("v.assgin", "assign"), ("sess.rn", "run")]
)
def test_an_attribute_that_is_not_there_gets_its_nearest(model, code, meant):
    assert f"has no attribute '{code.partition('.')[2]}'" in (text := cell(model, code)) and len(text.splitlines()) < 9
    assert f"\nDid you mean {meant}?" in text
    assert "Did you mean" not in cell(model, "y.reshape([1])") + cell(model, "sess.qwertz") + cell(model, "tf.keras")


@pytest.mark.parametrize(
    ("line", "meant"),
    [("%dtf_timline y", "%dtf_timeline"), ("%%dtf_rn\n1", "%%dtf_run"), ("%%dtf_clster", "%dtf_cluster")],
)
def test_a_magic_that_is_not_there_gets_its_nearest(shell, line, meant):
    assert cell(shell, line).endswith(f" not found. Did you mean {meant}?\n")
    assert "mean" not in cell(shell, "%nosuchmagic") + cell(shell, "%dtf_foo"), "all of ours begin with dtf_"


def below(shell, text):
    """The displays of a cell, as text."""
    with capture_output() as shown:
        shell.run_cell(text)
    return [output.data["text/plain"] for output in shown.outputs]


@pytest.mark.parametrize(
    "code", ["print(y)", "print('y is', y)", "print(f'y is {y}')", "for i in 'ab':\n    print(i, y)"]
)
def test_below_a_printed_tensor_stands_how_to_get_its_value(model, code):
    assert below(model, code) == ["y is a node of the graph; its value: sess.run(y)"]
    assert 'Tensor("y:0", shape=(2,)' in cell(model, code), "TensorFlow's text"
    assert below(model, "print(v)") == ["v is a node of the graph; its value: sess.run(v)"]
    assert below(model, "mine = tf.Session()\nprint(y)") == ["y is a node of the graph; its value: mine.run(y)"]
    magic(model, "%unload_ext dtflab")
    assert below(model, code) == []


def test_the_remark_is_there_in_a_cell_of_a_task(model):
    text = "%%dtf_run --on /job:worker/task:0\nprint(y)"
    assert below(model, text) == ["y is a node of the graph; its value: sess.run(y)"]


@pytest.mark.parametrize(
    "code",
    [
        "print(y.name, [y])", "print(sess, 1)", "z = y\nprint(z)\nz = 1", "print(y, file=__import__('io').StringIO())",
        "def show(y):\n    print(y)\nshow(1)", "(lambda y: print(y))(1)", "str(y)", "print(y)\n1 / 0",
        "print(sess.run(v))",
    ],
)  # fmt: skip
def test_no_other_cell_gets_the_remark(model, code):
    assert below(model, code) == []


def test_no_op_no_device():
    error = errors.UnavailableError(None, None, "Task x does not answer.")
    assert error._render_traceback_() == [
        "\x1b[31mUnavailableError\x1b[0m: Task x does not answer.\n\nAll frames: %tb plain"
    ]


def test_pictures_name_the_cell_of_a_line(model):
    cell(model, "def build():\n    return tf.constant(1.0, name='made')\nmade, plain = build().op, tf.constant(2.0).op")
    made, plain = (line_text(model.user_ns[name].line) for name in ("made", "plain"))
    assert re.fullmatch(r"Cell In\[.*\], line 2, in build", made)
    assert re.fullmatch(r"Cell In\[.*\], line 3", plain)
