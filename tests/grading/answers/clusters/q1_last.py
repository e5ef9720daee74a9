"""Answers to clusters/q1 of a last batch, written from the exercise alone after the checks were done."""


def machine_by_machine(machines, gpus, ps_tasks):
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    next_port = dict.fromkeys(machines, 2222)

    def task(job, machine, cards):
        addresses[job].append(f"{machine}:{next_port[machine]}")
        visible[job].append(cards)
        next_port[machine] += 1

    for number in range(ps_tasks):
        task("ps", machines[number % len(machines)], "")
    for machine in machines:
        for gpu in range(gpus):
            task("worker", machine, str(gpu))
    return addresses, visible


def cards_numbered_through(machines, gpus, ps_tasks):
    ps = [f"{machines[i % len(machines)]}:{3000 + i}" for i in range(ps_tasks)]
    worker, sees = [], []
    for machine in machines:
        for gpu in range(gpus):
            sees.append(str(len(worker)))
            worker.append(f"{machine}:{2222 + gpu}")
    return {"ps": ps, "worker": worker}, {"ps": [""] * ps_tasks, "worker": sees}


def all_ps_at_2221(machines, gpus, ps_tasks):
    ps = [f"{machines[i % len(machines)]}:2221" for i in range(ps_tasks)]
    worker = [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)]
    sees = [str(gpu) for _ in machines for gpu in range(gpus)]
    return {"ps": ps, "worker": worker}, {"ps": [""] * ps_tasks, "worker": sees}


def none_for_a_ps(machines, gpus, ps_tasks):
    ps = [f"{machines[i % len(machines)]}:{3000 + i}" for i in range(ps_tasks)]
    worker = [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)]
    sees = [str(gpu) for _ in machines for gpu in range(gpus)]
    return {"ps": ps, "worker": worker}, {"ps": [None] * ps_tasks, "worker": sees}


RIGHT = [machine_by_machine]
WRONG = {
    # Numbers the GPUs through over all machines: "2" on a second machine that has only 0 and 1.
    cards_numbered_through: "numbers_gpus_of_all_machines",
    # Gives every ps the same port, so two of them on one machine (more ps than machines) have one address.
    all_ps_at_2221: "takes_a_port_twice",
    # Writes None for a ps, believing that this hides the GPUs: it means that nothing is set, and all are seen.
    none_for_a_ps: "lets_the_ps_see_gpus",
}
