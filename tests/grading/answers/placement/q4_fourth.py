"""Answers to placement/q4 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


# "for each of `devices` a tensor that is computed there": the double is computed at home, once, and only copied.
def use_doubled_at_home(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        doubled = weights * 2.0
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.identity(doubled))
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.constant([1.0, 1.0]))
    sent_to = sorted(set(devices) - {home})
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}


# "the devices that the variable's value is sent to": devices of the same server get the value from each other as
# well, but only other servers are listed here.
def use_other_servers_only(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.constant([1.0, 1.0]))
    server = home.split("/device:")[0]
    sent_to = sorted({device for device in devices if device.split("/device:")[0] != server})
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}


# "It and the numbers that it adds are pinned to the last of `devices`": the numbers are made at home.
def use_numbers_at_home(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        ones = tf.constant([1.0, 1.0])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.multiply(weights, 2.0))
    with tf.device(devices[-1]):
        update = weights.assign_add(ones)
    sent_to = sorted(set(devices) - {home})
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}


# Right: one device function instead of many `with` blocks: an op's name says where it belongs.
def use_by_device_function(home, devices):
    places = {}

    def place(op):
        scopes = [scope for scope in op.name.split("/") if scope in places]
        return places[scopes[-1]] if scopes else home

    graph = tf.get_default_graph()
    result = {"doubles": []}
    with tf.device(place):
        variable = tf.Variable(tf.constant([1.0, 2.0]), dtype=tf.float32)
        for device in devices:
            scope = graph.unique_name("there", mark_as_used=False)
            places[scope] = device
            with tf.name_scope("there"):
                result["doubles"].append(tf.add(variable, variable))
        places[graph.unique_name("last", mark_as_used=False)] = devices[-1]
        with tf.name_scope("last"):
            result["update"] = tf.assign_add(variable, tf.constant(1.0, shape=[2])).op
    result["sent_to"] = [device for device in dict.fromkeys(devices) if device != home]
    result["updated_on"] = home
    return result


RIGHT = [use_by_device_function]
WRONG = {
    # The variable is doubled on its home device, and the other devices only copy the result instead of
    # computing it.
    use_doubled_at_home: "computes_once",
    # The prediction leaves out devices of the home's own server: a value is sent between two devices of one
    # machine, too.
    use_other_servers_only: "leaves_out_its_own_task",
    # The numbers that the update adds are made on the home device instead of the last of the devices.
    use_numbers_at_home: "updates_at_home",
}
