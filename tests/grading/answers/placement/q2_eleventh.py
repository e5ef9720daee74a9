"""An eleventh author's answers to placement/q2: a placer for one op."""

import dtflab as tf


def _kept(pin, device):
    """Whether the device has all that the pin says."""
    asked, has = tf.DeviceSpec.from_string(pin), tf.DeviceSpec.from_string(device)
    fields = ("job", "task", "device_type", "device_index")
    return all(getattr(asked, field) in (None, getattr(has, field)) for field in fields)


def knock_out_by_rounds_eleven(pin, gpu_kernel, devices, master):
    """The device that is left when each rule in turn has thrown out what is worse."""
    specs = {name: tf.DeviceSpec.from_string(name) for name in devices}
    asked = tf.DeviceSpec.from_string(pin)
    for field in ("job", "task", "device_type", "device_index"):
        wanted = getattr(asked, field)
        if wanted is not None:
            specs = {name: spec for name, spec in specs.items() if getattr(spec, field) == wanted}
    if not gpu_kernel:
        specs = {name: spec for name, spec in specs.items() if spec.device_type == "CPU"}
    home = tf.DeviceSpec.from_string(master)
    for better in (
        lambda spec: spec.device_type == "GPU",
        lambda spec: (spec.job, spec.task) == (home.job, home.task),
    ):
        best = {name: spec for name, spec in specs.items() if better(spec)}
        specs = best or specs
    return min(specs, default=None)


def own_task_before_gpus_eleven(pin, gpu_kernel, devices, master):
    """The first device of the master's task, if any will do, and of these a GPU."""
    left = [name for name in devices if _kept(pin, name) and (gpu_kernel or "/device:CPU:" in name)]
    order = sorted(left, key=lambda name: (not name.startswith(master + "/"), "/device:GPU:" not in name, name))
    return order[0] if order else None


def zero_means_not_said_eleven(pin, gpu_kernel, devices, master):
    """The best of the devices that agree with what the pin says, where a 0 counts as nothing said."""
    asked = tf.DeviceSpec.from_string(pin)
    left = []
    for name in devices:
        has = tf.DeviceSpec.from_string(name)
        if (asked.job and asked.job != has.job) or (asked.task and asked.task != has.task):
            continue
        if asked.device_type and asked.device_type != has.device_type:
            continue
        if asked.device_index and asked.device_index != has.device_index:
            continue
        if gpu_kernel or has.device_type == "CPU":
            left.append(name)
    left.sort(key=lambda name: ("/device:GPU:" not in name, not name.startswith(master + "/"), name))
    return left[0] if left else None


def softly_to_the_cpu_eleven(pin, gpu_kernel, devices, master):
    """A device that keeps the pin, or a CPU of the same task if there is no kernel for the pinned GPU."""
    left = [name for name in devices if _kept(pin, name)]
    if not gpu_kernel:
        tasks = {name.rpartition("/device:")[0] for name in left}
        left = [name for name in devices if name.rpartition("/device:")[0] in tasks and "/device:CPU:" in name]
    left.sort(key=lambda name: ("/device:GPU:" not in name, not name.startswith(master + "/"), name))
    return left[0] if left else None


RIGHT = [knock_out_by_rounds_eleven]
WRONG = {
    own_task_before_gpus_eleven: "own_task_first",
    zero_means_not_said_eleven: "takes_zero_for_unsaid",
    softly_to_the_cpu_eleven: "",
}
