import itertools


# Breaks: "spread over the machines (none has two more than another)": ps tasks are given out in blocks of
# equal length, so four on three machines are 2, 2, and 0.
def plan_ps_in_blocks(machines, gpus, ps_tasks):
    block = max(1, -(-ps_tasks // len(machines)))
    addresses = {
        "ps": [f"{machines[i // block]}:{3000 + i}" for i in range(ps_tasks)],
        "worker": [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)],
    }
    visible = {"ps": [""] * ps_tasks, "worker": [str(gpu) for _ in machines for gpu in range(gpus)]}
    return addresses, visible


# Breaks: "with any port that no other task on that machine has": the ports of the ps tasks begin eight after those of
# the workers, which meet them on a machine with more GPUs.
def plan_ports_meet(machines, gpus, ps_tasks):
    ps, worker, seen = [], [], []
    for machine in machines:
        for gpu in range(gpus):
            worker.append(f"{machine}:{2222 + gpu}")
            seen.append(f"{gpu}")
    for task in range(ps_tasks):
        ps.append(f"{machines[task % len(machines)]}:{2230 + task // len(machines)}")
    return {"ps": ps, "worker": worker}, {"ps": ["" for _ in ps], "worker": seen}


# Breaks: "each worker sees one GPU, which no other task sees": the addresses go through the machines first, the
# strings through the GPUs first, so two workers on one machine may see the same card.
def plan_two_orders(machines, gpus, ps_tasks):
    workers = [f"{machine}:{2222 + gpu}" for gpu in range(gpus) for machine in machines]
    cards = [str(gpu) for machine in machines for gpu in range(gpus)]
    servers = [f"{machines[i % len(machines)]}:{2100 + i}" for i in range(ps_tasks)]
    return {"ps": servers, "worker": workers}, {"ps": [""] * ps_tasks, "worker": cards}


# Right: ports are dealt by a counter for each machine; the ps tasks begin with the last machine; "-1" hides all cards.
def plan_with_counters(machines, gpus, ps_tasks):
    ports = {machine: itertools.count(5000) for machine in machines}
    tasks = [("worker", machine, str(gpu)) for gpu in reversed(range(gpus)) for machine in machines]
    tasks += [("ps", machine, "-1") for machine in itertools.islice(itertools.cycle(reversed(machines)), ps_tasks)]
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    for job, machine, cards in tasks:
        addresses[job].append(f"{machine}:{next(ports[machine])}")
        visible[job].append(cards)
    return addresses, visible


RIGHT = [plan_with_counters]
WRONG = {
    # Four parameter servers on three machines are dealt 2, 2 and 0: one has two more than another.
    plan_ps_in_blocks: "fills_machines_up",
    # With nine GPUs or more on a machine, a worker and a ps have the same port.
    plan_ports_meet: "takes_a_port_twice",
    # Addresses and visible cards are listed in different orders: two workers of a machine see one GPU.
    plan_two_orders: "gives_a_gpu_twice",
}
