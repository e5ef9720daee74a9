"""Answers of a twentieth author to clusters/q1: addresses and visible GPUs of the tasks on several machines."""

import collections
import itertools


def counted_ports_twentieth(machines, gpus, ps_tasks):
    """Let each machine count its own ports, for the parameter servers first, then for one worker per GPU."""
    ports = collections.defaultdict(lambda: itertools.count(3000))
    places = {
        "ps": [(machine, "") for machine in itertools.islice(itertools.cycle(machines), ps_tasks)],
        "worker": [(machine, str(gpu)) for gpu, machine in itertools.product(range(gpus), machines)],
    }
    addresses = {job: [f"{machine}:{next(ports[machine])}" for machine, _ in tasks] for job, tasks in places.items()}
    return addresses, {job: [seen for _, seen in tasks] for job, tasks in places.items()}


def ports_of_each_job_twentieth(machines, gpus, ps_tasks):
    """Number the ports within each job, from 2222 up."""
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    for task in range(ps_tasks):
        addresses["ps"].append(f"{machines[task % len(machines)]}:{2222 + task}")
        visible["ps"].append("")
    for number, machine in enumerate(machines):
        for gpu in range(gpus):
            addresses["worker"].append(f"{machine}:{2222 + number * gpus + gpu}")
            visible["worker"].append(str(gpu))
    return addresses, visible


def filled_up_twentieth(machines, gpus, ps_tasks):
    """Fill one machine after the other with its share of the parameter servers, rounded up."""
    share = -(-ps_tasks // len(machines))
    addresses = {
        "ps": [f"{machines[task // share]}:{2000 + task}" for task in range(ps_tasks)],
        "worker": [f"{machine}:{4000 + gpu}" for machine in machines for gpu in range(gpus)],
    }
    visible = {"ps": [""] * ps_tasks, "worker": [str(gpu) for _ in machines for gpu in range(gpus)]}
    return addresses, visible


def dealt_out_twentieth(machines, gpus, ps_tasks):
    """Deal out the workers to the machines in turn, and the numbers of the GPUs in turn as well."""
    addresses, visible = {"ps": [], "worker": []}, {"ps": [], "worker": []}
    for task in range(ps_tasks):
        addresses["ps"].append(f"{machines[task % len(machines)]}:{2222 + task}")
        visible["ps"].append("")
    for task in range(len(machines) * gpus):
        addresses["worker"].append(f"{machines[task % len(machines)]}:{5000 + task}")
        visible["worker"].append(str(task % gpus))
    return addresses, visible


RIGHT = [counted_ports_twentieth]
WRONG = {
    ports_of_each_job_twentieth: "takes_a_port_twice",
    filled_up_twentieth: "fills_machines_up",
    dealt_out_twentieth: "gives_a_gpu_twice",
}
