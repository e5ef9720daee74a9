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
