"""Answers to memory/q1: settings for programs on one machine."""

import dtflab as tf

CONTEXT = 38 << 20
IN_USE = 11 << 20


def dealt_out_share_twelve(programs, cards, need, memory):
    """Deal out the programs one by one; each takes what the fullest card has for one."""
    on_card = [0] * cards
    chosen = []
    for _ in range(programs):
        card = on_card.index(min(on_card))
        on_card[card] += 1
        chosen.append(card)
    room = (memory - IN_USE) // max(1, *on_card) - CONTEXT
    if room < need:
        return None
    pairs = []
    for card in chosen:
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = room / memory
        pairs.append((str(card), config))
    return pairs


def plain_fraction_twelve(programs, cards, need, memory):
    """One card for each program, and the same fraction of it for each that shares it."""
    sharing = -(-programs // cards)
    if IN_USE + sharing * (CONTEXT + need) > memory:
        return None
    pairs = []
    for number in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = 1 / sharing
        pairs.append((str(number % cards), config))
    return pairs


def average_card_twelve(programs, cards, need, memory):
    """One card for each program, and an equal share of what a card has after the contexts."""
    sharing = max(1, programs // cards)
    share = (memory - IN_USE) // sharing - CONTEXT
    if share < need:
        return None
    pairs = []
    for number in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        pairs.append((str(number % cards), config))
    return pairs


def rotated_cards_twelve(programs, cards, need, memory):
    """All cards for each program, with another one first for each, and a fraction just above its need."""
    room = (memory - IN_USE) // -(-programs // cards) - CONTEXT
    if room < need:
        return None
    pool = min(room, need + (1 << 20))
    pairs = []
    for number in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = pool / memory
        order = [str((number + place) % cards) for place in range(cards)]
        pairs.append((",".join(order), config))
    return pairs


RIGHT = [dealt_out_share_twelve]
WRONG = {
    plain_fraction_twelve: "leaves_no_room_for_contexts",
    average_card_twelve: "forgets_the_others leaves_no_room_for_contexts",
    rotated_cards_twelve: "takes_a_part_of_every_card",
}
