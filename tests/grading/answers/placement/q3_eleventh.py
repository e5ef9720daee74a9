"""An eleventh author's answers to placement/q3: ops without pins on the GPU, on the CPU, and dragged there."""

import dtflab as tf


def each_dragged_by_the_one_before_eleven(gpu, cpu, dragged):
    """Chains: squares of a square, strings of a string, and ops that are dragged by one another."""
    found = {"gpu": [], "cpu": [], "dragged": []}
    number = tf.zeros([2, 2])
    for _ in range(gpu):
        number = tf.matmul(number, number)
        found["gpu"].append(number.op)
    text = tf.string_join(["a", "b"])
    before = text.op
    for _ in range(cpu):
        text = tf.string_join([text, "c"])
        found["cpu"].append(text.op)
    for i in range(dragged):
        with tf.colocate_with(before):
            before = tf.negative(float(i)).op
        found["dragged"].append(before)
    return found


def dragged_only_by_a_returned_op_eleven(gpu, cpu, dragged):
    """Ops that are dragged by the strings of the list `cpu`, one each."""
    on_gpu = [tf.square(float(i)).op for i in range(gpu)]
    on_cpu = [tf.as_string(float(i)).op for i in range(cpu)]
    follow = []
    for i, anchor in zip(range(dragged), on_cpu):
        with tf.colocate_with(anchor):
            follow.append(tf.square(float(i)).op)
    return {"gpu": on_gpu, "cpu": on_cpu, "dragged": follow}


def neighbours_of_a_cpu_op_eleven(gpu, cpu, dragged):
    """Ops that read from the CPU or are read there, as if that dragged them."""
    on_gpu = [tf.square(float(i)).op for i in range(gpu)]
    on_cpu, follow = [], []
    for i in range(cpu):
        on_cpu.append(tf.as_string(float(i)).op)
    for i in range(dragged):
        number = tf.string_to_number(tf.as_string(float(i)))
        follow.append(tf.square(number).op)
    return {"gpu": on_gpu, "cpu": on_cpu, "dragged": follow}


def beside_a_pinned_anchor_eleven(gpu, cpu, dragged):
    """Ops that are dragged by an op with a pin."""
    with tf.device("/cpu:0"):
        anchor = tf.square(1.0, name="anchor")
    on_gpu = [tf.square(float(i)).op for i in range(gpu)]
    on_cpu = [tf.as_string(float(i)).op for i in range(cpu)]
    follow = []
    for i in range(dragged):
        with tf.colocate_with(anchor.op):
            follow.append(tf.square(float(i)).op)
    return {"gpu": on_gpu, "cpu": on_cpu, "dragged": follow}


RIGHT = [each_dragged_by_the_one_before_eleven]
WRONG = {
    dragged_only_by_a_returned_op_eleven: "makes_pairs",
    neighbours_of_a_cpu_op_eleven: "follows_its_inputs",
    beside_a_pinned_anchor_eleven: "pins",
}
