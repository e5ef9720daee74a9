"""Answers of an eighteenth author to clusters/q1: the tasks of machines with GPUs."""

import collections
import itertools


def dealt_ports_eighteenth(machines, gpus, ps_tasks):
    """Deal the tasks out to the machines; each machine has a counter that gives its next free port."""
    ports = collections.defaultdict(lambda: itertools.count(2222))
    places = [("ps", machine, "") for machine in itertools.islice(itertools.cycle(machines), ps_tasks)]
    places += [("worker", machine, str(gpu)) for machine, gpu in itertools.product(machines, range(gpus))]
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    for job, machine, sees in places:
        addresses[job].append(f"{machine}:{next(ports[machine])}")
        visible[job].append(sees)
    return addresses, visible


def filled_up_eighteenth(machines, gpus, ps_tasks):
    """Fill the machines with ps tasks one after the other, as many on each as an even share, rounded up."""
    share = -(-ps_tasks // len(machines))
    ps = [f"{machines[task // share]}:{3000 + task}" for task in range(ps_tasks)]
    worker = [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)]
    visible = [str(gpu) for _ in machines for gpu in range(gpus)]
    return {"ps": ps, "worker": worker}, {"ps": [""] * ps_tasks, "worker": visible}


def other_loop_order_eighteenth(machines, gpus, ps_tasks):
    """List addresses machine by machine, and the GPUs number by number."""
    ps = [f"{machines[task % len(machines)]}:{5000 + task}" for task in range(ps_tasks)]
    worker = [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)]
    visible = [str(gpu) for gpu in range(gpus) for _ in machines]
    return {"ps": ps, "worker": worker}, {"ps": ["" for _ in ps], "worker": visible}


def ports_run_into_each_other_eighteenth(machines, gpus, ps_tasks):
    """Give the ps tasks of a machine the ports from 2221 on, and its workers those from 2222 on."""
    ps = [f"{machines[task % len(machines)]}:{2221 + task // len(machines)}" for task in range(ps_tasks)]
    worker, visible = [], []
    for machine in machines:
        for gpu in range(gpus):
            worker.append(f"{machine}:{2222 + gpu}")
            visible.append(f"{gpu}")
    return {"ps": ps, "worker": worker}, {"ps": [""] * len(ps), "worker": visible}


RIGHT = [dealt_ports_eighteenth]
WRONG = {
    filled_up_eighteenth: "fills_machines_up",
    other_loop_order_eighteenth: "gives_a_gpu_twice",
    ports_run_into_each_other_eighteenth: "takes_a_port_twice",
}
