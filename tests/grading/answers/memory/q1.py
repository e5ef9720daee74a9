"""Answers to memory/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf

CONTEXT, IDLE = 38 << 20, 11 << 20


def config(**options):
    return tf.ConfigProto(gpu_options=tf.GPUOptions(**options))


def room(programs, cards, memory):
    """The bytes for the tensors of each program on the fullest card."""
    per_card = max(len(range(card, programs, cards)) for card in range(min(cards, programs)))
    return (memory - IDLE) // per_card - CONTEXT


def growing_by_need(programs, cards, need, memory):
    if need > room(programs, cards, memory):
        return None
    order = list(range(cards)) * programs
    return [(",".join(map(str, order[i : i + cards])), config(allow_growth=True)) for i in range(programs)]


def dealt_by_card(programs, cards, need, memory):
    dealt = {card: [] for card in range(cards)}
    for program in range(programs):
        dealt[min(dealt, key=lambda card: len(dealt[card]))].append(program)
    if any(IDLE + len(mine) * (CONTEXT + need) > memory for mine in dealt.values()):
        return None
    card_of = {program: card for card, mine in dealt.items() for program in mine}
    share = config(per_process_gpu_memory_fraction=need / memory)
    return [(str(card_of[program]), share) for program in range(programs)]


def never_none(programs, cards, need, memory):
    return [(str(i % cards), config(allow_growth=True)) for i in range(programs)]


def five_percent_more(programs, cards, need, memory):
    if need > room(programs, cards, memory):
        return None
    return [(str(i % cards), config(per_process_gpu_memory_fraction=1.05 * need / memory)) for i in range(programs)]


def nine_tenths_divided(programs, cards, need, memory):
    if need > room(programs, cards, memory):
        return None
    per_card = -(-programs // cards)
    return [(str(i % cards), config(per_process_gpu_memory_fraction=0.9 / per_card)) for i in range(programs)]


def counts_from_one(programs, cards, need, memory):
    if need > room(programs, cards, memory):
        return None
    return [(str(i % cards + 1), config(allow_growth=True)) for i in range(programs)]


def no_sharing(programs, cards, need, memory):
    """Gives up where programs have to share a card."""
    if programs > cards or need + IDLE + CONTEXT > memory:
        return None
    return [(str(i), config()) for i in range(programs)]


def need_times_programs(programs, cards, need, memory):
    """Counts no contexts, and takes all cards for one."""
    if programs * need > memory * cards:
        return None
    return [(str(i % cards), config(allow_growth=True)) for i in range(programs)]


def one_pair_for_all(programs, cards, need, memory):
    return [("0", config(allow_growth=True))]


def always_none(programs, cards, need, memory):
    return None


def one_context_per_card(programs, cards, need, memory):
    """Counts the context once for each card, not for each program."""
    if IDLE + CONTEXT + -(-programs // cards) * need > memory:
        return None
    return [(str(i % cards), config(per_process_gpu_memory_fraction=need / memory)) for i in range(programs)]


def two_decimals(programs, cards, need, memory):
    """Rounds the fraction, some of the time to less than is needed."""
    if need > room(programs, cards, memory):
        return None
    fraction = round(need / memory, 2)
    return [(str(i % cards), config(per_process_gpu_memory_fraction=fraction)) for i in range(programs)]


RIGHT = [growing_by_need, dealt_by_card]
WRONG = {
    never_none: "promises_too_much",
    five_percent_more: "leaves_no_room_for_contexts",
    nine_tenths_divided: "leaves_no_room_for_contexts",
    counts_from_one: "runs_out_of_cards",
    no_sharing: "gives_up_too_early",
    need_times_programs: "forgets_the_context",
    one_pair_for_all: "gives_one_pair_for_all",
    always_none: "gives_up_too_early",
    one_context_per_card: "forgets_the_others",
    two_decimals: "takes_too_little",
}
