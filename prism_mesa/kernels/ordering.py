"""Find a number in a short list, and sort keys."""

from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Int32, Ints, UInt64
from prism_mesa.kernels.compiling import inline_kernel, kernel_step
from prism_mesa.kernels.lanes import LANES, count_greater

FEW_CANDIDATES: Final = 96
"""Number of candidates above which they are sorted instead of ranked by counting."""
DIGIT_BITS: Final = 8
DIGITS: Final = 1 << DIGIT_BITS


@inline_kernel
def is_among(values: Int32, first: Any, last: Any, wanted: Any) -> bool:
    """Return whether ``values[first:last]``, which ascend, contain a number."""
    while last - first > 8:
        middle = (first + last) >> 1
        if values[middle] <= wanted:
            first = middle
        else:
            last = middle
    is_found = False
    for i in range(first, last):
        is_found |= values[i] == wanted
    return is_found


@inline_kernel
def count_equal(values: Int32, first: Any, last: Any, wanted: Any) -> Any:
    """Return how often ``values[first:last]``, which ascend, contain a number."""
    begin, end = np.int64(first), np.int64(last)
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    while end < last and values[end] == wanted:
        end += 1
    return end - begin


@inline_kernel
def put_in_order(keys: UInt64, n: Any, order: Ints, scratch: Ints, counts: Ints) -> None:
    """Write the positions of the first `n` keys into `order`, largest key first.

    Only one of several equal keys gets its position in `order`; the others get -1. Arrays need `LANES` spare entries,
    except `counts`, which has length `DIGITS`.
    """
    if n > FEW_CANDIDATES:
        _sort_digits(keys, n, order, scratch, counts)
        return
    for block in range(0, n, LANES):
        count_greater(keys, np.int64(block), np.int64(n), scratch)
    for i in range(n):
        order[i] = -1
    for i in range(n):
        order[np.uint64(scratch[i])] = i


@kernel_step
def _sort_digits(keys: UInt64, n: Any, order: Ints, scratch: Ints, counts: Ints) -> None:
    """Sort by digits, the last digit first (Knuth 1998, 5.2.5); digits that all keys share are skipped."""
    all_bits, any_bits = ~np.uint64(0), np.uint64(0)
    for i in range(n):
        all_bits &= keys[i]
        any_bits |= keys[i]
        order[i] = i
    for shift in range(0, 64, DIGIT_BITS):
        if not (all_bits ^ any_bits) >> np.uint64(shift) & np.uint64(DIGITS - 1):
            continue
        counts[:] = 0
        for i in range(n):
            counts[_digit(keys[i], shift)] += 1
        before = np.int64(0)
        for digit in range(DIGITS - 1, -1, -1):
            count = counts[digit]
            counts[digit] = before
            before += count
        for i in range(n):
            digit_value = _digit(keys[order[i]], shift)
            scratch[counts[digit_value]] = order[i]
            counts[digit_value] += 1
        for i in range(n):  # numba takes seconds to compile an assignment of slices
            order[i] = scratch[i]
    for i in range(n - 1):
        if keys[order[i]] == keys[order[i + 1]]:
            order[i] = -1


@inline_kernel
def _digit(key: Any, shift: Any) -> Any:
    return np.int64(key >> np.uint64(shift) & np.uint64(DIGITS - 1))
