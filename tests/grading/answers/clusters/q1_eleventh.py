"""An eleventh author's answers to clusters/q1: servers for machines with GPUs."""


def card_after_card_eleven(machines, gpus, ps_tasks):
    """Workers in the order of their cards, first card of each machine first; ps tasks from the last machine on."""
    spots = [(machine, card) for card in range(gpus) for machine in machines]
    ports = iter(range(4000, 4000 + len(spots) + ps_tasks))
    backwards = list(reversed(machines))
    addresses = {
        "worker": [f"{machine}:{next(ports)}" for machine, _ in spots],
        "ps": [f"{backwards[task % len(backwards)]}:{next(ports)}" for task in range(ps_tasks)],
    }
    return addresses, {"worker": [str(card) for _, card in spots], "ps": [""] * ps_tasks}


def one_port_for_every_ps_eleven(machines, gpus, ps_tasks):
    """A port for the ps of a machine, and further ones for its workers."""
    addresses = {"ps": [f"{machines[task % len(machines)]}:2221" for task in range(ps_tasks)], "worker": []}
    visible = {"ps": [""] * ps_tasks, "worker": []}
    for machine in machines:
        for card in range(gpus):
            addresses["worker"].append(f"{machine}:{2222 + card}")
            visible["worker"].append(str(card))
    return addresses, visible


def ps_tasks_in_full_blocks_eleven(machines, gpus, ps_tasks):
    """As many ps tasks on each machine as the largest share is, until all are placed."""
    share = max(1, -(-ps_tasks // len(machines)))
    addresses = {"ps": [f"{machines[task // share]}:{3000 + task}" for task in range(ps_tasks)], "worker": []}
    visible = {"ps": [""] * ps_tasks, "worker": []}
    for machine in machines:
        for card in range(gpus):
            addresses["worker"].append(f"{machine}:{2222 + card}")
            visible["worker"].append(str(card))
    return addresses, visible


def cards_numbered_by_worker_eleven(machines, gpus, ps_tasks):
    """The number of the worker as that of its card."""
    addresses = {"ps": [f"{machines[task % len(machines)]}:{3000 + task}" for task in range(ps_tasks)]}
    addresses["worker"] = [f"{machine}:{4000 + card}" for machine in machines for card in range(gpus)]
    return addresses, {"ps": [""] * ps_tasks, "worker": [str(task) for task in range(len(addresses["worker"]))]}


RIGHT = [card_after_card_eleven]
WRONG = {
    one_port_for_every_ps_eleven: "takes_a_port_twice",
    ps_tasks_in_full_blocks_eleven: "fills_machines_up",
    cards_numbered_by_worker_eleven: "numbers_gpus_of_all_machines",
}
