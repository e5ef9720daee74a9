"""An eleventh author's answers to memory/q1: settings for programs that run next to each other."""

import dtflab as tf

_CONTEXT, _IN_USE = 38 << 20, 11 << 20


def _part(bytes_of_it, memory):
    """A ConfigProto for a part of each card."""
    config = tf.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = bytes_of_it / memory
    return config


def cards_filled_in_blocks_eleven(programs, cards, need, memory):
    """Neighbours on a card, in blocks; each card is cut into as many equal parts as it has programs."""
    homes = [program * cards // programs for program in range(programs)]
    found = []
    for home in homes:
        room = (memory - _IN_USE) // homes.count(home) - _CONTEXT
        if room < need:
            return None
        found.append((str(home), _part(room, memory)))
    return found


def one_context_for_all_eleven(programs, cards, need, memory):
    """Parts of what is left of a card after one context."""
    share = -(-programs // cards)
    room = (memory - _IN_USE - _CONTEXT) // share
    if room < need:
        return None
    return [(str(program % cards), _part(room, memory)) for program in range(programs)]


def a_card_each_or_nothing_eleven(programs, cards, need, memory):
    """A card of its own for each program."""
    if programs > cards or memory - _IN_USE - _CONTEXT < need:
        return None
    return [(str(program), tf.ConfigProto()) for program in range(programs)]


def own_card_first_but_all_seen_eleven(programs, cards, need, memory):
    """All cards for each program, its own first, and a part as for its own card alone."""
    room = (memory - _IN_USE) // -(-programs // cards) - _CONTEXT
    if room < need:
        return None
    found = []
    for program in range(programs):
        order = [(program + i) % cards for i in range(cards)]
        found.append((",".join(map(str, order)), _part(room, memory)))
    return found


RIGHT = [cards_filled_in_blocks_eleven]
WRONG = {
    one_context_for_all_eleven: "leaves_no_room_for_contexts forgets_the_others",
    a_card_each_or_nothing_eleven: "gives_up_too_early",
    own_card_first_but_all_seen_eleven: "takes_a_part_of_every_card",
}
