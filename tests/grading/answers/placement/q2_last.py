"""Answers to placement/q2 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def filter_then_smallest_key(pin, gpu_kernel, devices, master):
    wanted = tf.DeviceSpec.from_string(pin)
    home = tf.DeviceSpec.from_string(master)
    kernels = {"CPU", "GPU"} if gpu_kernel else {"CPU"}
    fields = ("job", "replica", "task", "device_type", "device_index")

    def fits(device):
        kept = all(getattr(wanted, f) is None or getattr(wanted, f) == getattr(device, f) for f in fields)
        return kept and device.device_type in kernels

    def rank(name):
        device = tf.DeviceSpec.from_string(name)
        at_home = (device.job, device.task) == (home.job, home.task)
        return device.device_type != "GPU", not at_home, name

    return min((name for name in devices if fits(tf.DeviceSpec.from_string(name))), key=rank, default=None)


def zero_is_nothing(pin, gpu_kernel, devices, master):
    wanted = tf.DeviceSpec.from_string(pin)
    left = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        if wanted.job and device.job != wanted.job:
            continue
        if wanted.task and device.task != wanted.task:
            continue
        if wanted.device_type and device.device_type != wanted.device_type:
            continue
        if wanted.device_index and device.device_index != wanted.device_index:
            continue
        if device.device_type == "GPU" and not gpu_kernel:
            continue
        left.append((device.device_type != "GPU", not name.startswith(master + "/"), name))
    return min(left)[2] if left else None


def cpu_if_no_kernel(pin, gpu_kernel, devices, master):
    wanted = tf.DeviceSpec.from_string(pin)
    kind, index = wanted.device_type, wanted.device_index
    if kind == "GPU" and not gpu_kernel:
        kind, index = "CPU", 0  # no kernel for GPUs: then the CPU of that task
    left = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        if wanted.job is not None and device.job != wanted.job:
            continue
        if wanted.task is not None and device.task != wanted.task:
            continue
        if kind is not None and device.device_type != kind:
            continue
        if index is not None and device.device_index != index:
            continue
        if device.device_type == "GPU" and not gpu_kernel:
            continue
        left.append((device.device_type != "GPU", not name.startswith(master + "/"), name))
    return min(left)[2] if left else None


def first_in_the_list(pin, gpu_kernel, devices, master):
    wanted = tf.DeviceSpec.from_string(pin)
    left = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        if wanted.job is not None and device.job != wanted.job:
            continue
        if wanted.task is not None and device.task != wanted.task:
            continue
        if wanted.device_type is not None and device.device_type != wanted.device_type:
            continue
        if wanted.device_index is not None and device.device_index != wanted.device_index:
            continue
        if device.device_type == "GPU" and not gpu_kernel:
            continue
        left.append(name)
    gpus = [name for name in left if "GPU" in name]
    left = gpus or left
    near = [name for name in left if name.startswith(master + "/")]
    left = near or left
    return left[0] if left else None


RIGHT = [filter_then_smallest_key]
WRONG = {
    # Tests `if wanted.task` and not `is not None`, so a pin to task 0 or to a device 0 is ignored.
    zero_is_nothing: "takes_zero_for_unsaid",
    # Falls back to the CPU when the pin says GPU and there is no kernel, as soft placement would; must be None.
    cpu_if_no_kernel: "",
    # Takes the first one in the order of the list of devices, not the first one by its name.
    first_in_the_list: "takes_what_comes_first",
}
