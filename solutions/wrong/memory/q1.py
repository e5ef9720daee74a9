"""Wrong answers to memory/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def taking(fraction):
    config = tf.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = fraction
    return config


def fit(programs, cards, need, memory):
    """Whether the programs on the fullest card fit, with a context for each and what an idle card has in use."""
    return (11 << 20) + -(-programs // cards) * ((38 << 20) + need) <= memory


def promises_too_much(programs, cards, need, memory):
    return [(str(program % cards), taking(need / memory)) for program in range(programs)]


def forgets_the_context(programs, cards, need, memory):
    """The official solution as it once was, but for a part that was 5% larger."""
    return [(str(program % cards), taking(need / memory)) for program in range(programs)] if need <= memory else None


def forgets_the_others(programs, cards, need, memory):
    if need + (49 << 20) > memory:
        return None
    return [(str(program % cards), taking(need / memory)) for program in range(programs)]


def runs_out_of_cards(programs, cards, need, memory):
    return (
        [(str(program), taking(need / memory)) for program in range(programs)]
        if fit(programs, cards, need, memory)
        else None
    )


def all_on_the_first_card(programs, cards, need, memory):
    return [(None, taking(need / memory)) for _ in range(programs)] if fit(programs, cards, need, memory) else None


def takes_all(programs, cards, need, memory):
    return (
        [(str(program % cards), tf.ConfigProto()) for program in range(programs)]
        if fit(programs, cards, need, memory)
        else None
    )


def leaves_no_room_for_contexts(programs, cards, need, memory):
    per_card = -(-programs // cards)
    return (
        [(str(program % cards), taking(1 / per_card)) for program in range(programs)]
        if fit(programs, cards, need, memory)
        else None
    )


def forgets_what_is_in_use(programs, cards, need, memory):
    if -(-programs // cards) * (need + (38 << 20)) > memory:
        return None
    return [(str(program % cards), taking(need / memory)) for program in range(programs)]


def takes_too_little(programs, cards, need, memory):
    if not fit(programs, cards, need, memory):
        return None
    return [(str(program % cards), taking(need / memory / programs)) for program in range(programs)]


def gives_one_pair_for_all(programs, cards, need, memory):
    return [("0", taking(need / memory))] if fit(programs, cards, need, memory) else None


def gives_up_too_early(programs, cards, need, memory):
    return runs_out_of_cards(programs, cards, need, memory) if programs <= cards else None


def takes_a_part_of_every_card(programs, cards, need, memory):
    if not fit(programs, cards, need, memory):
        return None
    orders = [[str((program + other) % cards) for other in range(cards)] for program in range(programs)]
    return [(",".join(order), taking(need / memory)) for order in orders]
