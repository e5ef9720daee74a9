"""Answers to placement/q2 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


def _keeps(spec, device):
    pairs = [
        (spec.job, device.job),
        (spec.task, device.task),
        (spec.device_type, device.device_type),
        (spec.device_index, device.device_index),
    ]
    return all(asked is None or asked == found for asked, found in pairs)


def _task(name):
    return name.rsplit("/", 1)[0]


# "those of the *master's* task": with startswith, task:10 also belongs to the master's task, task:1.
def place_startswith(pin, gpu_kernel, devices, master):
    spec = tf.DeviceSpec.from_string(pin)
    found = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        if _keeps(spec, device) and (gpu_kernel or device.device_type != "GPU"):
            found.append((device.device_type != "GPU", not name.startswith(master), name))
    return min(found)[2] if found else None


# "the first one by its name, letter by letter": by numbers here, so GPU:2 comes before GPU:10.
def place_by_numbers(pin, gpu_kernel, devices, master):
    spec = tf.DeviceSpec.from_string(pin)
    found = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        if _keeps(spec, device) and (gpu_kernel or device.device_type != "GPU"):
            first = device.device_type != "GPU", _task(name) != master
            found.append((*first, device.job, device.task, device.device_index, name))
    return min(found)[-1] if found else None


# "What the pin says is kept, field by field": a task or an index 0 is taken for "not said".
def place_zero_is_unsaid(pin, gpu_kernel, devices, master):
    spec = tf.DeviceSpec.from_string(pin)
    left = [(name, tf.DeviceSpec.from_string(name)) for name in devices]
    if spec.job:
        left = [(name, device) for name, device in left if device.job == spec.job]
    if spec.task:
        left = [(name, device) for name, device in left if device.task == spec.task]
    if spec.device_type:
        left = [(name, device) for name, device in left if device.device_type == spec.device_type]
    if spec.device_index:
        left = [(name, device) for name, device in left if device.device_index == spec.device_index]
    if not gpu_kernel:
        left = [(name, device) for name, device in left if device.device_type != "GPU"]
    order = sorted((device.device_type != "GPU", _task(name) != master, name) for name, device in left)
    return order[0][2] if order else None


# Right: names are taken apart by hand into dicts, and stable sorts apply the preferences from last to first.
def _fields(text):
    fields = {}
    for part in filter(None, text.split("/")):
        key, *rest = part.split(":")
        key = key.lower()
        if key in ("cpu", "gpu"):
            rest = [key, *rest]
            key = "device"
        if key == "device":
            fields["type"] = rest[0].upper()
            if rest[1:] and rest[1] != "*":
                fields["index"] = int(rest[1])
        else:
            fields[key] = int(rest[0]) if rest[0].isdigit() and key != "job" else rest[0]
    return fields


def place_by_stable_sorts(pin, gpu_kernel, devices, master):
    wanted, home = _fields(pin).items(), _fields(master).items()
    places = sorted(devices)
    places.sort(key=lambda name: 0 if home <= _fields(name).items() else 1)
    places.sort(key=lambda name: ["GPU", "CPU"].index(_fields(name)["type"]))
    for name in places:
        fields = _fields(name)
        if wanted <= fields.items() and (fields["type"] == "CPU" or gpu_kernel):
            return name
    return None


RIGHT = [place_by_stable_sorts]
WRONG = {
    # A device counts as the master's if its name starts with the master's, so task 10 is taken for task 1.
    place_startswith: "takes_task_10_for_1",
    # Devices are ordered by their numbers instead of letter by letter: GPU:2 before GPU:10, and task:2 before
    # task:10.
    place_by_numbers: "compares_numbers",
    # A 0 in the pin is taken for a field that isn't said, so task 0 and device index 0 are not kept.
    place_zero_is_unsaid: "takes_zero_for_unsaid",
}
