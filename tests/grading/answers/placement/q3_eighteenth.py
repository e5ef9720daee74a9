"""Answers of an eighteenth author to placement/q3: ops without pins, on the GPU and on the CPU."""

import dtflab as tf


def only_variables_eighteenth(gpu, cpu, dragged):
    """Make variables: real ones for the GPU, whole ones for the CPU, whose reads stay next to them."""
    whole = [tf.get_variable(f"whole{number}", [], tf.int32) for number in range(max(cpu, dragged))]
    return {
        "gpu": [tf.get_variable(f"real{number}", [2]).op for number in range(gpu)],
        "cpu": [variable.op for variable in whole[:cpu]],
        "dragged": [variable.value().op for variable in whole[:dragged]],
    }


def consumers_are_dragged_eighteenth(gpu, cpu, dragged):
    """Take ops that use a result of the CPU for dragged ones."""
    texts = [tf.as_string(float(number)) for number in range(max(cpu, 1))]
    number = tf.string_to_number(texts[0])
    return {
        "gpu": [tf.sqrt(float(value)) for value in range(gpu)],
        "cpu": texts[:cpu],
        "dragged": [tf.add(number, float(value)).op for value in range(dragged)],
    }


def same_op_again_eighteenth(gpu, cpu, dragged):
    """Make one op of each kind, and list it as often as it is asked for."""
    text = tf.as_string(1.5)
    with tf.colocate_with(text.op):
        beside = tf.square(1.5)
    return {"gpu": [tf.negative(2.5).op] * gpu, "cpu": [text.op] * cpu, "dragged": [beside.op] * dragged}


def reads_count_as_cpu_eighteenth(gpu, cpu, dragged):
    """Use the reads of whole variables as the ops of the CPU."""
    counters = [tf.Variable(number, name="counter") for number in range(cpu)]
    text = tf.as_string(True)
    near = []
    for value in range(dragged):
        with tf.colocate_with(text.op):
            near.append(tf.exp(float(value)))
    return {
        "gpu": [tf.exp(float(value)) for value in range(gpu)],
        "cpu": [counter.value().op for counter in counters],
        "dragged": near,
    }


RIGHT = [only_variables_eighteenth]
WRONG = {
    consumers_are_dragged_eighteenth: "follows_its_inputs",
    same_op_again_eighteenth: "repeats_an_op",
    reads_count_as_cpu_eighteenth: "drags_them_to_the_cpu",
}
