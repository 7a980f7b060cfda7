"""Find a number in a short list, and sort keys."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import part_of_kernels, step_of_kernels
from prism_mesa.kernels.lanes import LANES, count_greater

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]

FEW: Final = 96
"""Up to so many, places are counted, and candidates listed; more are sorted, or noted as bits."""
DIGIT_BITS: Final = 8
DIGITS: Final = 1 << DIGIT_BITS


@part_of_kernels
def is_among(values: Int32, first: Any, last: Any, wanted: Any) -> bool:
    """Return whether ascending ``values[first:last]`` contain a number."""
    while last - first > 8:
        middle = (first + last) >> 1
        if values[middle] <= wanted:
            first = middle
        else:
            last = middle
    is_there = False
    for i in range(first, last):
        is_there |= values[i] == wanted
    return is_there


@part_of_kernels
def n_among(values: Int32, first: Any, last: Any, wanted: Any) -> Any:
    """Return how often ascending ``values[first:last]`` contain a number."""
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


@part_of_kernels
def put_in_order(keys: Keys, n: Any, order: Int64, scratch: Int64, counts: Int64) -> None:
    """Write the positions of the first `n` keys into `order`, largest key first.

    All arrays but `counts`, of length `DIGITS`, need `LANES` spare entries. Of equal keys one is listed, the others
    give -1.
    """
    if n > FEW:
        _sort_digits(keys, n, order, scratch, counts)
        return
    for at in range(0, n, LANES):
        count_greater(keys, np.int64(at), np.int64(n), scratch)
    for i in range(n):
        order[i] = -1
    for i in range(n):
        order[np.uint64(scratch[i])] = i


@step_of_kernels
def _sort_digits(keys: Keys, n: Any, order: Int64, scratch: Int64, counts: Int64) -> None:
    """Sort by digits, the last first (Knuth 1998, 5.2.5); digits that all keys share are left out."""
    alike, some = ~np.uint64(0), np.uint64(0)
    for i in range(n):
        alike &= keys[i]
        some |= keys[i]
        order[i] = i
    for shift in range(0, 64, DIGIT_BITS):
        if not (alike ^ some) >> np.uint64(shift) & np.uint64(DIGITS - 1):
            continue
        counts[:] = 0
        for i in range(n):
            counts[_digit(keys[i], shift)] += 1
        before = np.int64(0)
        for digit in range(DIGITS - 1, -1, -1):
            here = counts[digit]
            counts[digit] = before
            before += here
        for i in range(n):
            place = _digit(keys[order[i]], shift)
            scratch[counts[place]] = order[i]
            counts[place] += 1
        for i in range(n):  # numba takes seconds to compile an assignment of slices
            order[i] = scratch[i]
    for i in range(n - 1):
        if keys[order[i]] == keys[order[i + 1]]:
            order[i] = -1


@part_of_kernels
def _digit(key: Any, shift: Any) -> Any:
    return np.int64(key >> np.uint64(shift) & np.uint64(DIGITS - 1))
