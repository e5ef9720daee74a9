"""Answers to memory/q1 by a second author, two right and two wrong."""

import math

import dtflab as tf

MIB = 1 << 20


def settings_fourteenth(programs, cards, need, memory):
    """Deals the programs out to the emptiest card each; each gets an equal share of what its one card can hold."""
    hands = [[] for _ in range(cards)]
    for number in range(programs):
        min(hands, key=len).append(number)
    answer = [None] * programs
    for card, hand in enumerate(hands):
        if not hand:
            continue
        share = (memory - 11 * MIB) // len(hand) - 38 * MIB
        if share < need:
            return None
        part = share / memory
        while int(part * memory) < share:  # a fraction that isn't exact must not be a byte too small
            part = math.nextafter(part, 1)
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = part
        for number in hand:
            answer[number] = (str(card), config)
    return answer


def rotated_cards_fourteenth(programs, cards, need, memory):
    """Shows every program all cards, in a rotated order, so that each has another first card."""
    sharing = -(-programs // cards)
    if 11 * MIB + sharing * (need + 38 * MIB) > memory:
        return None
    answer = []
    for number in range(programs):
        order = [str((number + i) % cards) for i in range(cards)]
        config = tf.ConfigProto()
        config.gpu_options.allow_growth = True
        answer.append((",".join(order), config))
    return answer


def rounded_fraction_fourteenth(programs, cards, need, memory):
    """Gives each program the part of a card that it needs, as a number with three digits."""
    sharing = -(-programs // cards)
    if 11 * MIB + sharing * (need + 38 * MIB) > memory:
        return None
    answer = []
    for number in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = round(need / memory, 3)
        answer.append((str(number % cards), config))
    return answer


def context_once_fourteenth(programs, cards, need, memory):
    """Counts the 11 MiB and the 38 MiB once per card when it asks whether the programs fit."""
    sharing = -(-programs // cards)
    if 11 * MIB + 38 * MIB + sharing * need > memory:
        return None
    answer = []
    for number in range(programs):
        on_this_card = len(range(number % cards, programs, cards))
        share = max(need, (memory - 11 * MIB) // on_this_card - 38 * MIB)
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        answer.append((str(number % cards), config))
    return answer


RIGHT = [settings_fourteenth, rotated_cards_fourteenth]  # a card that is seen, but not used, holds no context
WRONG = {
    rounded_fraction_fourteenth: "takes_too_little",
    context_once_fourteenth: "forgets_the_others",
}
