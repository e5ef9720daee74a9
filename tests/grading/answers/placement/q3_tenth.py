"""Ways to make ops without pins for each place: one right, three wrong."""

import dtflab as tf


def strings_and_their_neighbours_ten(gpu, cpu, dragged):
    """Roots for the GPU, joined texts for the CPU, and variables next to a variable of texts."""
    anchor = tf.Variable("here", trainable=False)
    graph, number = tf.get_default_graph(), tf.constant(2.0)
    found = {"gpu": [], "cpu": [], "dragged": []}
    while len(found["gpu"]) < gpu:
        found["gpu"].append(tf.sqrt(number).op)
    while len(found["cpu"]) < cpu:
        found["cpu"].append(tf.strings.join(["a", "b"]).op)
    with graph.colocate_with(anchor.op):
        while len(found["dragged"]) < dragged:
            found["dragged"].append(tf.Variable(0.5, trainable=False).op)
    return found


def the_same_op_again_ten(gpu, cpu, dragged):
    """One op of each kind, as often as wanted."""
    text = tf.as_string(1.5).op
    with tf.colocate_with(text):
        beside = tf.square(3.0).op
    return {"gpu": [tf.square(2.0).op] * gpu, "cpu": [text] * cpu, "dragged": [beside] * dragged}


def beside_a_pinned_op_ten(gpu, cpu, dragged):
    """The ops of `dragged` are next to an op that is pinned to the CPU."""
    with tf.device("/cpu:0"):
        home = tf.constant(1.0)
    with tf.colocate_with(home.op):
        beside = [tf.exp(0.5).op for _ in range(dragged)]
    return {
        "gpu": [tf.exp(1.5).op for _ in range(gpu)],
        "cpu": [tf.as_string(2.5).op for _ in range(cpu)],
        "dragged": beside,
    }


def texts_beside_a_counter_ten(gpu, cpu, dragged):
    """The ops of `dragged` read texts next to an integer variable."""
    counter = tf.Variable(0)
    with tf.colocate_with(counter.op):
        beside = [tf.string_to_number(tf.constant("1")).op for _ in range(dragged)]
    return {
        "gpu": [tf.negative(1.0).op for _ in range(gpu)],
        "cpu": [tf.Variable(number).op for number in range(cpu)],
        "dragged": beside,
    }


RIGHT = [strings_and_their_neighbours_ten]
WRONG = {
    the_same_op_again_ten: "repeats_an_op",
    beside_a_pinned_op_ten: "pins",
    texts_beside_a_counter_ten: "drags_what_must_be_there",
}
