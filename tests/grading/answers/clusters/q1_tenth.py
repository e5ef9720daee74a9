"""Ways to plan the tasks of a cluster: one right, three wrong."""

from itertools import count, cycle, islice, product


def iterators_deal_out_ten(machines, gpus, ps_tasks):
    """Deal ports and machines with iterators; a ps gets -1, which names none of the GPUs."""
    ports = {machine: count(40_000) for machine in machines}
    seats = list(product(machines, map(str, range(gpus))))
    addresses = {
        "worker": [f"{machine}:{next(ports[machine])}" for machine, _ in seats],
        "ps": [f"{machine}:{next(ports[machine])}" for machine in islice(cycle(reversed(machines)), ps_tasks)],
    }
    return addresses, {"worker": [gpu for _, gpu in seats], "ps": ["-1"] * ps_tasks}


def rest_on_the_last_ten(machines, gpus, ps_tasks):
    """The same number of ps tasks on each machine, and the rest on the last."""
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    each = ps_tasks // len(machines)
    for machine in machines:
        here = each if machine != machines[-1] else ps_tasks - each * (len(machines) - 1)
        port = 2222
        for _ in range(here):
            addresses["ps"].append(f"{machine}:{port}")
            visible["ps"].append("")
            port += 1
        for gpu in range(gpus):
            addresses["worker"].append(f"{machine}:{port}")
            visible["worker"].append(str(gpu))
            port += 1
    return addresses, visible


def room_for_eight_ports_ten(machines, gpus, ps_tasks):
    """Ports from 2222 for the ps tasks of a machine, from 2230 for its workers."""
    ps = [f"{machines[i % len(machines)]}:{2222 + i // len(machines)}" for i in range(ps_tasks)]
    workers = [f"{machine}:{2230 + gpu}" for machine in machines for gpu in range(gpus)]
    visible = {"ps": [""] * ps_tasks, "worker": [str(gpu) for _ in machines for gpu in range(gpus)]}
    return {"ps": ps, "worker": workers}, visible


def both_in_turn_ten(machines, gpus, ps_tasks):
    """The workers go round the machines, and round the GPUs, at the same time."""
    ps, workers, seen = [], [], []
    for task in range(len(machines) * gpus):
        workers.append(f"{machines[task % len(machines)]}:{3000 + task}")
        seen.append(str(task % gpus))
    for task in range(ps_tasks):
        ps.append(f"{machines[task % len(machines)]}:{2000 + task}")
    return {"ps": ps, "worker": workers}, {"ps": [""] * ps_tasks, "worker": seen}


RIGHT = [iterators_deal_out_ten]
WRONG = {
    rest_on_the_last_ten: "fills_machines_up",
    room_for_eight_ports_ten: "takes_a_port_twice",
    both_in_turn_ten: "gives_a_gpu_twice",
}
