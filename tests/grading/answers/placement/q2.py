"""Answers to placement/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf


def parsed(name):
    spec = tf.DeviceSpec.from_string(name)
    return {"job": spec.job, "task": spec.task, "type": spec.device_type, "index": spec.device_index}


def possible(pin, gpu_kernel, devices):
    wish = {key: value for key, value in parsed(pin).items() if value is not None}
    return [d for d in devices if wish.items() <= parsed(d).items() and (gpu_kernel or parsed(d)["type"] == "CPU")]


def by_stages(pin, gpu_kernel, devices, master):
    left = sorted(possible(pin, gpu_kernel, devices))
    gpus = [device for device in left if parsed(device)["type"] == "GPU"]
    left = gpus or left
    mine = [device for device in left if device.split("/device:")[0] == master]
    return next(iter(mine or left), None)


def by_score(pin, gpu_kernel, devices, master):
    best, best_score = None, -1
    for device in sorted(devices, reverse=True):
        if device in possible(pin, gpu_kernel, devices):
            score = 2 * device.count("GPU") + (device.rsplit("/", 1)[0] == master)
            if score >= best_score:
                best, best_score = device, score
    return best


def raises(pin, gpu_kernel, devices, master):
    """An error where None is asked for."""
    found = by_stages(pin, gpu_kernel, devices, master)
    if found is None:
        raise ValueError(f"{pin} can't be kept")
    return found


def soft(pin, gpu_kernel, devices, master):
    """Places as with soft placement: on the CPU, if there is no GPU kernel."""
    return by_stages(pin, gpu_kernel, devices, master) or by_stages("", gpu_kernel, devices, master)


def empty_text(pin, gpu_kernel, devices, master):
    return by_stages(pin, gpu_kernel, devices, master) or ""


def as_texts(pin, gpu_kernel, devices, master):
    """A pin as a part of the name: /gpu:1 is not in any."""
    return by_stages("", gpu_kernel, [device for device in devices if pin in device], master)


def cpu_for_no_kernel(pin, gpu_kernel, devices, master):
    """Takes the CPU of the master for each op without a GPU kernel."""
    return by_stages(pin, True, devices, master) if gpu_kernel else f"{master}/device:CPU:0"


def ignores_the_index(pin, gpu_kernel, devices, master):
    wish = {key: value for key, value in parsed(pin).items() if value is not None and key != "index"}
    return by_stages("", gpu_kernel, [d for d in devices if wish.items() <= parsed(d).items()], master)


def last_by_name(pin, gpu_kernel, devices, master):
    left = possible(pin, gpu_kernel, devices)
    return max(left, key=lambda d: ("GPU" in d, d.startswith(f"{master}/"), d), default=None)


def master_wins_or_nothing(pin, gpu_kernel, devices, master):
    """Only the master's own devices come into question."""
    return by_stages(pin, gpu_kernel, [device for device in devices if device.startswith(f"{master}/")], master)


def from_the_checks(pin, gpu_kernel, devices, master):
    """By the wrong means: whatever the checks say of a device."""
    from dtflab.grading.checks import placement_pins

    case = placement_pins.Case(pin, gpu_kernel, devices, master)
    return min(filter(case.may_be, devices), default=None)


def asks_a_session(pin, gpu_kernel, devices, master):
    """By the wrong means: a cluster of its own, and a session that places the op."""
    workers = 1 + max(parsed(device)["task"] for device in devices if "/job:worker" in device)
    ps = 1 + max(parsed(device)["task"] for device in devices if "/job:ps" in device)
    gpus = 1 + max(parsed(device)["index"] for device in devices)
    with tf.Cluster(ps=ps, worker=workers, gpus=gpus) as cluster, tf.Graph().as_default(), tf.device(pin):
        tf.zeros([]) if gpu_kernel else tf.constant("")
        task = parsed(master)
        try:
            return tf.Session(cluster.target_of(task["job"], task["task"])).placed_nodes()[-1].device
        except tf.errors.InvalidArgumentError:
            return None


RIGHT = [by_stages, by_score]
WRONG = {
    raises: "",
    soft: "looks_for_another",
    empty_text: "gives_something_empty",
    as_texts: "compares_texts",
    cpu_for_no_kernel: "sends_to_the_masters_cpu",
    ignores_the_index: "ignores_the_index",
    last_by_name: "takes_the_last_by_name",
    master_wins_or_nothing: "stays_with_the_master",
    from_the_checks: "",
    asks_a_session: "opens_a_session",
}
