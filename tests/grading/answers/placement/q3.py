"""Answers to placement/q3 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf


def floats(number):
    return [tf.multiply(2.0, 3.0).op for _ in range(number)]


def texts(number):
    return [tf.string_join(["a", "b"]).op for _ in range(number)]


def beside(op, number, make=floats):
    with tf.colocate_with(op):
        return make(number)


def answer(gpu=floats, cpu=texts, dragged=lambda number: beside(tf.as_string(1.0).op, number)):
    def without_pins(on_gpu, on_cpu, neighbours):
        return {"gpu": gpu(on_gpu), "cpu": cpu(on_cpu), "dragged": dragged(neighbours)}

    return without_pins


def integer_variables(gpu, cpu, dragged):
    return answer(
        cpu=lambda n: [tf.Variable(i).op for i in range(n)],
        dragged=lambda n: [op for i in range(n) for op in beside(tf.Variable(i).op, 1)],
    )(gpu, cpu, dragged)


def reads_of_counters(gpu, cpu, dragged):
    return answer(
        gpu=lambda n: [tf.Variable([1.0]).op for _ in range(n)],
        dragged=lambda n: [tf.Variable(i).value().op for i in range(n)],
    )(gpu, cpu, dragged)


def an_empty_pin(gpu, cpu, dragged):
    """The pin says nothing, but for the third kind it does."""
    with tf.device("/cpu:0"):
        there = floats(dragged)
    return {"gpu": floats(gpu), "cpu": texts(cpu), "dragged": there}


def soft_pins(gpu, cpu, dragged):
    with tf.device("/gpu:0"):
        return {"gpu": floats(gpu), "cpu": texts(cpu), "dragged": floats(dragged)}


def large_integers(gpu, cpu, dragged):
    return answer(cpu=lambda n: [tf.add(2**40, 1).op for _ in range(n)])(gpu, cpu, dragged)


def waits_for_the_cpu(gpu, cpu, dragged):
    """A control dependency on an op of the CPU."""

    def waiting(number):
        with tf.control_dependencies([tf.as_string(1.0)]):
            return floats(number)

    return answer(dragged=waiting)(gpu, cpu, dragged)


def reads_text_as_numbers(gpu, cpu, dragged):
    """Ops that read what is on the CPU."""
    return answer(dragged=lambda n: [tf.negative(tf.string_to_number("1")).op for _ in range(n)])(gpu, cpu, dragged)


def beside_a_float_variable(gpu, cpu, dragged):
    return answer(dragged=lambda n: beside(tf.Variable(1.0).op, n))(gpu, cpu, dragged)


def texts_beside_texts(gpu, cpu, dragged):
    return answer(dragged=lambda n: beside(tf.as_string(1.0).op, n, texts))(gpu, cpu, dragged)


def dragged_ones_for_the_cpu(gpu, cpu, dragged):
    return answer(cpu=lambda n: beside(tf.as_string(1.0).op, n))(gpu, cpu, dragged)


def texts_for_the_gpu(gpu, cpu, dragged):
    return answer(gpu=texts)(gpu, cpu, dragged)


def one_of_each(gpu, cpu, dragged):
    return answer()(1, 1, 1)


RIGHT = [integer_variables, reads_of_counters]
WRONG = {
    an_empty_pin: "pins",
    soft_pins: "pins",
    large_integers: "takes_integers_for_the_cpu",
    waits_for_the_cpu: "follows_its_inputs",
    reads_text_as_numbers: "follows_its_inputs",
    beside_a_float_variable: "stands_beside_what_is_on_the_gpu",
    texts_beside_texts: "drags_what_must_be_there",
    dragged_ones_for_the_cpu: "drags_them_to_the_cpu",
    texts_for_the_gpu: "wants_a_gpu_without_a_kernel",
    one_of_each: "",
}
