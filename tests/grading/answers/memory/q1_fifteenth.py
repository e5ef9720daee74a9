"""Answers of a fifteenth author to memory/q1: settings for programs that share cards."""

import math

import dtflab as tf

CONTEXT = 38 << 20
IN_USE = 11 << 20


def _config_fifteenth(fraction):
    """A ConfigProto with that part of each card."""
    config = tf.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = fraction
    return config


def settings_neighbours_fifteenth(programs, cards, need, memory):
    """Neighbours share a card; all that the contexts leave of it is divided among them."""
    card_of = [number * cards // programs for number in range(programs)]
    answer = []
    for card in card_of:
        part = (memory - IN_USE) // card_of.count(card) - CONTEXT
        if part < need:
            return None
        answer.append((str(card), _config_fifteenth(min(1.0, math.nextafter(part / memory, 1.0)))))
    return answer


def settings_own_card_first_fifteenth(programs, cards, need, memory):
    """Each program sees all cards, its own one first."""
    if -(-programs // cards) * (need + CONTEXT) + IN_USE > memory:
        return None
    answer = []
    for number in range(programs):
        order = [(number + step) % cards for step in range(cards)]
        answer.append((",".join(map(str, order)), _config_fifteenth(math.nextafter(need / memory, 1.0))))
    return answer


def settings_pooled_fifteenth(programs, cards, need, memory):
    """There is room if all programs together need no more than all cards together have."""
    if programs * (need + CONTEXT) > cards * (memory - IN_USE):
        return None
    return [(str(number % cards), _config_fifteenth(math.nextafter(need / memory, 1.0))) for number in range(programs)]


def settings_context_inside_fifteenth(programs, cards, need, memory):
    """The fraction has room for the tensors and for the context."""
    if math.ceil(programs / cards) * (need + CONTEXT) + IN_USE > memory:
        return None
    return [(str(number % cards), _config_fifteenth((need + CONTEXT) / memory)) for number in range(programs)]


RIGHT = [settings_neighbours_fifteenth]
WRONG = {
    settings_own_card_first_fifteenth: "takes_a_part_of_every_card",
    settings_pooled_fifteenth: "forgets_the_others",
    settings_context_inside_fifteenth: "leaves_no_room_for_contexts",
}
