import math

import dtflab as tf

MIB = 1 << 20


def settings_fourteenth(programs, cards, need, memory):
    """Deals the programs out to the emptiest card each, then gives each an equal share of what its one card can hold."""
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


RIGHT = [settings_fourteenth]
WRONG = {
    rotated_cards_fourteenth: "each program still sees all cards, so it takes 38 MiB for a context on every one of them, "
    "and tight cards are full too early; a good hint: look at smi, on how many cards does one program hold memory, and "
    "how many does it need?",
    rounded_fraction_fourteenth: "the fraction is rounded to three digits, about half the time down, so that a program "
    "gets up to 1/2000 of a card (some 100 KiB) less than it needs; a good hint: how many bytes is your fraction of this "
    "card, and is that at least `need`?",
    context_once_fourteenth: "in the check whether the programs fit, the 38 MiB context is counted once for the card and "
    "not once for each program on it, so that it gives settings where None is right; a good hint: each program that "
    "shares the card takes 38 MiB besides its tensors.",
}
