import dtflab as tf


def _distinct(home, devices):
    return [device for device in dict.fromkeys(devices) if device != home]


# Breaks: "It and the numbers that it adds are pinned to the last of `devices`": the numbers are made on `home`.
def everywhere_numbers_at_home(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        ones = tf.constant([1.0, 1.0])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, ones).op
    return {"doubles": doubles, "update": update, "sent_to": _distinct(home, devices), "updated_on": home}


# Breaks: "for each of `devices` a tensor that is computed there: two times a variable": the product is computed once,
# at home, and only copied to the devices.
def everywhere_double_is_copied(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        double = tf.multiply(weights, 2.0)
    result = {"doubles": [], "updated_on": home, "sent_to": _distinct(home, devices)}
    for device in devices:
        with tf.device(device):
            result["doubles"].append(tf.identity(double))
    with tf.device(devices[-1]):
        result["update"] = tf.assign_add(weights, tf.constant([1.0, 1.0])).op
    return result


# Breaks: `"sent_to"`: "each as often as it is sent there": one copy per server is predicted, so of two devices of
# one task only the first is in the list.
def everywhere_once_per_server(home, devices):
    with tf.device(home):
        weights = tf.Variable(tf.constant([1.0, 2.0]))
    doubles, sent_to, servers = [], [], set()
    for device in devices:
        with tf.device(device):
            doubles.append(tf.add(weights, weights))
        server = device.split("/device:")[0]
        if device != home and server not in servers:
            servers.add(server)
            sent_to.append(device)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.ones([2])).op
    return {"doubles": doubles, "update": update, "sent_to": sent_to, "updated_on": home}


# Right: a resource variable, which each op reads on its own: a value is sent for each op on another device.
def everywhere_resource(home, devices):
    with tf.device(home):
        weights = tf.get_variable("weights", initializer=tf.constant([1.0, 2.0]), use_resource=True)

    def on(device, make):
        with tf.device(device):
            return make()

    return {
        "doubles": [on(device, lambda: tf.multiply(2.0, weights)) for device in devices],
        "update": on(devices[-1], lambda: weights.assign_add(tf.constant([1.0, 1.0]), read_value=False)),
        "sent_to": [device for device in devices if device != home],
        "updated_on": home,
    }


RIGHT = [everywhere_resource]
WRONG = {
    # The numbers that the update adds are pinned to the variable's device, not to the last of the devices.
    everywhere_numbers_at_home: "updates_at_home",
    # The double is computed once on the variable's device; on the others there is only a copy of it.
    everywhere_double_is_copied: "computes_once",
    # It predicts one copy per server, but each device of a server gets its own.
    everywhere_once_per_server: "counts_the_servers",
}
