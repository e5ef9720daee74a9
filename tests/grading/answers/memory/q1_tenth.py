"""Ways to choose settings for programs that share cards: one right, three wrong."""

from collections import Counter

import dtflab as tf

CONTEXT, IN_USE = 38 << 20, 11 << 20


def _config(fraction):
    """Settings with that part of a card."""
    config = tf.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = fraction
    return config


def equal_room_by_crowd_ten(programs, cards, need, memory):
    """Deal the cards, count how crowded each is, and give everybody an equal part of the room on its own."""
    seats = [str(number % cards) for number in range(programs)]
    crowd = Counter(seats)
    room = {card: (memory - IN_USE) // crowd[card] - CONTEXT for card in crowd}
    if any(need > room[card] for card in crowd):
        return None
    return [
        (card, tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=room[card] / memory)))
        for card in seats
    ]


def all_cards_in_one_sum_ten(programs, cards, need, memory):
    """Compare what all programs take with what all cards have together."""
    if programs * (need + CONTEXT) > cards * (memory - IN_USE):
        return None
    sharing = -(-programs // cards)
    room = (memory - IN_USE) // sharing - CONTEXT
    return [(str(number % cards), _config(max(room, 0) / memory)) for number in range(programs)]


def alone_needs_no_setting_ten(programs, cards, need, memory):
    """A part of the card for those who share one, and no setting for those who have one alone."""
    pairs = []
    for number in range(programs):
        sharing = len(range(number % cards, programs, cards))
        room = (memory - IN_USE) // sharing - CONTEXT
        if need > room:
            return None
        pairs.append((str(number % cards), tf.ConfigProto() if sharing == 1 else _config(room / memory)))
    return pairs


def contexts_of_everybody_ten(programs, cards, need, memory):
    """Leave room for the contexts of all programs on each card."""
    sharing = -(-programs // cards)
    room = (memory - IN_USE - programs * CONTEXT) // sharing
    if need > room:
        return None
    return [(str(number % cards), _config(room / memory)) for number in range(programs)]


# The second leaves 225 MiB of larger cards than those of the exercise free.
RIGHT = [equal_room_by_crowd_ten, alone_needs_no_setting_ten]
WRONG = {
    all_cards_in_one_sum_ten: "forgets_the_others",
    contexts_of_everybody_ten: "gives_up_too_early",
}
