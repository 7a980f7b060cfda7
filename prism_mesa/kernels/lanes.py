"""Operations on sixteen neighbouring entries at a time. All processors give the same result.

LLVM compiles them to vector instructions if the processor has them. It does not vectorise loops over sixteen entries
by itself. Arrays that are read here end with `LANES` extra entries, whose values do not matter.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES: Final = 16
_tools: Any = cgutils
_I64 = ir.IntType(64)


def _code_generator(function: Callable[..., Any]) -> Any:
    """Make an intrinsic that kernels call with all arguments but the first."""
    return intrinsic(function)


@_code_generator
def among(typing: Any, values: Any, at: Any, wanted: Any, first: Any, last: Any) -> Any:
    """Return a number whose bit i says whether ``values[at + i]`` is one of ``wanted[first:last]``.

    Both arrays hold numbers of the same type.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, begin, wanted_array, start, end = arguments
        entries = _lanes(context, builder, signature.args[0], lanes, begin)
        zero = ir.Constant(entries.type, None)
        result = _tools.alloca_once_value(builder, zero)  # as wide as entries: bits would be packed at each step
        with _tools.for_range_slice(builder, start, end, ir.Constant(_I64, 1)) as (i, _):
            value = _broadcast(builder, _entry(context, builder, signature.args[2], wanted_array, i))
            equal = builder.sext(builder.icmp_signed("==", entries, value), entries.type)
            builder.store(builder.or_(builder.load(result), equal), result)
        return _bits(builder, builder.icmp_signed("!=", builder.load(result), zero))

    return types.int64(values, types.int64, wanted, types.int64, types.int64), generate


@_code_generator
def below(typing: Any, values: Any, at: Any, limit: Any) -> Any:
    """Return a number whose bit i says whether ``values[at + i]`` is below a limit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, begin, limit_value = arguments
        entries = builder.sext(_lanes(context, builder, signature.args[0], lanes, begin), ir.VectorType(_I64, LANES))
        return _bits(builder, builder.icmp_signed("<", entries, _broadcast(builder, limit_value)))

    return types.int64(values, types.int64, types.int64), generate


@_code_generator
def count_greater(typing: Any, keys: Any, at: Any, n: Any, counts: Any) -> Any:
    """Write into ``counts[at + i]``, for each lane i, how many of the first `n` keys are above ``keys[at + i]``.

    Keys are uint64, counts int64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, begin, end, out = arguments
        lane_keys = _lanes(context, builder, signature.args[0], lanes, begin)
        zero = ir.Constant(ir.VectorType(_I64, LANES), None)
        result = _tools.alloca_once_value(builder, zero)
        with _tools.for_range(builder, end, intp=_I64) as loop:
            value = _broadcast(builder, _entry(context, builder, signature.args[0], lanes, loop.index))
            above = builder.zext(builder.icmp_unsigned(">", value, lane_keys), zero.type)
            builder.store(builder.add(builder.load(result), above), result)
        place = builder.bitcast(_address(context, builder, signature.args[3], out, begin), zero.type.as_pointer())
        builder.store(builder.load(result), place).align = 8
        return context.get_dummy_value()

    return types.void(keys, types.int64, types.int64, counts), generate


@_code_generator
def prefetch(typing: Any, values: Any, at: Any) -> Any:
    """Prefetch an entry of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        address = builder.bitcast(_address(context, builder, signature.args[0], *arguments), byte)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = _tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(fetch, [address, *(ir.Constant(number, i) for i in (0, 3, 1))])  # to read, near, data
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


@_code_generator
def count_bits(typing: Any, word: Any) -> Any:
    """Return the number of set bits in a 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@_code_generator
def highest_bit(typing: Any, word: Any) -> Any:
    """Return the index of the highest set bit in a nonzero 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(_I64, 63), zeros)

    return types.int64(types.uint64), generate


@_code_generator
def lowest_bit(typing: Any, word: Any) -> Any:
    """Return the index of the lowest set bit in a nonzero 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _bits(builder: Any, holds: Any) -> Any:
    """Return the truth values of all lanes as the bits of a number."""
    return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), _I64)


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _entry(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.load(_address(context, builder, kind, array, at))


def _lanes(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Load adjacent entries, which need not be aligned."""
    place = _address(context, builder, kind, array, at)
    entry = place.type.pointee
    loaded = builder.load(builder.bitcast(place, ir.VectorType(entry, LANES).as_pointer()))
    loaded.align = entry.width // 8  # the array may begin at any entry
    return loaded


def _broadcast(builder: Any, value: Any) -> Any:
    """Return a vector with a value in all lanes."""
    undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    lane = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(lane, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


_LINE: Final = 128
"""Bytes that processors fetch together: a line of their caches, and the one beside it."""


def aligned_zeros[T: np.generic](shape: int | tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
    """Return an array of zeros that shares no cache line with other memory.

    A processor that writes to a cache line takes it from the others. Small arrays lie close together, so threads
    that write to different arrays would wait for each other: walks with two threads take a fifth more CPU time.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(size + 2 * _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    lines: npt.NDArray[Any] = memory[first : first + size].view(kind).reshape(shape)
    return lines
