"""Wrong answers to memory/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def taking(fraction):
    config = tf.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = fraction
    return config


def promises_too_much(programs, cards, need, memory):
    return [(str(program % cards), taking(1.05 * need / memory)) for program in range(programs)]


def runs_out_of_cards(programs, cards, need, memory):
    return [(str(program), taking(1.05 * need / memory)) for program in range(programs)] if need < memory else None


def all_on_the_first_card(programs, cards, need, memory):
    return [(None, taking(1.05 * need / memory)) for _ in range(programs)] if need < memory else None


def takes_all(programs, cards, need, memory):
    return [(str(program % cards), tf.ConfigProto()) for program in range(programs)] if need < memory else None


def leaves_no_room_for_contexts(programs, cards, need, memory):
    beside = -(-programs // cards)
    return [(str(program % cards), taking(1 / beside)) for program in range(programs)] if need < memory else None
