"""Answers of an eighteenth author to memory/q1: settings for programs next to each other."""

import math
from collections import Counter

import dtflab as tf

_IN_USE = 11 << 20
_CONTEXT = 38 << 20


def _config(part, memory):
    """A config that takes `part` bytes of a card of `memory` bytes."""
    fraction = part / memory
    while int(fraction * memory) < part:
        fraction = math.nextafter(fraction, 1.0)
    return tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=fraction))


def dealt_card_by_card_eighteenth(programs, cards, need, memory):
    """Deal the programs to the cards; those that share one divide it, one alone has it without a setting."""
    homes = [number % cards for number in range(programs)]
    room = {card: (memory - _IN_USE) // sharers - _CONTEXT for card, sharers in Counter(homes).items()}
    if any(part < need for part in room.values()):
        return None
    alone = {card for card, sharers in Counter(homes).items() if sharers == 1}
    return [(str(card), tf.ConfigProto() if card in alone else _config(room[card], memory)) for card in homes]


def part_of_what_is_free_eighteenth(programs, cards, need, memory):
    """Take the fraction for a part of the memory that is free at first."""
    sharers = -(-programs // cards)
    free = memory - _IN_USE
    part = free // sharers - _CONTEXT
    if part < need:
        return None
    return [(str(number % cards), _config(part, free)) for number in range(programs)]


def blocks_rounded_down_eighteenth(programs, cards, need, memory):
    """Fill one card after the other, with the rest of the division on the last one."""
    sharers = max(1, programs // cards)
    part = (memory - _IN_USE) // sharers - _CONTEXT
    if part < need:
        return None
    return [(str(min(number // sharers, cards - 1)), _config(part, memory)) for number in range(programs)]


def growth_is_enough_eighteenth(programs, cards, need, memory):
    """Let all programs of a card grow, if what they need fits there."""
    sharers = -(-programs // cards)
    if _IN_USE + sharers * (_CONTEXT + need) > memory:
        return None
    grows = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
    return [(str(number % cards), grows) for number in range(programs)]


# The text says now that nearly all is one variable: then growth is right, too.
RIGHT = [dealt_card_by_card_eighteenth, growth_is_enough_eighteenth]
WRONG = {
    part_of_what_is_free_eighteenth: "leaves_no_room_for_contexts",
    blocks_rounded_down_eighteenth: "forgets_the_others leaves_no_room_for_contexts",
}
