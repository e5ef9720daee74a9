"""Wrong answers to clusters/q1, each called as the mistake that its hint names. Tests grade them; people read them."""


def addresses(machines, gpus, ps_tasks):
    """The right ones."""
    ps = [f"{machines[task % len(machines)]}:{3000 + task}" for task in range(ps_tasks)]
    return {"ps": ps, "worker": [f"{machine}:{2222 + gpu}" for machine in machines for gpu in range(gpus)]}


def texts(machines, gpus):
    return [str(gpu) for _ in machines for gpu in range(gpus)]


def takes_a_port_twice(machines, gpus, ps_tasks):
    jobs = addresses(machines, gpus, ps_tasks)
    jobs = {job: [f"{address.partition(':')[0]}:2222" for address in jobs[job]] for job in jobs}
    return jobs, {"ps": "", "worker": texts(machines, gpus)}


def piles_up_the_ps(machines, gpus, ps_tasks):
    jobs = addresses(machines, gpus, ps_tasks)
    jobs["ps"] = [f"{machines[0]}:{3000 + i}" for i in range(ps_tasks)]
    return jobs, {"ps": "", "worker": texts(machines, gpus)}


def lets_the_ps_see_gpus(machines, gpus, ps_tasks):
    return addresses(machines, gpus, ps_tasks), {"worker": texts(machines, gpus)}


def lets_workers_see_all(machines, gpus, ps_tasks):
    return addresses(machines, gpus, ps_tasks), {"ps": ""}


def numbers_gpus_of_all_machines(machines, gpus, ps_tasks):
    numbers = [str(task) for task in range(gpus * len(machines))]
    return addresses(machines, gpus, ps_tasks), {"ps": [""] * ps_tasks, "worker": numbers}


def gives_a_gpu_twice(machines, gpus, ps_tasks):
    return addresses(machines, gpus, ps_tasks), {"ps": "", "worker": ["0"] * (gpus * len(machines))}


def names_devices(machines, gpus, ps_tasks):
    visible = [f"/gpu:{gpu}" for gpu in texts(machines, gpus)]
    return addresses(machines, gpus, ps_tasks), {"ps": "", "worker": visible}


def counts_gpus_from_one(machines, gpus, ps_tasks):
    numbers = [str(gpu + 1) for _ in machines for gpu in range(gpus)]
    return addresses(machines, gpus, ps_tasks), {"ps": "", "worker": numbers}


def makes_a_ps_for_each_machine(machines, gpus, ps_tasks):
    return addresses(machines, gpus, len(machines)), {"ps": "", "worker": texts(machines, gpus)}


def makes_a_worker_for_each_machine(machines, gpus, ps_tasks):
    return addresses(machines, 1, ps_tasks), {"ps": "", "worker": ["0"] * len(machines)}


def fills_machines_up(machines, gpus, ps_tasks):
    jobs = addresses(machines, gpus, ps_tasks)
    jobs["ps"] = [f"{machines[min(i // 2, len(machines) - 1)]}:{3000 + i}" for i in range(ps_tasks)]
    return jobs, {"ps": "", "worker": texts(machines, gpus)}


def piles_up_the_workers(machines, gpus, ps_tasks):
    jobs = addresses(machines, gpus, ps_tasks)
    jobs["worker"] = [f"{machines[0]}:{2222 + i}" for i in range(len(jobs["worker"]))]
    return jobs, {"ps": "", "worker": texts(machines, gpus)}


def lets_a_worker_see_several(machines, gpus, ps_tasks):
    all_gpus = ",".join(map(str, range(gpus)))
    return addresses(machines, gpus, ps_tasks), {"ps": "", "worker": [all_gpus] * (gpus * len(machines))}
