"""clusters/q1 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import itertools

import pytest

import dtflab as tf
from tests.grading.answers import full_marks

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
    full_marks(Q1, answer, monkeypatch, seeds="012")


def changed(**jobs):
    def answer(machines, gpus, ps_tasks):
        addresses, sees = with_products(machines, gpus, ps_tasks)
        return addresses | jobs, sees

    return answer


BAD = {
    "nothing": (lambda m, g, p: None, "gave None; expected: a dict of addresses"),
    "only addresses": (lambda m, g, p: with_products(m, g, p)[0], "gave a dict; expected: a dict of addresses"),
    "another machine": (changed(ps=["machine-a:1"] * 9), "is not an address on one of the machines"),
    "no workers": (changed(worker=[]), "is not a list of 0 texts"),
    "another job": (lambda m, g, p: ({"ps": [], "workers": []}, {}), "with the keys ['ps', 'workers']; expected"),
    "a key for each task": (
        lambda m, g, p: (with_products(m, g, p)[0], {"ps:0": ""}), "with the keys ['ps:0']; expected"
    ),
    "no port": (lambda m, g, p: ({"ps": m, "worker": []}, {}), "is not an address on one of the machines"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score == 0 and message in score.text, score.text


def with_ports(first):
    def plan(machines, gpus, ps_tasks):
        jobs, sees = with_products(machines, gpus, ps_tasks)
        return {
            **jobs,
            "ps": [f"{address.partition(':')[0]}:{first + i}" for i, address in enumerate(jobs["ps"])],
        }, sees

    return plan


def by_gpu_and_by_machine(machines, gpus, ps_tasks):
    """Addresses go GPU by GPU, texts machine by machine: by chance right for 3 machines of 2 GPUs."""
    jobs, sees = as_a_spec(machines, gpus, ps_tasks)
    return jobs, {**sees, "worker": [str(gpu) for _ in machines for gpu in range(gpus)]}


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_no_card_is_had_twice_by_luck(seed, monkeypatch):
    monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
    score = tf.grade(Q1, by_gpu_and_by_machine)
    assert score == 6 and "have the same GPU" in score.text, score.text


@pytest.mark.parametrize("first", [0, 2**16])
def test_a_port_is_one_that_a_machine_has(first):
    score = tf.grade(Q1, with_ports(first))
    assert score == 0 and "ports are numbered from 1 to 65535" in score.text, score.text
