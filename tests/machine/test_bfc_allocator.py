"""Best fit with coalescing: its laws on any sequence, and the rules that a person would check by hand."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given

from dtflab.machine.bfc_allocator import MIN_ALLOCATION, BFCAllocator, OutOfMemory, bin_number, human_bytes, rounded

KIB, MIB = 1 << 10, 1 << 20


def allocator(limit, card=None, allow_growth=False):
    """An allocator on a card of `card` bytes (as many as it wants if None), and the list of what it has grabbed."""
    grabbed = []

    def grab(nbytes):
        if card is not None and sum(grabbed) + nbytes > card:
            return False
        grabbed.append(nbytes)
        return True

    return BFCAllocator("GPU_0_bfc", limit, grab, allow_growth), grabbed


def layout(bfc):
    return [(chunk.address, chunk.size, chunk.in_use) for chunk in bfc.chunks()]


# ---- laws ----

# An allocation of that many bytes, or the end of one of those that are there (counted round).
actions = st.lists(st.one_of(st.integers(1, 20 * KIB), st.integers(-30, -1)), max_size=60)
large_actions = st.lists(st.one_of(st.integers(1, 3 * MIB), st.integers(-30, -1)), max_size=60)


def play(bfc, actions, after_each):
    """Carry out actions, with the laws of `after_each(live)` checked in between; what is left is freed."""
    live = {}
    for action in actions:
        if action > 0:
            largest, pool = bfc.largest_free_chunk, bfc.stats.pool_bytes
            try:
                live[bfc.allocate(action)] = action
            except OutOfMemory:
                assert largest < rounded(action), "a free chunk was large enough"
                assert pool == bfc.stats.pool_bytes
        elif live:
            address = list(live)[action % len(live)]
            bfc.deallocate(address)
            del live[address]
        after_each(live)
    for address in live:
        bfc.deallocate(address)


def check_laws(bfc, grabbed, live):
    chunks = layout(bfc)
    ends = itertools.accumulate((size for _, size, _ in chunks), initial=0)
    assert [address for address, _, _ in chunks] == [*ends][:-1], "no gap, no overlap"
    assert sum(size for _, size, _ in chunks) == bfc.stats.pool_bytes == sum(grabbed) <= bfc.limit
    assert all(size > 0 and size % MIN_ALLOCATION == 0 for _, size, _ in chunks)
    for chunk in bfc.chunks():
        assert chunk.in_use or chunk.next is None or chunk.next.in_use, "two free neighbours"
        assert chunk.next is None or chunk.next.prev is chunk
    used = {address: size for address, size, in_use in chunks if in_use}
    assert used.keys() == live.keys() and all(used[address] >= live[address] for address in live)
    assert bfc.stats.bytes_in_use == sum(used.values()) <= bfc.stats.peak_bytes_in_use <= bfc.stats.pool_bytes
    free = sorted((size, address) for address, size, in_use in chunks if not in_use)
    assert sorted(itertools.chain.from_iterable(bfc._bins)) == free
    assert len({chunk.handle for chunk in bfc.chunks()}) == len(chunks)


@given(actions)
def test_laws_hold_after_any_sequence(actions):
    bfc, grabbed = allocator(64 * KIB + 77)
    play(bfc, actions, lambda live: check_laws(bfc, grabbed, live))
    assert [size for _, size, _ in layout(bfc)] == grabbed == [64 * KIB] * bool(grabbed), "all is one piece again"
    assert bfc.stats.bytes_in_use == 0


@given(large_actions)
def test_laws_hold_with_regions_that_grow_on_a_card_that_is_too_small(actions):
    bfc, grabbed = allocator(9 * MIB, card=8 * MIB, allow_growth=True)
    play(bfc, actions, lambda live: check_laws(bfc, grabbed, live))
    assert [size for _, size, _ in layout(bfc)] == grabbed, "what is free melts within its region"


@given(st.lists(st.integers(1, 40 * KIB), min_size=1, max_size=20))
def test_the_last_byte_can_be_allocated(sizes):
    bfc, _ = allocator(sum(map(rounded, sizes)))
    taken = []
    for nbytes in sorted(sizes, key=rounded, reverse=True):
        # A chunk that is less than twice as large would be given whole: leave no room for that.
        taken.append(bfc.allocate(nbytes))
        if bfc.free_bytes == 0:
            break
    while bfc.free_bytes:
        taken.append(bfc.allocate(bfc.largest_free_chunk))
    assert bfc.stats.bytes_in_use == bfc.limit
    with pytest.raises(OutOfMemory) as full:
        bfc.allocate(1)
    assert (full.value.free, full.value.largest_free) == (0, 0)
    bfc.deallocate(taken.pop())
    bfc.allocate(1)


# ---- rules ----


def test_sizes_are_multiples_of_256():
    bfc, _ = allocator(MIB)
    assert [bfc.allocated_size(bfc.allocate(nbytes)) for nbytes in (1, 256, 257, 1000)] == [256, 256, 512, 1024]
    with pytest.raises(ValueError, match="Can't allocate 0 bytes"):
        bfc.allocate(0)


def test_bins_are_powers_of_two_of_256():
    assert [bin_number(256 << k) for k in range(21)] == list(range(21))
    assert [bin_number((256 << k) - 256) for k in range(1, 21)] == list(range(20))
    assert bin_number(1 << 40) == 20


def test_the_smallest_chunk_that_fits_is_taken_and_of_equal_ones_the_first():
    bfc, _ = allocator(64 * KIB)
    a, _, c, _, e, _ = (bfc.allocate(nbytes) for nbytes in (4096, 256, 2048, 256, 2048, 256))
    for address in (a, e, c):
        bfc.deallocate(address)
    assert bfc.allocate(1800) == c
    assert bfc.allocate(2048) == e
    assert bfc.allocate(2048) == a  # and is split
    assert bfc.allocate(2048) == a + 2048


def test_a_chunk_is_split_if_it_is_twice_as_large_or_wastes_128_mib():
    bfc, _ = allocator(1024)
    assert bfc.allocated_size(bfc.allocate(768)) == 1024
    bfc, _ = allocator(1024)
    assert bfc.allocated_size(bfc.allocate(512)) == 512
    bfc, _ = allocator(384 * MIB)
    assert bfc.allocated_size(bfc.allocate(257 * MIB)) == 384 * MIB
    bfc, _ = allocator(384 * MIB)
    assert bfc.allocated_size(bfc.allocate(256 * MIB)) == 256 * MIB


def test_fragmented_memory_does_not_fit_what_would_fit_in_one_piece():
    bfc, _ = allocator(16 * KIB)
    addresses = [bfc.allocate(KIB) for _ in range(16)]
    for address in addresses[::2]:
        bfc.deallocate(address)
    assert bfc.free_bytes == 8 * KIB and bfc.largest_free_chunk == KIB
    with pytest.raises(OutOfMemory) as full:
        bfc.allocate(2 * KIB)
    assert (full.value.free, full.value.largest_free, full.value.refused) == (8 * KIB, KIB, False)
    bfc.deallocate(addresses[1])
    assert bfc.allocate(2 * KIB) == addresses[0], "three neighbours have melted"


def test_nothing_is_grabbed_before_first_use_then_the_whole_limit_once():
    bfc, grabbed = allocator(10 * MIB + 5)
    assert grabbed == []
    bfc.deallocate(bfc.allocate(1))
    bfc.allocate(9 * MIB)
    assert grabbed == [10 * MIB] and bfc.stats.pool_bytes == 10 * MIB


def test_without_growth_all_or_nothing():
    bfc, grabbed = allocator(10 * MIB, card=10 * MIB - 1)
    with pytest.raises(OutOfMemory) as full:
        bfc.allocate(1)
    assert full.value.refused and grabbed == []


def test_with_growth_regions_double_from_2_mib_and_are_never_given_back():
    bfc, grabbed = allocator(100 * MIB, allow_growth=True)
    addresses = [bfc.allocate(2 * MIB) for _ in range(7)]
    assert grabbed == [2 * MIB, 4 * MIB, 8 * MIB]
    for address in addresses:
        bfc.deallocate(address)
    assert bfc.stats.pool_bytes == 14 * MIB and bfc.stats.bytes_in_use == 0
    bfc.allocate(9 * MIB)
    assert grabbed[3:] == [16 * MIB], "no region is large enough: neighbouring ones don't melt"


def test_with_growth_the_first_region_is_as_large_as_what_is_asked_for_and_at_most_the_limit():
    bfc, grabbed = allocator(100 * MIB, allow_growth=True)
    bfc.allocate(33 * MIB)
    assert grabbed == [64 * MIB]
    bfc.allocate(35 * MIB)
    assert grabbed == [64 * MIB, 36 * MIB], "what the limit leaves"
    bfc, grabbed = allocator(MIB, allow_growth=True)
    bfc.allocate(1)
    assert grabbed == [MIB]


def test_with_growth_it_asks_for_nine_tenths_until_the_card_has_so_much():
    bfc, grabbed = allocator(100 * MIB, card=50 * MIB, allow_growth=True)
    bfc.allocate(40 * MIB)
    assert grabbed == [rounded(int(rounded(int(rounded(int(64 * MIB * 0.9)) * 0.9)) * 0.9))]
    with pytest.raises(OutOfMemory) as full:
        bfc.allocate(40 * MIB)
    assert full.value.refused


def test_with_growth_a_full_card_refuses_the_smallest_tensor_too():
    bfc, grabbed = allocator(100 * MIB, card=0, allow_growth=True)
    with pytest.raises(OutOfMemory) as full:
        bfc.allocate(4)  # 256 bytes: asking for less and less comes to 2,304, of which 0.9 is 2,304 again
    assert full.value.refused and grabbed == []


def test_only_what_is_allocated_can_be_given_back():
    bfc, _ = allocator(MIB)
    address = bfc.allocate(1)
    bfc.deallocate(address)
    for wrong in (address, address + 1, 12345):
        with pytest.raises(ValueError, match=f"Nothing is allocated at {wrong:#x} in GPU_0_bfc"):
            bfc.deallocate(wrong)


def test_statistics():
    bfc, _ = allocator(MIB)
    addresses = [bfc.allocate(nbytes) for nbytes in (1000, 300, 5000)]
    bfc.deallocate(addresses[2])
    stats = bfc.stats
    assert (stats.num_allocs, stats.bytes_in_use, stats.peak_bytes_in_use) == (3, 1536, 1536 + 5120)
    assert (stats.largest_alloc_size, stats.bytes_limit, stats.pool_bytes) == (5120, MIB, MIB)


# ---- the dump ----


def test_the_dump_names_who_holds_what():
    bfc, _ = allocator(8 * KIB)
    bfc.allocate(1000, "weights")
    gone = bfc.allocate(2048, "gone")
    bfc.allocate(512, "MatMul")
    bfc.deallocate(gone)
    with pytest.raises(OutOfMemory) as full:
        bfc.allocate(5000)
    lines = full.value.report.splitlines()
    assert lines[0] == "BFCAllocator dump for GPU_0_bfc" and len([li for li in lines if li.startswith("Bin (")]) == 21
    (weights,) = [line for line in lines if line.startswith("Bin (1024): \tTotal Chunks: 1, Chunks in use: 1. ")]
    assert weights.endswith("1.0KiB allocated for chunks. 1.0KiB in use in bin. 1000B client-requested in use in bin.")
    assert "Bin for 5.0KiB was 4.0KiB, Chunk State: " in lines
    own = lines.index("Bin for 5.0KiB was 4.0KiB, Chunk State: ")
    neighbours = "prev:   Size: 512B | Requested Size: 512B | in_use: 1 | bin_num: -1"
    assert lines[own + 1 : own + 7] == [
        f"  Size: 4.5KiB | Requested Size: 0B | in_use: 0 | bin_num: 4, {neighbours}",
        "Next region of size 8192",
        "InUse at 0 of size 1024 by op weights action_count 1 next 1",
        "Free  at 400 of size 2048 next 2",
        "InUse at c00 of size 512 by op MatMul action_count 3 next 3",
        "Free  at e00 of size 4608 next 18446744073709551615",
    ]
    assert "Sum Total of in-use chunks: 1.5KiB" in lines
    assert lines[-1] == bfc.picture() == "*" * 13 + "_" * 24 + "*" * 7 + "_" * 56


def test_the_picture_of_an_allocator_without_memory():
    assert allocator(MIB)[0].picture() == "<allocator contains no memory>"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1.0KiB"), (3 * MIB // 2, "1.50MiB"), (3928915968, "3.66GiB")],
)
def test_bytes_for_people(nbytes, text):
    assert human_bytes(nbytes) == text
