"""Answers to clusters/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import itertools
import math


def plan_mixed_orders(machines, gpus, ps_tasks):
    # Breaks: "each worker sees one GPU, which no other task sees". Addresses go machine by machine, the strings go
    # GPU by GPU, so two workers of one machine get the same GPU.
    ps = [f"{machines[i % len(machines)]}:{3000 + i}" for i in range(ps_tasks)]
    workers = [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)]
    visible = [str(gpu) for gpu in range(gpus) for machine in machines]
    return {"ps": ps, "worker": workers}, {"ps": [""] * ps_tasks, "worker": visible}


def plan_rounded_up_blocks(machines, gpus, ps_tasks):
    # Breaks: "spread over the machines (none has two more than another)". Four on three machines are 2, 2 and 0.
    each = max(1, math.ceil(ps_tasks / len(machines)))
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    for number, machine in enumerate(machines):
        port = 2222
        for gpu in range(gpus):
            addresses["worker"].append(f"{machine}:{port}")
            visible["worker"].append(str(gpu))
            port += 1
        for _ in range(number * each, min((number + 1) * each, ps_tasks)):
            addresses["ps"].append(f"{machine}:{port}")
            visible["ps"].append("")
            port += 1
    return addresses, visible


def plan_four_ports_for_workers(machines, gpus, ps_tasks):
    # Breaks: "with any port that no other task on that machine has". With five GPUs or more, a worker has port 2226.
    addresses = {
        "ps": [f"{machines[i % len(machines)]}:{2226 + i // len(machines)}" for i in range(ps_tasks)],
        "worker": [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)],
    }
    visible = {"ps": [""] * ps_tasks, "worker": [str(gpu) for _ in machines for gpu in range(gpus)]}
    return addresses, visible


def plan_from_one_list_of_tasks(machines, gpus, ps_tasks):
    """All tasks as (job, machine, what it sees) first; a port is the task's place in this list."""
    workers = [("worker", machine, str(gpu)) for machine, gpu in itertools.product(machines, range(gpus))]
    servers = [("ps", machine, "") for machine in itertools.islice(itertools.cycle(machines), ps_tasks)]
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    for port, (job, machine, sees) in enumerate(workers + servers, start=20000):
        addresses[job].append(f"{machine}:{port}")
        visible[job].append(sees)
    return addresses, visible


RIGHT = [plan_from_one_list_of_tasks]
WRONG = {
    # The strings are in another order than the addresses, so with several machines two workers on one machine
    # see the same GPU, and another GPU is seen by nobody there.
    plan_mixed_orders: "gives_a_gpu_twice",
    # The machines are filled with the rounded-up share of ps tasks one after the other, so the last may get
    # none while the others have two (four tasks on three machines).
    plan_rounded_up_blocks: "fills_machines_up",
    # The ports of ps tasks begin only four after those of the workers, so on a machine with five GPUs a
    # worker and a ps have the same address.
    plan_four_ports_for_workers: "takes_a_port_twice",
}
