"""Wrong answers to placement/q3, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def ops(number, make):
    return [make().op for _ in range(number)]


def on_gpu():
    return tf.square(2.0)


def text():
    return tf.as_string(2.0)


def beside_a_counter(number):
    with tf.colocate_with(tf.Variable(0).op):
        return ops(number, on_gpu)


def pins(gpu, cpu, dragged):
    with tf.device("/cpu:0"):
        there = {"cpu": ops(cpu, text), "dragged": ops(dragged, on_gpu)}
    return there | {"gpu": ops(gpu, on_gpu)}


def takes_integers_for_the_cpu(gpu, cpu, dragged):
    integers = ops(cpu, lambda: tf.add(1, 2))
    return {"gpu": ops(gpu, on_gpu), "cpu": integers, "dragged": beside_a_counter(dragged)}


def drags_what_must_be_there(gpu, cpu, dragged):
    with tf.colocate_with(tf.Variable(0).op):
        there = ops(dragged, text)
    return {"gpu": ops(gpu, on_gpu), "cpu": ops(cpu, text), "dragged": there}


def stands_beside_what_is_on_the_gpu(gpu, cpu, dragged):
    with tf.colocate_with(tf.constant(2.0).op):
        there = ops(dragged, on_gpu)
    return {"gpu": ops(gpu, on_gpu), "cpu": ops(cpu, text), "dragged": there}


def follows_its_inputs(gpu, cpu, dragged):
    counter = tf.Variable(0)
    there = ops(dragged, lambda: tf.cast(counter, tf.float32))
    return {"gpu": ops(gpu, on_gpu), "cpu": ops(cpu, text), "dragged": there}


def beside_text(number):
    with tf.colocate_with(text().op):
        return ops(number, on_gpu)


def drags_them_to_the_cpu(gpu, cpu, dragged):
    return {"gpu": ops(gpu, on_gpu), "cpu": beside_text(cpu), "dragged": beside_a_counter(dragged)}


def wants_a_gpu_without_a_kernel(gpu, cpu, dragged):
    return {"gpu": ops(gpu, text), "cpu": ops(cpu, text), "dragged": beside_a_counter(dragged)}


def repeats_an_op(gpu, cpu, dragged):
    return {"gpu": ops(1, on_gpu) * gpu, "cpu": ops(1, text) * cpu, "dragged": beside_a_counter(1) * dragged}


def makes_pairs(gpu, cpu, dragged):
    texts = ops(cpu, text)
    there = []
    for one, _ in zip(texts, range(dragged)):
        with tf.colocate_with(one):
            there.append(on_gpu().op)
    return {"gpu": ops(gpu, on_gpu), "cpu": texts, "dragged": there}
