"""Wrong answers to placement/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def fields(name):
    spec = tf.DeviceSpec.from_string(name)
    return spec.job, spec.task, spec.device_type, spec.device_index


def kept(pin, devices):
    return [d for d in devices if all(wish in (None, field) for wish, field in zip(fields(pin), fields(d)))]


def best(devices, *preferences):
    return min(devices, key=lambda device: (*(wish(device) for wish in preferences), device), default=None)


def is_cpu(device):
    return "CPU" in device


def gives_the_pin(pin, gpu_kernel, devices, master):
    return pin


def forgets_the_kernels(pin, gpu_kernel, devices, master):
    return best(kept(pin, devices), is_cpu, lambda device: not device.startswith(f"{master}/"))


def looks_for_another(pin, gpu_kernel, devices, master):
    able = [device for device in devices if gpu_kernel or is_cpu(device)]
    return best(kept(pin, able) or able, is_cpu, lambda device: not device.startswith(f"{master}/"))


def own_task_first(pin, gpu_kernel, devices, master):
    able = [device for device in kept(pin, devices) if gpu_kernel or is_cpu(device)]
    return best(able, lambda device: not device.startswith(f"{master}/"), is_cpu)


def forgets_the_master(pin, gpu_kernel, devices, master):
    return best([device for device in kept(pin, devices) if gpu_kernel or is_cpu(device)], is_cpu)


def gives_a_spec(pin, gpu_kernel, devices, master):
    able = [device for device in kept(pin, devices) if gpu_kernel or is_cpu(device)]
    found = best(able, is_cpu, lambda device: not device.startswith(f"{master}/"))
    return found and tf.DeviceSpec.from_string(found)


def takes_what_comes_first(pin, gpu_kernel, devices, master):
    able = [device for device in kept(pin, devices) if gpu_kernel or is_cpu(device)]
    return min(able, key=lambda device: (is_cpu(device), not device.startswith(f"{master}/")), default=None)


def takes_task_10_for_1(pin, gpu_kernel, devices, master):
    able = [device for device in kept(pin, devices) if gpu_kernel or is_cpu(device)]
    return best(able, is_cpu, lambda device: not device.startswith(master))


def takes_the_last_by_name(pin, gpu_kernel, devices, master):
    able = [device for device in kept(pin, devices) if gpu_kernel or is_cpu(device)]
    return max(able, key=lambda d: (not is_cpu(d), d.startswith(f"{master}/"), d), default=None)


def placed(devices, gpu_kernel, master):
    """The right way, for devices that keep the pin."""
    able = [device for device in devices if gpu_kernel or is_cpu(device)]
    return best(able, is_cpu, lambda device: not device.startswith(f"{master}/"))


def compares_texts(pin, gpu_kernel, devices, master):
    return placed([device for device in devices if pin in device], gpu_kernel, master)


def ignores_the_index(pin, gpu_kernel, devices, master):
    wishes = fields(pin)[:3]
    able = [d for d in devices if all(wish in (None, field) for wish, field in zip(wishes, fields(d)))]
    return placed(able, gpu_kernel, master)


def stays_with_the_master(pin, gpu_kernel, devices, master):
    mine = [device for device in devices if device.startswith(f"{master}/")]
    return placed(kept(pin, mine), gpu_kernel, master)


def sends_to_the_masters_cpu(pin, gpu_kernel, devices, master):
    return placed(kept(pin, devices), gpu_kernel, master) if gpu_kernel else f"{master}/device:CPU:0"


def gives_something_empty(pin, gpu_kernel, devices, master):
    return placed(kept(pin, devices), gpu_kernel, master) or ""


def opens_a_session(pin, gpu_kernel, devices, master):
    with tf.Cluster(ps=1, worker=2, gpus=2) as cluster, tf.Graph().as_default(), tf.device(pin):
        op = tf.zeros([]).op
        try:
            (found,) = (node.device for node in tf.Session(cluster.target).placed_nodes() if node.name == op.name)
            return found
        except tf.errors.InvalidArgumentError:
            return None


def compares_numbers(pin, gpu_kernel, devices, master):
    left = [d for d in kept(pin, devices) if gpu_kernel or is_cpu(d)]
    return best(left, is_cpu, lambda device: not device.startswith(f"{master}/"), fields)


def takes_zero_for_unsaid(pin, gpu_kernel, devices, master):
    left = [d for d in devices if all(not wish or wish == field for wish, field in zip(fields(pin), fields(d)))]
    left = [d for d in left if gpu_kernel or is_cpu(d)]
    return best(left, is_cpu, lambda device: not device.startswith(f"{master}/"))


def takes_any_job_for_the_masters(pin, gpu_kernel, devices, master):
    left = [d for d in kept(pin, devices) if gpu_kernel or is_cpu(d)]
    return best(left, is_cpu, lambda device: fields(device)[1] != fields(master)[1])


def adds_the_masters_job(pin, gpu_kernel, devices, master):
    job, task, *_ = fields(pin)
    left = [d for d in kept(pin, devices) if job or task is None or fields(d)[0] == fields(master)[0]]
    left = [d for d in left if gpu_kernel or is_cpu(d)]
    return best(left, is_cpu, lambda device: not device.startswith(f"{master}/"))


def wants_a_gpu(pin, gpu_kernel, devices, master):
    left = [d for d in kept(pin, devices) if is_cpu(d) != gpu_kernel or (gpu_kernel and fields(pin)[2])]
    return best(left, is_cpu, lambda device: not device.startswith(f"{master}/"))


def compares_fields_as_texts(pin, gpu_kernel, devices, master):
    texts = [field for field in pin.lower().split("/") if field]
    able = [d for d in devices if (gpu_kernel or is_cpu(d)) and all(text in d.lower() for text in texts)]
    return placed(able, gpu_kernel, master)


def keeps_the_unpinned_at_home(pin, gpu_kernel, devices, master):
    return placed(kept(pin or master, devices), gpu_kernel, master)
