"""Answers of an nineteenth author to memory/q1: settings for programs that share the cards of a machine."""

import math

import numpy as np

import dtflab as tf

_MIB = 1 << 20
_CONTEXT = 38 * _MIB
_IN_USE = 11 * _MIB


def _limited(fraction):
    """A ConfigProto with that part of each card."""
    return tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=fraction))


def fill_card_by_card_nineteenth(programs, cards, need, memory):
    """Fill one card after the other, each with as many programs as fit, and give each program exactly its need."""
    fit = (memory - _IN_USE) // (need + _CONTEXT)
    if programs > fit * cards:
        return None
    fraction = need / memory
    while int(fraction * memory) < need:
        fraction = float(np.nextafter(fraction, 1.0))
    seats = [str(card) for card in range(cards) for _ in range(fit)]
    return [(card, _limited(fraction)) for card in seats[:programs]]


def equal_shares_nineteenth(programs, cards, need, memory):
    """Split the programs evenly over the cards, and each card evenly between its programs, contexts set aside."""
    pairs = []
    for card, group in enumerate(np.array_split(np.arange(programs), cards)):
        if not len(group):
            continue
        share = (memory - _IN_USE) // len(group) - _CONTEXT
        if share < need:
            return None
        for _ in group:
            config = tf.ConfigProto()
            config.gpu_options.per_process_gpu_memory_fraction = (share + 0.5 if share == need else share) / memory
            pairs.append((f"{card}", config))
    return pairs


def own_card_first_nineteenth(programs, cards, need, memory):
    """Let each program see all cards, in an order that begins with its own one, and limit it by a fraction."""
    if math.ceil(programs / cards) * (need + _CONTEXT) + _IN_USE > memory:
        return None
    pairs = []
    for number in range(programs):
        order = [(number + step) % cards for step in range(cards)]
        pairs.append((",".join(map(str, order)), _limited((need + 0.5) / memory)))
    return pairs


def context_in_fraction_nineteenth(programs, cards, need, memory):
    """Reserve a fraction that holds the tensors and the context together."""
    per_card = -(-programs // cards)
    whole = need + _CONTEXT
    if per_card * whole + _IN_USE > memory:
        return None
    return [(str(number % cards), _limited(whole / memory)) for number in range(programs)]


def one_big_pool_nineteenth(programs, cards, need, memory):
    """Compare what all programs need with what all cards have, and deal the programs out in turn."""
    if programs * (need + _CONTEXT) > cards * (memory - _IN_USE):
        return None
    return [(str(number % cards), _limited((need + 0.5) / memory)) for number in range(programs)]


def grow_where_shared_nineteenth(programs, cards, need, memory):
    """Leave a program alone on its card as it is, and let those that share a card grow."""
    loads = [len(range(card, programs, cards)) for card in range(cards)]
    if any(load * (need + _CONTEXT) + _IN_USE > memory for load in loads):
        return None
    pairs = []
    for number in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.allow_growth = loads[number % cards] > 1
        pairs.append((str(number % cards), config))
    return pairs


def system_share_each_nineteenth(programs, cards, need, memory):
    """Count context and system memory for each program before deciding how many fit on a card."""
    fit = memory // (need + _CONTEXT + _IN_USE)
    if math.ceil(programs / cards) > fit:
        return None
    config = _limited((need + 0.5) / memory)
    return [(str(number % cards), config) for number in range(programs)]


# The text says now that nearly all is one variable: then growth is right, too.
RIGHT = [fill_card_by_card_nineteenth, equal_shares_nineteenth, grow_where_shared_nineteenth]
WRONG = {
    own_card_first_nineteenth: "takes_a_part_of_every_card",
    context_in_fraction_nineteenth: "leaves_no_room_for_contexts",
    one_big_pool_nineteenth: "forgets_the_others",
    system_share_each_nineteenth: "gives_up_too_early",
}
