"""Ways to find the device of one op: one right, three wrong."""

import re

import dtflab as tf


def pin_changes_nothing_ten(pin, gpu_kernel, devices, master):
    """Keep the devices whose names a pin, merged into them, does not change; the smallest rank is first."""
    asked = tf.DeviceSpec.from_string(pin)
    ranks = []
    for device in devices:
        spec = tf.DeviceSpec.from_string(device)
        if spec.make_merged_spec(asked) == spec and (gpu_kernel or spec.device_type == "CPU"):
            ranks.append((spec.device_type != "GPU", device.rpartition("/")[0] != master, device))
    return min(ranks)[-1] if ranks else None


def _fits(spec, asked):
    """Whether a device keeps each field that a pin says."""
    fields = ("job", "task", "device_type", "device_index")
    return all(getattr(asked, field) in (None, getattr(spec, field)) for field in fields)


def zero_says_nothing_ten(pin, gpu_kernel, devices, master):
    """Compare the fields of the pin that say something."""
    asked = tf.DeviceSpec.from_string(pin)
    left = []
    for device in devices:
        spec = tf.DeviceSpec.from_string(device)
        if (asked.job and asked.job != spec.job) or (asked.task and asked.task != spec.task):
            continue
        if asked.device_type and asked.device_type != spec.device_type:
            continue
        if asked.device_index and asked.device_index != spec.device_index:
            continue
        if gpu_kernel or spec.device_type == "CPU":
            left.append(device)
    left.sort(key=lambda device: ("GPU" not in device, not device.startswith(master + "/"), device))
    return left[0] if left else None


def asks_a_cluster_of_its_own_ten(pin, gpu_kernel, devices, master):
    """Start a cluster with such devices, and look where a session places such an op."""
    gpus = {}
    for spec in map(tf.DeviceSpec.from_string, sorted(devices)):
        tasks = gpus.setdefault(spec.job, {})
        tasks[spec.task] = tasks.get(spec.task, 0) + (spec.device_type == "GPU")
    addresses = {job: [f"{job}{task}.example.com:2222" for task in sorted(tasks)] for job, tasks in gpus.items()}
    seen = {job: [",".join(map(str, range(tasks[t]))) for t in sorted(tasks)] for job, tasks in gpus.items()}
    most = max(number for tasks in gpus.values() for number in tasks.values())
    spec = tf.DeviceSpec.from_string(master)
    with tf.Cluster(addresses, gpus=most, visible_devices=seen) as cluster, tf.Graph().as_default():
        value = tf.placeholder(tf.float32 if gpu_kernel else tf.string, [])
        with tf.device(pin):
            op = (tf.square(value) if gpu_kernel else tf.string_join([value, value])).op
        with tf.Session(cluster.target_of(spec.job, spec.task)) as sess:
            try:
                return next(node.device for node in sess.placed_nodes() if node.name == op.name)
            except tf.errors.InvalidArgumentError:
                return None


def numbers_by_their_size_ten(pin, gpu_kernel, devices, master):
    """Sort the devices by their jobs, and by tasks and indices as numbers."""
    asked = tf.DeviceSpec.from_string(pin)
    left = [d for d in devices if _fits(tf.DeviceSpec.from_string(d), asked) and (gpu_kernel or "CPU" in d)]

    def rank(device):
        words = [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", device)]
        return "GPU" not in device, device.rpartition("/device:")[0] != master, words

    return min(left, key=rank) if left else None


RIGHT = [pin_changes_nothing_ten]
WRONG = {
    zero_says_nothing_ten: "takes_zero_for_unsaid",
    asks_a_cluster_of_its_own_ten: "opens_a_session",
    numbers_by_their_size_ten: "compares_numbers",
}
