"""Answers to memory/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf

MIB = 1 << 20


def settings_all_cards_as_one(programs, cards, need, memory):
    # Breaks: "Return None if no settings help, because the programs that have to share a card are too large for it."
    # It asks whether all programs fit on all cards together: three of 60% don't fit on two cards.
    if programs * (need + 38 * MIB) + cards * 11 * MIB > cards * memory:
        return None
    sharing = max(1, -(-programs // cards))
    share = max(MIB, (memory - 11 * MIB) // sharing - 38 * MIB)
    pairs = []
    for i in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        pairs.append((str(i % cards), config))
    return pairs


def settings_eleven_for_each(programs, cards, need, memory):
    # Breaks: "11 MiB of a card are in use before any program starts". That is once for each card, not for each
    # program: it says None although the programs just fit.
    if programs == 0:
        return []
    sharing = -(-programs // cards)
    share = memory // sharing - (38 + 11) * MIB
    if share < need:
        return None
    pairs = []
    for i in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        pairs.append((str(i % cards), config))
    return pairs


def settings_rotated_cards(programs, cards, need, memory):
    # Breaks: "with which settings can that many copies of a program run at the same time?" Each has another card as
    # its /gpu:0, but sees all of them: it takes the "part of each card", and its context there, too.
    sharing = -(-programs // cards)
    share = (memory - 11 * MIB) // max(1, sharing) - 38 * MIB
    if share < need:
        return None
    pairs = []
    for i in range(programs):
        order = [(i + k) % cards for k in range(cards)]
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = share / memory
        pairs.append((",".join(map(str, order)), config))
    return pairs


def settings_card_by_card(programs, cards, need, memory):
    """Deals the programs to the cards first; then each card's programs get equal parts of what is left there."""
    pairs = []
    for card in range(cards):
        here = len(range(card, programs, cards))
        if not here:
            break
        each = (memory - 11 * MIB - here * 38 * MIB) // here
        if each < need:
            return None
        options = tf.GPUOptions(per_process_gpu_memory_fraction=(each + 0.5) / memory)
        pairs += [(f"{card}", tf.ConfigProto(gpu_options=options)) for _ in range(here)]
    return pairs


RIGHT = [settings_card_by_card]
WRONG = {
    # It compares what all programs need with the memory of all cards together, but a program can't be cut
    # over two cards: those that share the fullest card have to fit there.
    settings_all_cards_as_one: "forgets_the_others",
    # The 11 MiB that are in use before any program starts are subtracted for each program instead of once for
    # each card, so it returns None for programs that would just fit.
    settings_eleven_for_each: "gives_up_too_early",
    # Each program still sees all cards, in another order only, so it takes its part of every card and not
    # just of its /gpu:0, and the later programs find no room.
    settings_rotated_cards: "takes_a_part_of_every_card",
}
