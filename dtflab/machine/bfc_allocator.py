"""Best fit with coalescing: which part of a device's memory a tensor gets. Addresses only; no byte is touched.

Stands for `core/common_runtime/bfc_allocator.cc` and `AllocatorStats`. Left out: alignment above 256 bytes, timestamps
of other streams, giving regions back (garbage collection), and the ten seconds that an allocation waits for others.

Theory of operation (Doug Lea's malloc, simplified). Memory comes from the card in regions: the whole limit at first
use, or a growing row of them. A region is a row of chunks, in use or free. Free chunks stand in bins by size, powers of
two of 256 bytes. An allocation takes the smallest free chunk that is large enough, of two equal ones the first; a
chunk of twice the size, or 128 MiB larger, is split. A chunk that gets free melts into its free neighbours.

Rules: sizes are multiples of 256 bytes. Two free chunks are never neighbours. What the card gave is never given back.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

MIN_ALLOCATION = 256
BINS = 21
_MOST_WASTE = 128 << 20  # a chunk that is larger than asked for by this much is split
_FIRST_REGION = 2 << 20  # with allow_growth
_BACKPEDAL = 0.9
_LAST = 200  # allocations and deallocations that are remembered
_NONE = 2**64 - 1  # how TensorFlow prints that there is no next chunk
_PICTURE_WIDTH = 100


class OutOfMemory(Exception):
    """No free chunk is large enough, and the card gives no more. `report` is the allocator's dump."""

    def __init__(self, nbytes: int, allocator: BFCAllocator) -> None:
        super().__init__(f"Allocator ({allocator.name}) ran out of memory trying to allocate {human_bytes(nbytes)}")
        self.nbytes = nbytes
        self.limit = allocator.limit
        self.free = allocator.free_bytes
        self.largest_free = allocator.largest_free_chunk
        self.waste = sum(chunk.size - chunk.requested for chunk in allocator.chunks() if chunk.in_use)
        self.refused = allocator.refused
        self.report = allocator.report(nbytes)
        held = tuple(Block.of(chunk) for chunk in allocator.chunks() if chunk.in_use)
        self.exhausted = Exhausted(
            allocator.name, nbytes, allocator.limit, tuple(allocator.regions), held, tuple(allocator.last)
        )


class Block(NamedTuple):
    """A part of a device's memory in use, and `what` it was taken for, a machine.memory.Buffer."""

    address: int
    size: int
    what: Any

    @staticmethod
    def of(chunk: Chunk) -> Block:
        """The block that a chunk in use is."""
        return Block(chunk.address, chunk.size, chunk.what)


class Exhausted(NamedTuple):
    """An allocator that could not give `wanted` bytes: its blocks, and the last ones that were taken or given back."""

    allocator: str
    wanted: int
    limit: int
    regions: tuple[tuple[int, int], ...]  # address and size
    held: tuple[Block, ...]
    last: tuple[tuple[bool, Block], ...]  # True: taken; the newest comes last


@dataclass
class AllocatorStats:
    """TensorFlow's counts of an allocator. Bytes are those of chunks, which may be larger than what was asked for."""

    bytes_limit: int
    num_allocs: int = 0
    bytes_in_use: int = 0
    peak_bytes_in_use: int = 0
    largest_alloc_size: int = 0
    bytes_reserved: int = 0  # by other means than allocations: never here
    peak_bytes_reserved: int = 0
    largest_free_block_bytes: int = 0
    pool_bytes: int = 0  # taken from the card
    peak_pool_bytes: int = 0

    def allocated(self, size: int) -> None:
        """Count a chunk of `size` bytes that is in use from now on."""
        self.num_allocs += 1
        self.bytes_in_use += size
        self.peak_bytes_in_use = max(self.peak_bytes_in_use, self.bytes_in_use)
        self.largest_alloc_size = max(self.largest_alloc_size, size)

    def debug_string(self) -> str:
        """The block that ends TensorFlow's dump."""
        rows = [
            ("Limit", human_bytes(self.bytes_limit)),
            ("InUse", human_bytes(self.bytes_in_use)),
            ("MaxInUse", human_bytes(self.peak_bytes_in_use)),
            ("NumAllocs", str(self.num_allocs)),
            ("MaxAllocSize", human_bytes(self.largest_alloc_size)),
            ("Reserved", human_bytes(self.bytes_reserved)),
            ("PeakReserved", human_bytes(self.peak_bytes_reserved)),
            ("LargestFreeBlock", human_bytes(self.largest_free_block_bytes)),
        ]
        return "".join(f"{title + ':':<20}{value:>18}\n" for title, value in rows)


@dataclass(slots=True, eq=False, repr=False)
class Chunk:
    """A piece of a region, in use or free; `requested` bytes of it are, or were last, asked for."""

    handle: int
    address: int
    size: int
    in_use: bool = False
    requested: int = 0
    what: Any = None  # the op that asked for it
    action: int = 0  # its last allocation or deallocation, counted over all chunks
    prev: Chunk | None = None
    next: Chunk | None = None


class BFCAllocator:
    """The memory of one program on one card, at most `limit` bytes; `grab(nbytes)` takes a region off the card."""

    def __init__(self, name: str, limit: int, grab: Callable[[int], bool], allow_growth: bool = False) -> None:
        self.name = name
        self.limit = limit
        self.refused = 0  # bytes that the card was last asked for and did not have
        self.stats = AllocatorStats(limit)
        self._grab = grab
        self._allow_growth = allow_growth
        self._next_region = rounded(min(limit, _FIRST_REGION) if allow_growth else limit)
        self._chunks: dict[int, Chunk] = {}  # by address
        self.regions: list[tuple[int, int]] = []  # (address, size)
        self.last: deque[tuple[bool, Block]] = deque(maxlen=_LAST)  # of allocations (True) and deallocations
        self._bins: list[list[tuple[int, int]]] = [[] for _ in range(BINS)]  # free chunks as (size, address)
        self._unused_handles: list[int] = []
        self._actions = 0

    def allocate(self, nbytes: int, what: Any = None) -> int:
        """The address of a chunk for `nbytes` bytes (1 or more), taken by `what`; OutOfMemory if none is to be had."""
        if nbytes < 1:
            raise ValueError(f"Can't allocate {nbytes} bytes: a tensor without elements needs no memory.")
        size = rounded(nbytes)
        chunk = self._best_fit(size)
        if chunk is None and self._extend(size):
            chunk = self._best_fit(size)
        if chunk is None:
            raise OutOfMemory(nbytes, self)
        if chunk.size >= 2 * size or chunk.size - size >= _MOST_WASTE:
            self._split(chunk, size)
        chunk.in_use, chunk.requested, chunk.what = True, nbytes, what
        self._act(chunk)
        self.last.append((True, Block.of(chunk)))
        self.stats.allocated(chunk.size)
        return chunk.address

    def begin(self) -> None:
        """Take the memory off the card now, unless it is to grow. If the card says no, the first tensor asks again."""
        if not self._allow_growth and not self.regions:
            self._extend(MIN_ALLOCATION)

    def deallocate(self, address: int) -> None:
        """Give a chunk back; ValueError for an address that was not allocated, or was given back before."""
        chunk = self._chunks.get(address)
        if chunk is None or not chunk.in_use:
            raise ValueError(f"Nothing is allocated at {address:#x} in {self.name}.")
        self.last.append((False, Block.of(chunk)))
        chunk.in_use, chunk.what = False, None
        self._act(chunk)
        self.stats.bytes_in_use -= chunk.size
        if chunk.next is not None and not chunk.next.in_use:
            self._take_out(chunk.next)
            self._merge(chunk, chunk.next)
        if chunk.prev is not None and not chunk.prev.in_use:
            self._take_out(chunk.prev)
            chunk = self._merge(chunk.prev, chunk)
        self._put_in(chunk)

    def allocated_size(self, address: int) -> int:
        """How many bytes the chunk at `address` has: what was asked for, and some more."""
        return self._chunks[address].size

    @property
    def free_bytes(self) -> int:
        """The bytes that could still be allocated, if they were in one piece and the card had them."""
        return self.limit - self.stats.bytes_in_use

    @property
    def largest_free_chunk(self) -> int:
        """The bytes of the largest free chunk; 0 if everything that the card gave is in use."""
        return max((sizes[-1][0] for sizes in self._bins if sizes), default=0)

    def chunks(self) -> Iterator[Chunk]:
        """All chunks, region by region, in order of address."""
        for address, _ in self.regions:
            chunk: Chunk | None = self._chunks[address]
            while chunk is not None:
                yield chunk
                chunk = chunk.next

    # -- regions and chunks -----------------------------------------------------------------------------------------

    def _extend(self, size: int) -> bool:
        """Take another region off the card that has room for `size` bytes; False if the card or the limit says no."""
        available = (self.limit - self.stats.pool_bytes) // MIN_ALLOCATION * MIN_ALLOCATION
        if size > available:
            return False
        doubled = False
        while size > self._next_region:
            self._next_region *= 2
            doubled = True
        asked = nbytes = min(self._next_region, available)
        while not self._grab(nbytes):
            less = rounded(int(nbytes * _BACKPEDAL))
            if not self._allow_growth or less < size or less == nbytes:  # of 2,304 bytes, 0.9 is rounded up to as many
                self.refused = asked
                return False
            nbytes = less
        self.refused = 0
        if not doubled:
            self._next_region *= 2
        self.regions.append((self.stats.pool_bytes, nbytes))
        self._put_in(self._new_chunk(self.stats.pool_bytes, nbytes))
        self.stats.pool_bytes += nbytes
        self.stats.peak_pool_bytes = self.stats.pool_bytes
        return True

    def _best_fit(self, size: int) -> Chunk | None:
        """The smallest free chunk of at least `size` bytes, taken out of its bin."""
        for free in self._bins[bin_number(size) :]:
            if free and free[-1][0] >= size:
                return self._chunks[free.pop(bisect_left(free, (size, 0)))[1]]
        return None

    def _split(self, chunk: Chunk, size: int) -> None:
        """Leave `size` bytes to the chunk; the rest is a free chunk after it."""
        rest = self._new_chunk(chunk.address + size, chunk.size - size)
        chunk.size = size
        rest.prev, rest.next = chunk, chunk.next
        if chunk.next is not None:
            chunk.next.prev = rest
        chunk.next = rest
        self._put_in(rest)

    def _merge(self, first: Chunk, second: Chunk) -> Chunk:
        """`first` takes over its neighbour `second`."""
        first.size += second.size
        first.next = second.next
        if second.next is not None:
            second.next.prev = first
        del self._chunks[second.address]
        self._unused_handles.append(second.handle)
        return first

    def _new_chunk(self, address: int, size: int) -> Chunk:
        handle = self._unused_handles.pop() if self._unused_handles else len(self._chunks)
        self._chunks[address] = Chunk(handle, address, size)
        return self._chunks[address]

    def _put_in(self, chunk: Chunk) -> None:
        insort(self._bins[bin_number(chunk.size)], (chunk.size, chunk.address))

    def _take_out(self, chunk: Chunk) -> None:
        free = self._bins[bin_number(chunk.size)]
        del free[bisect_left(free, (chunk.size, chunk.address))]

    def _act(self, chunk: Chunk) -> None:
        self._actions += 1
        chunk.action = self._actions

    # -- the dump ---------------------------------------------------------------------------------------------------

    def report(self, nbytes: int = MIN_ALLOCATION) -> str:
        """TensorFlow's log when `nbytes` can't be had: bins, chunks with their owners, sizes in use, counts."""
        size = rounded(nbytes)
        own = bin_number(size)
        lines = [f"BFCAllocator dump for {self.name}"]
        lines += [self._bin_line(number) for number in range(BINS)]
        lines.append(f"Bin for {human_bytes(size)} was {human_bytes(MIN_ALLOCATION << own)}, Chunk State: ")
        lines += [_with_neighbours(self._chunks[address]) for _, address in self._bins[own]]
        for chunk in self.chunks():
            if chunk.prev is None:
                lines.append(f"Next region of size {dict(self.regions)[chunk.address]}")
            lines.append(_chunk_line(chunk))
        lines += self._summary()
        return "\n".join([*lines, "Stats: ", self.stats.debug_string(), self.picture()])

    def _bin_line(self, number: int) -> str:
        chunks = [chunk for chunk in self._chunks.values() if bin_number(chunk.size) == number]
        used = [chunk for chunk in chunks if chunk.in_use]
        return (
            f"Bin ({MIN_ALLOCATION << number}): \tTotal Chunks: {len(chunks)}, Chunks in use: {len(used)}. "
            f"{human_bytes(sum(chunk.size for chunk in chunks))} allocated for chunks. "
            f"{human_bytes(sum(chunk.size for chunk in used))} in use in bin. "
            f"{human_bytes(sum(chunk.requested for chunk in used))} client-requested in use in bin."
        )

    def _summary(self) -> list[str]:
        sizes = sorted(chunk.size for chunk in self.chunks() if chunk.in_use)
        lines = ["     Summary of in-use Chunks by size: "]
        for size in dict.fromkeys(sizes):
            count = sizes.count(size)
            lines.append(f"{count} Chunks of size {size} totalling {human_bytes(count * size)}")
        pool = self.stats.pool_bytes
        lines.append(f"Sum Total of in-use chunks: {human_bytes(sum(sizes))}")
        lines.append(
            f"Total size in pool: {human_bytes(pool)} memory_limit_: {human_bytes(self.limit)} available size: "
            f"{human_bytes(self.limit - pool)} curr_region_allocation_bytes_: {human_bytes(self._next_region)}"
        )
        return lines

    def picture(self) -> str:
        """The regions as one line of 100 characters: `*` in use, `x` given but not asked for, `_` free."""
        total = self.stats.pool_bytes
        if not total:
            return "<allocator contains no memory>"
        drawn = ["_"] * _PICTURE_WIDTH

        def draw(start: int, end: int, mark: str) -> None:
            first, last = start * _PICTURE_WIDTH // total, (end - 1) * _PICTURE_WIDTH // total
            drawn[first : last + 1] = mark * (last + 1 - first)

        for chunk in self.chunks():
            if chunk.in_use:
                asked = chunk.address + chunk.requested
                if chunk.size > chunk.requested:
                    draw(asked, chunk.address + chunk.size, "x")
                draw(chunk.address, asked, "*")
        return "".join(drawn)


def _with_neighbours(chunk: Chunk) -> str:
    neighbours = [("prev", chunk.prev), ("next", chunk.next)]
    return _state(chunk) + "".join(f", {side}: {_state(other)}" for side, other in neighbours if other is not None)


def _state(chunk: Chunk) -> str:
    number = -1 if chunk.in_use else bin_number(chunk.size)
    return (
        f"  Size: {human_bytes(chunk.size)} | Requested Size: {human_bytes(chunk.requested)} | "
        f"in_use: {int(chunk.in_use)} | bin_num: {number}"
    )


def _chunk_line(chunk: Chunk) -> str:
    state = "InUse" if chunk.in_use else "Free "
    taken = f" by op {chunk.what} action_count {chunk.action}" if chunk.what is not None else ""
    following = _NONE if chunk.next is None else chunk.next.handle
    return f"{state} at {chunk.address:x} of size {chunk.size}{taken} next {following}"


def rounded(nbytes: int) -> int:
    """The next multiple of 256 bytes."""
    return -(-nbytes // MIN_ALLOCATION) * MIN_ALLOCATION


def bin_number(size: int) -> int:
    """Which bin free chunks of `size` bytes stand in: that of the largest power of two of 256 bytes below it."""
    return min(BINS - 1, (size // MIN_ALLOCATION).bit_length() - 1)


def human_bytes(nbytes: int) -> str:
    """`512B`, `1.0KiB`, `3.66GiB`: TensorFlow's HumanReadableNumBytes."""
    if nbytes < 1024:
        return f"{nbytes}B"
    value, units = nbytes / 1024, "KMGTPE"
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.{1 if units[0] == 'K' else 2}f}{units[0]}iB"
