"""Answers of an eighteenth author to placement/q2: a placer for a single op."""

import dtflab as tf


def _has_kernel(device, gpu_kernel):
    """Tell if the op can run on the device."""
    return device.device_type == "CPU" or (device.device_type == "GPU" and gpu_kernel)


def sorts_from_last_rule_to_first_eighteenth(pin, gpu_kernel, devices, master):
    """Keep the devices that the pin's merging leaves as they are; sort them by the last rule first."""
    asked = tf.DeviceSpec.from_string(pin)
    left = []
    for name in sorted(devices):
        device, merged = tf.DeviceSpec.from_string(name), tf.DeviceSpec.from_string(name)
        merged.merge_from(asked)
        if merged.to_string() == device.to_string() and _has_kernel(device, gpu_kernel):
            left.append(name)
    left.sort(key=lambda name: not name.startswith(master + "/"))
    left.sort(key=lambda name: tf.DeviceSpec.from_string(name).device_type != "GPU")
    return next(iter(left), None)


def number_zero_is_nothing_eighteenth(pin, gpu_kernel, devices, master):
    """Compare each field of the pin that is true."""
    asked = tf.DeviceSpec.from_string(pin)
    left = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        if asked.job and asked.job != device.job:
            continue
        if asked.task and asked.task != device.task:
            continue
        if asked.device_type and asked.device_type != device.device_type:
            continue
        if asked.device_index and asked.device_index != device.device_index:
            continue
        if _has_kernel(device, gpu_kernel):
            left.append((device.device_type != "GPU", not name.startswith(master + "/"), name))
    return min(left)[2] if left else None


def task_number_of_the_master_eighteenth(pin, gpu_kernel, devices, master):
    """Prefer the devices whose task has the master's number."""
    asked, server = tf.DeviceSpec.from_string(pin), tf.DeviceSpec.from_string(master)
    fields = ("job", "task", "device_type", "device_index")

    def fits(name):
        """Tell if the pin and the kernel allow the device."""
        device = tf.DeviceSpec.from_string(name)
        kept = all(getattr(asked, field) in (None, getattr(device, field)) for field in fields)
        return kept and _has_kernel(device, gpu_kernel)

    def rank(name):
        """The place of the device in the order of preference."""
        device = tf.DeviceSpec.from_string(name)
        return device.device_type != "GPU", device.task != server.task, name

    return min(filter(fits, devices), key=rank, default=None)


def server_before_type_eighteenth(pin, gpu_kernel, devices, master):
    """Prefer the master's task to other tasks, and only then GPUs to CPUs."""
    asked = tf.DeviceSpec.from_string(pin)
    best = None
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        pairs = [
            (asked.job, device.job),
            (asked.task, device.task),
            (asked.device_type, device.device_type),
            (asked.device_index, device.device_index),
        ]
        if any(wanted is not None and wanted != has for wanted, has in pairs) or not _has_kernel(device, gpu_kernel):
            continue
        away = not name.startswith(master + "/")
        rank = (away, device.device_type != "GPU", name)
        if best is None or rank < best[0]:
            best = rank, name
    return best and best[1]


RIGHT = [sorts_from_last_rule_to_first_eighteenth]
WRONG = {
    number_zero_is_nothing_eighteenth: "takes_zero_for_unsaid",
    task_number_of_the_master_eighteenth: "takes_any_job_for_the_masters",
    server_before_type_eighteenth: "own_task_first",
}
