import collections
import math

import dtflab as tf

MIB = 1 << 20


def _fraction(part):
    config = tf.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = part
    return config


# Breaks: "Return None if no settings help, because the programs that have to share a card are too large for it":
# the memory of all cards is added up, as if a program could be split between two cards.
def settings_sum_of_cards(programs, cards, need, memory):
    if programs * (need + 38 * MIB) > cards * (memory - 11 * MIB):
        return None
    sharing = math.ceil(programs / cards)
    part = (memory - 11 * MIB) // sharing - 38 * MIB
    return [(str(number % cards), _fraction(part / memory)) for number in range(programs)]


# Breaks: "each program takes 38 MiB of a card, for its *context*": one context per card is counted, however many
# programs share it.
def settings_one_context(programs, cards, need, memory):
    sharing = math.ceil(programs / cards)
    part = (memory - 49 * MIB) // sharing
    if need > part:
        return None
    return [(str(number % cards), _fraction(part / memory)) for number in range(programs)]


# Breaks: "With which settings can that many copies of a program run at the same time?": its own card comes first, but
# the other cards stay visible, so each program takes its part, and a context, of all of them.
def settings_own_card_first(programs, cards, need, memory):
    result = []
    sharing = -(-programs // cards)
    part = (memory - 11 * MIB) // sharing - 38 * MIB
    if part < need:
        return None
    for number in range(programs):
        order = [str((number + i) % cards) for i in range(cards)]
        result.append((",".join(order), _fraction(part / memory)))
    return result


# Right: blocks of neighbours share a card, and each takes an equal fraction of what is left of it.
def settings_in_blocks(programs, cards, need, memory):
    quotient, rest = divmod(programs, cards)
    seats = [card for card in range(cards) for _ in range(quotient + (card < rest))]
    crowd = collections.Counter(seats)
    config = {}
    for card, people in crowd.items():
        share = (memory - 11 * MIB - people * 38 * MIB) // people
        if share < need:
            return None
        config[card] = _fraction(share / memory)
    return [(f"{card}", config[card]) for card in seats]


RIGHT = [settings_in_blocks]
WRONG = {
    # The memory of all cards is added up: three programs of more than half a card don't fit on two cards.
    settings_sum_of_cards: "forgets_the_others",
    # The 38 MiB of the context are counted once per card, but each program has a context.
    settings_one_context: "leaves_no_room_for_contexts forgets_the_others",
    # Each program still sees the other cards, and takes its part of them as well.
    settings_own_card_first: "takes_a_part_of_every_card",
}
