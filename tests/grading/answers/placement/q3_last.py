"""Answers to placement/q3 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def next_to_a_text_op(gpu, cpu, dragged):
    found = {"gpu": [tf.square(2.0).op for _ in range(gpu)]}
    found["cpu"] = [tf.as_string(3.0).op for _ in range(cpu)]
    anchor = tf.as_string(1.0, name="anchor").op
    found["dragged"] = []
    for _ in range(dragged):
        with tf.colocate_with(anchor):
            found["dragged"].append(tf.square(2.0).op)
    return found


def dragged_by_its_input(gpu, cpu, dragged):
    squares = [tf.square(float(n)).op for n in range(gpu)]
    texts = [tf.as_string(float(n)).op for n in range(cpu)]
    followers = []
    for n in range(dragged):
        number = tf.string_to_number(tf.as_string(float(n)))  # only on the CPU
        followers.append(tf.square(number).op)  # so this has to be there as well
    return {"gpu": squares, "cpu": texts, "dragged": followers}


def pinned_to_the_cpu(gpu, cpu, dragged):
    squares = [tf.square(float(n)).op for n in range(gpu)]
    texts = [tf.as_string(float(n)).op for n in range(cpu)]
    with tf.device("/cpu:0"):
        others = [tf.square(float(n)).op for n in range(dragged)]
    return {"gpu": squares, "cpu": texts, "dragged": others}


def one_op_many_times(gpu, cpu, dragged):
    square = tf.square(2.0).op
    text = tf.as_string(3.0).op
    with tf.colocate_with(text):
        beside = tf.square(4.0).op
    return {"gpu": [square] * gpu, "cpu": [text] * cpu, "dragged": [beside] * dragged}


RIGHT = [next_to_a_text_op]
WRONG = {
    # Believes that an op which reads the value of a CPU op has to be on the CPU; it is placed on the GPU.
    dragged_by_its_input: "follows_its_inputs",
    # Gets the ops onto the CPU with tf.device, a pin, instead of tf.colocate_with.
    pinned_to_the_cpu: "pins",
    # Makes one op of each kind and repeats it in the list, so there are not that many ops.
    one_op_many_times: "repeats_an_op",
}
