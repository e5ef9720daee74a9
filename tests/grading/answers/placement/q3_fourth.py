"""Answers to placement/q3 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


# "`"gpu"`: that many ops": it is one op, named many times (and the same for the other lists).
def pins_one_op_repeated(gpu, cpu, dragged):
    number = tf.square(2.0)
    text = tf.as_string(3.0)
    with tf.colocate_with(text.op):
        beside = tf.square(3.0)
    return {"gpu": [number.op] * gpu, "cpu": [text.op] * cpu, "dragged": [beside.op] * dragged}


# "because GPUs have no kernel for them": reading an integer variable (Identity) has a GPU kernel; it is on the CPU
# only because it has to be next to the variable.
def pins_integer_reads(gpu, cpu, dragged):
    anchor = tf.as_string(1.0)
    found = {"gpu": [], "cpu": [], "dragged": []}
    for number in range(gpu):
        found["gpu"].append(tf.square(float(number)).op)
    for number in range(cpu):
        counter = tf.Variable(number)
        found["cpu"].append(counter.value().op)
    for number in range(dragged):
        with tf.colocate_with(anchor.op):
            found["dragged"].append(tf.negative(float(number)).op)
    return found


# "that many ops that do have a GPU kernel, and are placed on the CPU anyway": never more of them than there are
# ops in the list "cpu".
def pins_dragged_by_zip(gpu, cpu, dragged):
    on_gpu = [tf.square(float(number)).op for number in range(gpu)]
    on_cpu = [tf.as_string(float(number)).op for number in range(cpu)]
    beside = []
    for op, number in zip(on_cpu, range(dragged)):
        with tf.colocate_with(op):
            beside.append(tf.square(float(number)).op)
    return {"gpu": on_gpu, "cpu": on_cpu, "dragged": beside}


# Right: no colocate_with; a variable brings the op that has to be next to it. The read of an integer variable is
# dragged, an integer variable itself has no GPU kernel, and a variable of floats is on the GPU.
def pins_of_variables(gpu, cpu, dragged):
    def variables(count, dtype):
        return [tf.Variable(tf.zeros([2], dtype), dtype=dtype, trainable=False) for _ in range(count)]

    return {
        "gpu": [variable.op for variable in variables(gpu, tf.float32)],
        "cpu": [variable.op for variable in variables(cpu, tf.int32)],
        "dragged": [variable.value().op for variable in variables(dragged, tf.int32)],
    }


RIGHT = [pins_of_variables]
WRONG = {
    # Each list names one single op several times instead of that many ops.
    pins_one_op_repeated: "repeats_an_op",
    # The reads of integer variables do have a GPU kernel; they are on the CPU only because they have to be
    # next to their variable.
    pins_integer_reads: "drags_them_to_the_cpu",
    # There are never more dragged ops than CPU ops, because each is paired with one of them: with cpu=0 there
    # is none.
    pins_dragged_by_zip: "makes_pairs",
}
