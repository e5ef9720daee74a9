"""Answers to memory/q1 of a last batch, written from the exercise alone after the checks were done."""

import math

import dtflab as tf

MIB = 1 << 20


def dealt_and_shared(programs, cards, need, memory):
    if programs == 0:
        return []
    if cards == 0:
        return None
    answer = []
    for number in range(programs):
        card = number % cards
        sharers = len(range(card, programs, cards))
        share = (memory - 11 * MIB - sharers * 38 * MIB) // sharers
        if share < need or share <= 0:
            return None
        fraction = share / memory
        if int(fraction * memory) < share:
            fraction = math.nextafter(fraction, 1.0)
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = fraction
        answer.append((str(card), config))
    return answer


def forgets_the_context(programs, cards, need, memory):
    together = -(-programs // cards)  # on one card
    if together * need > memory:
        return None
    pairs = []
    for number in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = 1 / together
        pairs.append((str(number % cards), config))
    return pairs


def tensorflow_finds_a_free_card(programs, cards, need, memory):
    together = -(-programs // cards)
    share = (memory - 11 * MIB) // together - 38 * MIB
    if share < need:
        return None
    pairs = []
    for _ in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        pairs.append((None, config))
    return pairs


def one_large_memory(programs, cards, need, memory):
    # all cards together have to be enough for all programs together
    if programs * (need + 38 * MIB) + cards * 11 * MIB > cards * memory:
        return None
    pairs = []
    for number in range(programs):
        config = tf.ConfigProto()
        sharers = len(range(number % cards, programs, cards))
        share = (memory - 11 * MIB) // sharers - 38 * MIB
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        pairs.append((str(number % cards), config))
    return pairs


RIGHT = [dealt_and_shared]
WRONG = {
    # Divides the whole card by the programs on it, without the contexts and the 11 MiB that are in use.
    forgets_the_context: "forgets_the_context leaves_no_room_for_contexts",
    # Lets all programs see all cards: they do not deal themselves out, each takes its share of the first one.
    tensorflow_finds_a_free_card: "all_on_the_first_card",
    # Compares the sum of all needs with the memory of all cards, as if a program could be spread over two.
    one_large_memory: "forgets_the_others",
}
