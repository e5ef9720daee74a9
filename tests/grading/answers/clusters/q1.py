"""Answers to clusters/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import collections

import dtflab as tf


def planned(machines, gpus, ps_tasks, ps=None, worker=None, sees=None, ps_sees=""):
    """The right plan, but for what is replaced."""
    jobs = {
        "ps": ps or [f"{machines[i % len(machines)]}:{2200 + i // len(machines)}" for i in range(ps_tasks)],
        "worker": worker or [f"{machine}:{3000 + gpu}" for machine in machines for gpu in range(gpus)],
    }
    return jobs, {"ps": [ps_sees] * ps_tasks, "worker": sees or [str(gpu) for _ in machines for gpu in range(gpus)]}


def by_machine(machines, gpus, ps_tasks):
    jobs, sees = collections.defaultdict(list), collections.defaultdict(list)
    for number, machine in enumerate(machines):
        port = 40_000
        for job, texts in (
            ("worker", map(str, range(gpus))),
            ("ps", [""] * len(range(number, ps_tasks, len(machines)))),
        ):
            for text in texts:
                jobs[job].append(f"{machine}:{port}")
                sees[job].append(text)
                port += 1
    return tf.train.ClusterSpec(dict(jobs)), dict(sees)


def with_minus_one(machines, gpus, ps_tasks):
    return planned(machines, gpus, ps_tasks, ps_sees="-1")


def one_ps_for_each_machine(machines, gpus, ps_tasks):
    return planned(machines, gpus, len(machines))


def one_worker_for_each_machine(machines, gpus, ps_tasks):
    everything = ",".join(map(str, range(gpus)))
    worker = [f"{machine}:3000" for machine in machines]
    return planned(machines, gpus, ps_tasks, worker=worker, sees=[everything] * len(machines))


def counts_gpus_from_one(machines, gpus, ps_tasks):
    return planned(machines, gpus, ps_tasks, sees=[str(gpu + 1) for _ in machines for gpu in range(gpus)])


def workers_see_all_that_come_before(machines, gpus, ps_tasks):
    texts = [",".join(map(str, range(gpu + 1))) for _ in machines for gpu in range(gpus)]
    return planned(machines, gpus, ps_tasks, sees=texts)


def ps_and_worker_share_a_port(machines, gpus, ps_tasks):
    ps = [f"{machines[i % len(machines)]}:{3000 + i // len(machines)}" for i in range(ps_tasks)]
    return planned(machines, gpus, ps_tasks, ps=ps)


def ps_sees_gpu_0(machines, gpus, ps_tasks):
    return planned(machines, gpus, ps_tasks, ps_sees="0")


def ps_fills_machines_up(machines, gpus, ps_tasks):
    """Two ps tasks on each machine, until all are dealt."""
    ps = [f"{machines[min(i // 2, len(machines) - 1)]}:{2200 + i}" for i in range(ps_tasks)]
    return planned(machines, gpus, ps_tasks, ps=ps)


def texts_by_gpu(machines, gpus, ps_tasks):
    """Addresses machine by machine, texts GPU by GPU."""
    return planned(machines, gpus, ps_tasks, sees=[str(gpu) for gpu in range(gpus) for _ in machines])


def all_workers_on_the_first(machines, gpus, ps_tasks):
    worker = [f"{machines[0]}:{3000 + i}" for i in range(len(machines) * gpus)]
    return planned(machines, gpus, ps_tasks, worker=worker)


def numbers_and_no_texts(machines, gpus, ps_tasks):
    return planned(machines, gpus, ps_tasks, sees=[gpu for _ in machines for gpu in range(gpus)])


def last_digit(machines, gpus, ps_tasks):
    return planned(machines, gpus, ps_tasks, sees=[str(gpu)[-1] for _ in machines for gpu in range(gpus)])


def eight_cards(machines, gpus, ps_tasks):
    return planned(machines, gpus, ps_tasks, sees=[str(gpu % 8) for _ in machines for gpu in range(gpus)])


def several_cards_only(machines, gpus, ps_tasks):
    if gpus == 1:
        raise ValueError("no cluster for one card")
    return planned(machines, gpus, ps_tasks)


RIGHT = [by_machine, with_minus_one]
WRONG = {
    one_ps_for_each_machine: "makes_a_ps_for_each_machine",
    one_worker_for_each_machine: "makes_a_worker_for_each_machine",
    counts_gpus_from_one: "counts_gpus_from_one",
    workers_see_all_that_come_before: "lets_a_worker_see_several",
    ps_and_worker_share_a_port: "takes_a_port_twice",
    ps_sees_gpu_0: "lets_the_ps_see_gpus",
    ps_fills_machines_up: "fills_machines_up",
    texts_by_gpu: "gives_a_gpu_twice",
    all_workers_on_the_first: "piles_up_the_workers",
    numbers_and_no_texts: "",
    last_digit: "gives_a_gpu_twice",
    eight_cards: "gives_a_gpu_twice",
    several_cards_only: "",
}
