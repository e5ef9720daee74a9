import itertools
import random
from types import SimpleNamespace

import pytest

from dtflab.viz import scopes
from dtflab.viz.scopes import blocks, whole


def keys(root):
    return [block.key for block in root.visible()]


def test_small_groups_near_the_root_are_opened_first():
    names = ["a/x", "a/y", "b/c/x", "b/c/y", "b/c/z", "b/d"]
    assert keys(blocks(names, [], 2)) == ["a/", "b/"]
    assert keys(blocks(names, [], 4)) == ["a/x", "a/y", "b/c/", "b/d"]
    assert keys(blocks(names, [], 6)) == names


def test_alike_groups_are_opened_together():
    names = [f"{scope}/{op}" for scope in "abc" for op in "xyz"]
    assert keys(blocks(names, [], 8)) == ["a/", "b/", "c/"]
    assert keys(blocks(names, [], 9)) == names


def test_a_mixed_group_is_opened_before_a_plain_one():
    names = ["a/x", "a/y", "b/x", "b/y", "b/z"]
    kinds = {"b/x": "ps", "b/y": "worker", "b/z": "ps"}
    assert keys(blocks(names, [], 4, kinds)) == ["a/", "b/x", "b/y", "b/z"]


def test_a_variable_stays_closed_while_scopes_open():
    names = ["w", "w/Assign", "w/read", "net/a", "net/b", "net/c/x", "net/c/y"]
    assert keys(blocks(names, [], 5)) == ["w/", "net/a", "net/b", "net/c/x", "net/c/y"]
    assert keys(blocks(names, [], 7)) == names


def test_scopes_with_one_child_are_a_longer_name():
    (block,) = blocks(["a/b/c/x"], [], 9).visible()
    assert (block.label, block.key) == ("a/b/c/x", "a/b/c/x")


def test_a_scope_that_is_entered_again_is_shown_in_two_parts():
    root = blocks(["a/x", "a/w", "b", "a/y"], [("a/x", "b"), ("b", "a/y")], 3)
    seen = [(block.label, block.ops) for block in root.visible()]
    assert seen == [("a", ["a/x", "a/w"]), ("a (2)", ["a/y"]), ("b", ["b"])]


def test_the_variables_of_a_loop_make_one_box_of_each_kind():
    kinds = ["Enter", "Merge", "Switch", "Identity"]
    names = [f"while/{kind}{i}" for kind in [*kinds, "NextIteration"] for i in ("", "_1")] + ["while/LoopCond"]
    edges = [(f"while/{a}{i}", f"while/{b}{i}") for a, b in itertools.pairwise(kinds) for i in ("", "_1")]
    edges += [
        ("while/Merge", "while/LoopCond"),
        ("while/LoopCond", "while/Switch"),
        ("while/LoopCond", "while/Switch_1"),
    ]
    edges += [("while/Identity", "while/NextIteration_1"), ("while/Identity_1", "while/NextIteration")]
    edges += [(f"while/NextIteration{i}", f"while/Merge{i}") for i in ("", "_1")]
    boxes = [(block.label, len(block.ops)) for block in blocks(names, edges, 9).visible()]
    assert boxes == [*((kind, 2) for kind in [*kinds, "NextIteration"]), ("LoopCond", 1)]


def test_many_ops_without_scope_are_bundled():
    names = [f"op{i}" for i in range(1000)]
    root = blocks(names, itertools.pairwise(names), 20)
    assert len(keys(root)) == 20
    assert [name for block in root.visible() for name in block.ops] == names
    assert root.children[0].label == "op0 … 49"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [5, 40, 200])
def test_any_graph_has_few_boxes_and_no_cycle(seed, most):
    chance = random.Random(seed)
    names = ["/".join([*(f"s{chance.randrange(3)}" for _ in range(chance.randrange(4))), f"op{i}"]) for i in range(300)]
    edges = [(names[chance.randrange(i)], names[i]) for i in range(1, 300)]
    root = blocks(names, edges, most)
    seen = [*root.visible()]
    assert len(seen) <= most * 1.25
    assert sorted(name for block in seen for name in block.ops) == sorted(names)
    check_no_cycle(root, edges)


def check_no_cycle(block, edges):
    home = {op: child.key for child in block.children for op in child.ops}
    after = {(home[a], home[b]) for a, b in edges if a in home and b in home and home[a] != home[b]}
    left = {key for edge in after for key in edge}
    while left:
        first = {key for key in left if not any(b == key and a in left for a, b in after)}
        assert first, f"a cycle among the children of {block.key!r}"
        left -= first
    for child in block.children if block.is_open else ():
        if child.is_open:
            check_no_cycle(child, edges)


def tangled(after):
    """Which of the children are on or between cycles; child n is the op n."""
    ops = [str(op) for op in range(len(after))]
    block = SimpleNamespace(children=ops, ops=ops)
    links = {str(op): [str(target) for target in targets] for op, targets in enumerate(after)}
    return scopes._tangled(block, {op: int(op) for op in ops}, links)


@pytest.mark.parametrize("seed", range(20))
def test_tangled_is_who_comes_from_a_cycle_and_leads_to_one(seed):
    chance = random.Random(seed)
    count = chance.randrange(1, 14)
    after = [[b for b in range(count) if chance.random() < 1.3 / count] for _ in range(count)]
    reached = []
    for child in range(count):
        found, new = set(), {other for other in after[child] if other != child}
        while new:
            found |= new
            new = {b for a in new for b in after[a] if a != b} - found
        reached.append(found)
    cycles = {child for child in range(count) if child in reached[child]}
    behind = {other for child in cycles for other in reached[child]}
    assert tangled(after) == {child for child in behind if reached[child] & cycles}


def test_a_long_chain_is_peeled_once():
    """Not looked at as a whole for each op that goes: that would take an hour here."""
    count = 100_000
    chain = [[op + 1] for op in range(count - 1)] + [[]]
    assert tangled(chain) == set()
    assert tangled([*chain[:-1], [count - 2]]) == {count - 2, count - 1}


def leaves(block):
    return [block] if not block.children else [leaf for child in block.children for leaf in leaves(child)]


def below(block):
    return [block, *(each for child in block.children for each in below(child))]


@pytest.mark.parametrize("seed", range(10))
def test_the_whole_tree_leads_to_every_op_and_has_few_children_anywhere(seed):
    chance = random.Random(seed)
    names = ["/".join([*chance.choices("abc", k=chance.randint(0, 3)), f"op{i}"]) for i in range(300)]
    edges = [(names[a], names[b]) for a, b in (sorted(chance.sample(range(300), 2)) for _ in range(400))]
    root = whole(names, edges, 12, 12)
    assert sorted(leaf.ops[0] for leaf in leaves(root)) == sorted(names)
    for block in below(root):
        assert len(block.children) <= 12 and len(block.children) != 1
        assert sorted(block.ops) == sorted(leaf.ops[0] for leaf in leaves(block))
    assert len({id(block) for block in below(root)}) == len({block.key for block in below(root)})


def test_neighbours_of_one_kind_are_bundled_before_others():
    names = [f"layer{i}/{op}" for i in range(9) for op in "xy"] + ["loss", "train"]
    edges = [(f"layer{i}/y", f"layer{i + 1}/x") for i in range(8)] + [("layer8/y", "loss"), ("loss", "train")]
    labels = [block.label for block in whole(names, edges, 8, 8).children]
    assert labels == ["layer0 … 2", "layer3 … 5", "layer6 … 8", "loss", "train"]


def test_scopes_that_are_all_mixed_up_stay_whole():
    names = [f"{'ab'[i % 2]}/op{i}" for i in range(20)]
    root = whole(names, itertools.pairwise(names), 30, 30)
    assert [block.label for block in root.children] == ["a", "b"]
