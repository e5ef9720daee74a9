"""The extension and what all magics share, in IPython's shell: loading; grades, images, style."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from IPython.utils.capture import capture_output

import dtflab as tf
from dtflab.cluster.cluster import Cluster
from dtflab.datasets import Dataset
from dtflab.grading.catalogue import all_questions
from dtflab.notebook import images
from tests.notebook.cells import cell, magic, states


@pytest.mark.processes
def test_loading_twice_and_reloading(shell):
    cluster = magic(shell, "%dtf_cluster --worker 1", "c")
    assert "already loaded" in cell(shell, "%load_ext dtflab")
    tf.load_ipython_extension(shell)  # by hand
    assert magic(shell, "%dtf_cluster status", "again") is cluster
    magic(shell, "%reload_ext dtflab")
    assert states(cluster) == {"stopped"}
    assert states(magic(shell, "%dtf_cluster --worker 1", "c")) == {"running"}


def test_unloading_stops_all_clusters_and_takes_the_magics_away(shell):
    clusters = [magic(shell, "%dtf_cluster --worker 1", "c"), Cluster(worker=1)]
    magic(shell, "%unload_ext dtflab")
    assert [states(cluster) for cluster in clusters] == [{"stopped"}] * 2
    assert "not found" in cell(shell, "%dtf_cluster")
    assert shell.display_formatter.format(clusters[0])[0].keys() == {"text/plain", "text/html"}, "the plain forms"
    tf.unload_ipython_extension(shell)  # once more


# ---- grading ----


def test_grade_finds_answers_in_the_notebook(shell):
    assert "None of the answers is here yet" in cell(shell, "%dtf_grade")
    shell.run_cell("def balance_by_bytes(ps_tasks, worker):\n    return lambda op: worker").raise_error()
    for line in ("%dtf_grade", "%dtf_grade placement/q1", "%dtf_grade q1", "%dtf_grade --all"):
        assert magic(shell, line, "score") == 0.0
    assert shell.user_ns["score"].max >= 10
    assert magic(shell, 'tf.grade("placement/q1")', "plain").text == magic(shell, "%dtf_grade q1", "by_magic").text


def test_a_grade_shows_a_table_and_a_number(shell):
    with capture_output() as shown:
        shell.run_cell("%dtf_grade placement/q1").raise_error()
    data, _ = shell.display_formatter.format(magic(shell, "%dtf_grade placement/q1", "score"))
    assert data["text/plain"] == "0.0" and "There is no balance_by_bytes yet" in data["text/html"]
    assert shown.stderr == "" and "of 10 points" not in shown.stdout


def test_hints_by_magic_come_in_steps(shell, monkeypatch):
    monkeypatch.setattr("dtflab.grading.grade._given", {})
    assert repr(magic(shell, "%dtf_grade placement/q1 --hint", "hint")).startswith("Hint 1 of 3: ")
    assert repr(magic(shell, "%dtf_grade placement/q1 --hint", "hint")).startswith("Hint 2 of 3: ")


def test_an_unknown_question_is_told(shell):
    assert "Did you mean placement/q1 or " in cell(shell, "%dtf_grade placment/q1")


def test_a_short_id_that_means_several_questions_is_told_with_all_of_them(shell):
    printed = cell(shell, "%dtf_grade q1").strip()
    several = [question.id for question in all_questions() if question.id.endswith("/q1")]
    assert printed == f"UsageError: 'q1' is the end of several questions. Name one: {', '.join(several)}"
    assert len(several) > 5


def test_a_prediction_by_magic_is_that_of_the_function(shell, monkeypatch):
    monkeypatch.setattr("dtflab.grading.choices._tried", {})
    said = magic(shell, "%dtf_predict placement/q3 C, a", "said")
    assert said.text == tf.predict("placement/q3", "AC").text and said.tries == 1
    data, _ = shell.display_formatter.format(said)
    assert "✗ wrong" in data["text/html"] and data["text/plain"].startswith("placement/q3: not yet")
    assert "choose first" in magic(shell, "%dtf_predict placement/q3", "said").text
    assert magic(shell, "%dtf_predict placement/q3 c e", "said").right


def test_a_prediction_of_what_is_not_there_is_told(shell):
    assert "placement/q3 has no X. Its letters are A, B, C, D, E" in cell(shell, "%dtf_predict placement/q3 CX")
    assert "Did you mean placement/q3" in cell(shell, "%dtf_predict placment/q3 C")
    assert "placement/q1 has no letters to choose from" in cell(shell, "%dtf_predict placement/q1 C")


# ---- images ----


def test_a_dataset_shows_its_first_images(shell):
    digits = tf.datasets.digits()
    shown = shell.display_formatter.format(digits.train)[0]["text/html"]
    assert shown.startswith("<div") and "1,197 examples" in shown and shown.count("<img") == images.MOST
    labels = re.findall(r"<br>(\d)</span>", shown)
    assert labels == [str(label) for label in digits.train.labels[: images.MOST]]
    assert shown == images.dataset_html(tf.datasets.digits(one_hot=True).train)
    odd = Dataset(np.zeros((2, 3), np.float32), np.zeros(2))
    assert "text/html" not in shell.display_formatter.format(odd)[0]


def test_png():
    from PIL import Image  # matplotlib brings it

    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(images.png(pixels)))), pixels)


# ---- style ----


def test_a_style_is_that_of_all_pictures_from_then_on(model):
    magic(model, "%dtf_style --projector")
    try:
        assert "projector" in magic(model, "%dtf_placement", "p").svg
    finally:
        magic(model, "%dtf_style --default")
    assert "projector" not in magic(model, "%dtf_placement", "p").svg
    for line in ("%dtf_style", "%dtf_style --projector --default"):
        assert "Choose one: %dtf_style --projector or %dtf_style --default" in cell(model, line)
    printed = cell(model, "%dtf_style --projektor")
    assert "Unknown option --projektor. Did you mean --projector? For example: %dtf_style --projector" in printed
