"""Which cards of a host a program sees, in which order: pure functions over numbers of cards.

Stands for the CUDA driver's CUDA_VISIBLE_DEVICES and for GetValidDeviceIds of
`core/common_runtime/gpu/gpu_device.cc`. Left out: the filter for slow cards next to fast ones, since the cards of a
simulated host are all of one model; names of cards (GPU-<uuid>) in CUDA_VISIBLE_DEVICES.

Rule: CUDA says nothing about a bad entry and hides what follows it; TensorFlow refuses a bad entry of its own list.
"""

from __future__ import annotations

import re

from dtflab.base import errors

_refused = errors.InvalidArgumentError.of


def cuda_visible(text: str | None, count: int) -> list[int]:
    """The cards that CUDA_VISIBLE_DEVICES=`text` leaves of `count`, in its order; all of them without one (None).

    An entry that is not a card hides itself and all after it, so `""` and `"-1"` hide all; one twice hides all, too.
    """
    if text is None:
        return list(range(count))
    order: list[int] = []
    for entry in text.split(","):
        if not re.fullmatch(r"\s*\d+\s*", entry) or int(entry) >= count:
            break
        order.append(int(entry))
    return order if len(set(order)) == len(order) else []


def listed(text: str, count: int) -> list[int]:
    """The order that `gpu_options.visible_device_list` gives to the `count` cards that CUDA shows.

    InvalidArgumentError for an entry that is not a number, not a card, or there twice.
    """
    if not text:
        return list(range(count))
    order = []
    for entry in text.split(","):
        if not re.fullmatch(r"\s*[+-]?\d+\s*", entry):
            raise _refused(f"Could not parse entry in 'visible_device_list': '{entry}'. visible_device_list = {text}")
        if not 0 <= int(entry) < count:
            invalid = f"listed an invalid GPU id '{int(entry)}' but visible device count is {count}"
            raise _refused(f"'visible_device_list' {invalid}")
        order.append(int(entry))
    if len(set(order)) != len(order):
        raise _refused(f"visible_device_list contained a duplicate entry: {text}")
    return order
