"""ClusterSpec answers every question as TensorFlow's does, with the same errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("tensorflow")
import tensorflow as tf

from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.protos.cluster_pb2 import ClusterDef

SPECS: dict[str, Any] = {
    "book": {"ps": ["localhost:2222"], "worker": ["localhost:2223", "localhost:2224"]},
    "tuple": {"worker": ("a:1", "b:2")},
    "sparse": {"worker": {1: "b:2", 5: "c:3"}, "ps": ["a:1"]},
    "dict without gaps": {"worker": {1: "b:2", 0: "a:1"}},
    "numbers as text": {"worker": {"3": "a:1"}},
    "unsorted jobs": {"z": ["a:1"], "a": ["b:1"]},
    "bytes": {b"worker": [b"a:1"]},
    "empty": {},
    "twice the same address": {"a": ["x:1", "x:1"]},
    "no string": {"worker": [5]},
    "no job name": {5: ["a:1"]},
    "no tasks": {"worker": "a:1"},
    "number of tasks": {"worker": 2},
    "no number": {"worker": {"x": "a:1"}},
    "list": ["a:1"],
    "none": None,
    "text": "a:1",
}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "repr": repr,
    "bool": bool,
    "jobs": lambda s: s.jobs,
    "as_dict": lambda s: s.as_dict(),
    "as_cluster_def": lambda s: s.as_cluster_def().SerializeToString(deterministic=True),
    "num_tasks": lambda s: [s.num_tasks(j) for j in s.jobs],
    "task_indices": lambda s: [s.task_indices(j) for j in s.jobs],
    "job_tasks": lambda s: [s.job_tasks(j) for j in s.jobs],
    "task_address": lambda s: [s.task_address(j, i) for j in s.jobs for i in s.task_indices(j)],
    "address of no task": lambda s: s.task_address("worker", 99),
    "address of no job": lambda s: s.task_address("nobody", 0),
    "number of no job": lambda s: s.num_tasks("nobody"),
    "indices of no job": lambda s: s.task_indices("nobody"),
    "tasks of no job": lambda s: s.job_tasks("nobody"),
    "hash": hash,
    "equal to its dict": lambda s: s == s.as_dict(),
    "equal to a numbered dict": lambda s: s == {"worker": {0: "a:1", 1: "b:2"}},
    "equal to nothing": lambda s: s == None or s != None,  # noqa: E711
}


def answers(kind: Any, cluster: Any) -> Any:
    try:
        spec = kind(cluster)
    except Exception as error:
        return type(error), str(error).partition(", not ")[0]
    return {question: answer(ask, spec) for question, ask in QUESTIONS.items()} | {
        "equal to itself": (spec == kind(cluster), spec != kind(cluster)),
        "of a spec": answer(kind(spec).as_dict, None),
        "of a message": answer(kind(spec.as_cluster_def()).as_dict, None),
    }


def answer(ask: Callable[..., Any], spec: Any) -> Any:
    try:
        return ask(spec) if spec is not None else ask()
    except Exception as error:
        return type(error), str(error).replace("tensorflow.python.training.server_lib.", "")


def same(cluster: Any) -> None:
    assert answers(ClusterSpec, cluster) == answers(tf.train.ClusterSpec, cluster)


@pytest.mark.parametrize("name", SPECS)
def test_every_question(name: str) -> None:
    same(SPECS[name])


ADDRESSES = st.text("abc:.1", min_size=1, max_size=4)
TASKS = st.lists(ADDRESSES, min_size=1, max_size=4) | st.dictionaries(st.integers(0, 6), ADDRESSES, min_size=1)


@given(st.dictionaries(st.text("psworker", max_size=3), TASKS, max_size=3))
def test_random_clusters(cluster: dict[str, Any]) -> None:
    same(cluster)


def test_a_job_without_tasks_has_an_empty_list() -> None:
    for spec in (ClusterSpec({"ps": []}), tf.train.ClusterSpec({"ps": []})):
        assert spec.as_dict() == {"ps": {}} and spec.num_tasks("ps") == 0
    assert ClusterSpec({"ps": []}).job_tasks("ps") == []  # TensorFlow: ValueError, from max()


def test_messages_of_both_kinds_are_the_same_bytes() -> None:
    ours = ClusterSpec(SPECS["sparse"]).as_cluster_def()
    assert isinstance(ours, ClusterDef)
    real = tf.train.ClusterDef.FromString(ours.SerializeToString())
    assert tf.train.ClusterSpec(real).as_dict() == ClusterSpec(SPECS["sparse"]).as_dict()
    assert ClusterSpec(ClusterDef.FromString(real.SerializeToString())) == ClusterSpec(SPECS["sparse"])


def test_it_does_not_change_with_what_it_was_made_of() -> None:
    given_dict = {"ps": {0: "a:1"}}
    message = ClusterSpec(given_dict).as_cluster_def()
    spec = ClusterSpec(given_dict)
    of_message = ClusterSpec(message)
    given_dict["ps"][1] = "b:2"
    spec.as_dict()["ps"].append("c:3")
    message.job[0].tasks[7] = "d:4"
    assert spec.as_dict() == of_message.as_dict() == {"ps": ["a:1"]}
    assert of_message.as_cluster_def() == ClusterSpec({"ps": ["a:1"]}).as_cluster_def()
