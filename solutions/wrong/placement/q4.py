"""Wrong answers to placement/q4, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def variable_on(home):
    with tf.device(home):
        return tf.Variable([1.0, 2.0])


def doubled(variable, device):
    with tf.device(device):
        return 2.0 * variable


def answer(home, devices, **changed):
    """The right one, but for what is changed."""
    variable = variable_on(home)
    doubles = [doubled(variable, device) for device in devices]
    found = {"doubles": doubles, "update": variable.assign_add([1.0, 1.0]), "updated_on": home}
    return found | {"sent_to": sorted(set(devices) - {home})} | changed


def makes_copies(home, devices):
    copies = [doubled(variable_on(device), device) for device in devices]
    return answer(home, devices, doubles=copies, sent_to=[])


def computes_once(home, devices):
    variable = variable_on(home)
    product = doubled(variable, home)
    copies = []
    for device in devices:
        with tf.device(device):
            copies.append(tf.identity(product))
    return answer(home, devices, doubles=copies, update=variable.assign_add([1.0, 1.0]))


def updates_elsewhere(home, devices):
    return answer(home, devices, updated_on=devices[-1])


def counts_the_ops(home, devices):
    return answer(home, devices, sent_to=[device for device in devices if device != home])


def sends_it_home(home, devices):
    return answer(home, devices, sent_to=set(devices))


def stays_on_the_server(home, devices):
    task = home.partition("/device")[0]
    return answer(home, devices, sent_to={device for device in devices if device.startswith(task)} - {home})


def changes_nothing(home, devices):
    variable = variable_on(home)
    doubles = [doubled(variable, device) for device in devices]
    with tf.device(home):
        update = tf.add(variable, [1.0, 1.0])
    return {"doubles": doubles, "update": update, "updated_on": home, "sent_to": sorted(set(devices) - {home})}


def counts_the_servers(home, devices):
    by_task = {device.partition("/device")[0]: device for device in devices if device != home}
    return answer(home, devices, sent_to=list(by_task.values()))
