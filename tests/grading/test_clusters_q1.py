"""clusters/q1 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import itertools

import pytest

import dtflab as tf

Q1 = "clusters/q1"


def as_a_spec(machines, gpus, ps_tasks):
    worker = [f"{machine}:{5000 + gpu}" for gpu in range(gpus) for machine in machines]  # GPU by GPU, not by machine
    ps = [f"{machines[-1 - i % len(machines)]}:{i + 1}" for i in range(ps_tasks)]
    spec = tf.train.ClusterSpec({"ps": ps, "worker": worker})
    return spec, {"worker": [str(gpu) for gpu in range(gpus) for _ in machines], "ps": "-1"}


def with_a_counter(machines, gpus, ps_tasks):
    port = itertools.count(2222)
    jobs, sees = {"worker": [], "ps": []}, {"worker": [], "ps": []}
    for machine in machines:
        for gpu in reversed(range(gpus)):
            jobs["worker"].append(f"{machine}:{next(port)}")
            sees["worker"].append(f"{gpu}")
    for i in range(ps_tasks):
        jobs["ps"].append(f"{machines[i % len(machines)]}:{next(port)}")
        sees["ps"].append("")
    return jobs, sees


def with_products(machines, gpus, ps_tasks):
    places = list(itertools.product(machines, range(gpus)))
    servers = [f"{machine}:{2222 + gpu}" for machine, gpu in places]
    ps = [f"{machine}:{4000 + n}" for n in range(ps_tasks) for machine in machines][:ps_tasks]
    return (
        {"ps": ps, "worker": servers},
        {"ps": tuple("" for _ in ps), "worker": tuple(str(gpu) for _, gpu in places)},
    )


def ps_dealt_in_runs(machines, gpus, ps_tasks):
    jobs, sees = with_products(machines, gpus, ps_tasks)
    jobs["ps"] = [f"{machines[i * len(machines) // max(ps_tasks, len(machines))]}:{i + 1}" for i in range(ps_tasks)]
    return [jobs, sees]


def as_a_cluster_def(machines, gpus, ps_tasks):
    jobs, sees = with_products(machines, gpus, ps_tasks)
    return tf.train.ClusterSpec(tf.train.ClusterSpec(jobs).as_cluster_def()), sees


RIGHT = [as_a_spec, with_a_counter, with_products, ps_dealt_in_runs, as_a_cluster_def]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    for seed in "012":
        monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
        score = tf.grade(Q1, answer)
        assert score == 10, score.text


def changed(**jobs):
    def answer(machines, gpus, ps_tasks):
        addresses, sees = with_products(machines, gpus, ps_tasks)
        return addresses | jobs, sees

    return answer


BAD = {
    "nothing": (lambda m, g, p: None, "gave NoneType; expected are two"),
    "only addresses": (lambda m, g, p: with_products(m, g, p)[0], "gave dict; expected are two"),
    "another machine": (changed(ps=["machine-a:1"] * 9), "is no list of 9 texts"),
    "no workers": (changed(worker=[]), "is no list of 0 texts"),
    "another job": (lambda m, g, p: ({"ps": [], "workers": []}, {}), "has the jobs ps, workers; expected"),
    "no port": (lambda m, g, p: ({"ps": m, "worker": []}, {}), "is no address of the machines"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, told = BAD[name]
    score = tf.grade(Q1, answer)
    assert score == 0 and told in score.text, score.text
