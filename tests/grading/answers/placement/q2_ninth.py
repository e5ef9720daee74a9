import functools
import re

import dtflab as tf


def _task_of(device):
    return device.rpartition("/device:")[0]


# Breaks: "If none is left, the session raises an error" (None): an op that is pinned to a GPU, and has no kernel there,
# is put on a CPU, as with allow_soft_placement.
def place_softly(pin, gpu_kernel, devices, master):
    asked = tf.DeviceSpec.from_string(pin)
    kind, index = asked.device_type, asked.device_index
    if kind == "GPU" and not gpu_kernel:
        kind, index = "CPU", None
    left = []
    for name in devices:
        spec = tf.DeviceSpec.from_string(name)
        if asked.job not in (None, spec.job) or asked.task not in (None, spec.task):
            continue
        if kind not in (None, spec.device_type) or index not in (None, spec.device_index):
            continue
        if spec.device_type == "GPU" and not gpu_kernel:
            continue
        left.append(name)
    if not left:
        return None
    return min(left, key=lambda name: ("GPU:" not in name, _task_of(name) != master, name))


# Breaks: "then the first one by its name, letter by letter": numbers are compared as numbers.
def place_numbers_in_order(pin, gpu_kernel, devices, master):
    asked = tf.DeviceSpec.from_string(pin)

    def fits(spec):
        fields = ("job", "task", "device_type", "device_index")
        kept = all(getattr(asked, field) in (None, getattr(spec, field)) for field in fields)
        return kept and (gpu_kernel or spec.device_type == "CPU")

    def rank(name):
        spec = tf.DeviceSpec.from_string(name)
        return spec.device_type != "GPU", _task_of(name) != master, spec.job, spec.task, spec.device_index

    left = [name for name in devices if fits(tf.DeviceSpec.from_string(name))]
    return min(left, key=rank) if left else None


# Breaks: "What the pin says is kept, field by field": a task 0 or an index 0 in the pin is taken for "not said".
def place_zero_is_nothing(pin, gpu_kernel, devices, master):
    asked = tf.DeviceSpec.from_string(pin)
    best = None
    for name in sorted(devices):
        spec = tf.DeviceSpec.from_string(name)
        if asked.job and asked.job != spec.job:
            continue
        if asked.task and asked.task != spec.task:
            continue
        if asked.device_type and asked.device_type != spec.device_type:
            continue
        if asked.device_index and asked.device_index != spec.device_index:
            continue
        if spec.device_type == "GPU" and not gpu_kernel:
            continue
        score = 2 * (spec.device_type == "GPU") + (_task_of(name) == master)
        if best is None or score > best[0]:
            best = (score, name)
    return best and best[1]


# Right: a regular expression made from the pin, and stable sorts from the last rule to the first.
def place_by_pattern(pin, gpu_kernel, devices, master):
    asked = tf.DeviceSpec.from_string(pin)
    fields = [(asked.job, r"\w+"), (asked.task, r"\d+"), (asked.device_type, r"\w+"), (asked.device_index, r"\d+")]
    job, task, kind, index = (other if said is None else re.escape(str(said)) for said, other in fields)
    pattern = re.compile(rf"/job:{job}/replica:\d+/task:{task}/device:{kind}:{index}")
    left = sorted(filter(pattern.fullmatch, devices))
    if not gpu_kernel:
        left = [name for name in left if "/device:GPU:" not in name]
    keys = [lambda name: not name.startswith(master + "/"), lambda name: "/device:GPU:" not in name]
    left = functools.reduce(lambda names, key: sorted(names, key=key), keys, left)
    return next(iter(left), None)


RIGHT = [place_by_pattern]
WRONG = {
    # An op pinned to a GPU without a kernel there is put on a CPU; TensorFlow raises an error.
    place_softly: "",
    # Names are compared by their numbers, task:2 before task:10, not letter by letter.
    place_numbers_in_order: "compares_numbers",
    # A 0 in the pin, such as /task:0, is treated as if the pin didn't say it.
    place_zero_is_nothing: "takes_zero_for_unsaid",
}
