"""Wrong answers to placement/q4, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def variable_on(home):
    with tf.device(home):
        return tf.Variable([1.0, 2.0])


def doubled(variable, device):
    with tf.device(device):
        return 2.0 * variable


def add_one(variable):
    return tf.assign_add(variable, [1.0, 1.0])


def answer(home, devices, update=add_one, double=doubled, **changed):
    """The right one, but for the update and the doubles, and what is changed."""
    variable = variable_on(home)
    doubles = [double(variable, device) for device in devices]
    with tf.device(devices[-1]):
        found = {"doubles": doubles, "update": update(variable), "updated_on": home}
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
    return answer(home, devices, lambda _: add_one(variable), doubles=copies)


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


def reads_no_variable(home, devices):
    def double(variable, device):
        with tf.device(device):
            return tf.constant([1.0, 2.0]) * 2.0

    return answer(home, devices, double=double, sent_to=[])


def assigns_a_constant(home, devices):
    return answer(home, devices, lambda variable: tf.assign(variable, [2.0, 3.0]))


def adds_another_number(home, devices):
    return answer(home, devices, lambda variable: tf.assign_sub(variable, [1.0, 1.0]))


def updates_on_the_ps(home, devices):
    return answer(home, devices, updated_on="/job:ps/replica:0/task:0/device:CPU:0")


def goes_by_another_device(home, devices):
    def double(variable, device):
        with tf.device("/job:ps/task:0"):
            copy = tf.identity(variable)
        return doubled(copy, device)

    return answer(home, devices, double=double)


def sends_nothing(home, devices):
    return answer(home, devices, sent_to=[])


def sends_to_the_last_only(home, devices):
    return answer(home, devices, sent_to=devices[-1:])


def sends_to_gpus_only(home, devices):
    return answer(home, devices, sent_to={device for device in devices if "GPU" in device} - {home})


def updates_at_home(home, devices):
    def update(variable):
        with tf.device(home):
            return add_one(variable)

    return answer(home, devices, update)


def opens_a_session(home, devices):
    found = answer(home, devices)
    with tf.Cluster(ps=1, worker=2, gpus=2) as cluster, tf.Session(cluster.target) as sess:
        devices_of = {node.name: node.device for node in sess.placed_nodes()}
    return found | {"updated_on": devices_of[found["update"].op.name]}


def leaves_out_its_own_task(home, devices):
    task = home.rpartition("/device:")[0]
    return answer(home, devices, sent_to=sorted({device for device in devices if not device.startswith(f"{task}/")}))


def gives_each_device_once(home, devices):
    found = answer(home, devices)
    return found | {"doubles": list(dict(zip(devices, found["doubles"])).values())}
