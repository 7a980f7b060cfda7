"""Operations on sixteen adjacent entries at a time, with the same result on all processors.

LLVM compiles them to vector instructions if the processor has any. By itself, LLVM does not vectorise loops over
sixteen entries. Arrays that these operations read end with `LANES` extra entries, whose values do not matter.
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
    """Make an intrinsic; kernels call it without the first argument."""
    return intrinsic(function)


@_code_generator
def lanes_among(typing: Any, values: Any, index: Any, wanted: Any, first: Any, last: Any) -> Any:
    """Return a number whose bit i says whether ``values[index + i]`` is in ``wanted[first:last]``.

    Both arrays hold numbers of the same type.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, begin, wanted_array, start, end = arguments
        entries = _lanes(context, builder, signature.args[0], lanes, begin)
        zero = ir.Constant(entries.type, None)
        result = _tools.alloca_once_value(builder, zero)  # as wide as entries, so that bits are packed only once
        with _tools.for_range_slice(builder, start, end, ir.Constant(_I64, 1)) as (i, _):
            value = _broadcast(builder, _entry(context, builder, signature.args[2], wanted_array, i))
            equal = builder.sext(builder.icmp_signed("==", entries, value), entries.type)
            builder.store(builder.or_(builder.load(result), equal), result)
        return _bits(builder, builder.icmp_signed("!=", builder.load(result), zero))

    return types.int64(values, types.int64, wanted, types.int64, types.int64), generate


@_code_generator
def lanes_below(typing: Any, values: Any, index: Any, limit: Any) -> Any:
    """Return a number whose bit i says whether ``values[index + i]`` is below a limit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, begin, limit_value = arguments
        entries = builder.sext(_lanes(context, builder, signature.args[0], lanes, begin), ir.VectorType(_I64, LANES))
        return _bits(builder, builder.icmp_signed("<", entries, _broadcast(builder, limit_value)))

    return types.int64(values, types.int64, types.int64), generate


@_code_generator
def count_greater(typing: Any, keys: Any, index: Any, n: Any, counts: Any) -> Any:
    """Write into ``counts[index + i]`` how many of the first `n` keys are above ``keys[index + i]``, for each lane i.

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
def place_by_rank(typing: Any, values: Any, index: Any, first: Any, last: Any, out: Any, out_first: Any) -> Any:
    """Write ``values[index + i]`` to ``out[out_first + n]``, for each lane i; n of ``values[first:last]`` are smaller.

    Values are at least 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, begin, start, end, target, target_first = arguments
        entries = _lanes(context, builder, signature.args[0], array, begin)
        result = _tools.alloca_once_value(builder, ir.Constant(entries.type, None))
        with _tools.for_range_slice(builder, start, end, ir.Constant(_I64, 1)) as (i, _):
            value = _broadcast(builder, _entry(context, builder, signature.args[0], array, i))
            is_smaller = builder.zext(builder.icmp_unsigned("<", value, entries), entries.type)
            builder.store(builder.add(builder.load(result), is_smaller), result)
        ranks = builder.load(result)
        for lane in range(LANES):
            entry, rank = (builder.extract_element(lanes, ir.Constant(_I64, lane)) for lanes in (entries, ranks))
            place = builder.add(target_first, builder.zext(rank, _I64))
            builder.store(entry, _address(context, builder, signature.args[4], target, place))
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64, types.int64, out, types.int64), generate


@_code_generator
def prefetch(typing: Any, values: Any, index: Any) -> Any:
    """Prefetch an entry of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        address = builder.bitcast(_address(context, builder, signature.args[0], *arguments), byte)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = _tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(fetch, [address, *(ir.Constant(number, i) for i in (0, 3, 1))])  # LLVM: read, keep, data cache
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


@_code_generator
def unlikely(typing: Any, condition: Any) -> Any:
    """Return a condition that is mostly false, so the kernel keeps no registers free for what depends on it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bit = ir.IntType(1)
        expect = builder.module.declare_intrinsic("llvm.expect", [bit], ir.FunctionType(bit, [bit, bit]))
        return builder.call(expect, [arguments[0], ir.Constant(bit, 0)])

    return types.boolean(types.boolean), generate


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


def _bits(builder: Any, truth_values: Any) -> Any:
    """Pack the truth values of all lanes into the bits of a number."""
    return builder.zext(builder.bitcast(truth_values, ir.IntType(LANES)), _I64)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _entry(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.load(_address(context, builder, kind, array, index))


def _lanes(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Load adjacent entries; they need not be aligned."""
    place = _address(context, builder, kind, array, index)
    entry = place.type.pointee
    loaded = builder.load(builder.bitcast(place, ir.VectorType(entry, LANES).as_pointer()))
    loaded.align = entry.width // 8  # the entries may begin anywhere
    return loaded


def _broadcast(builder: Any, value: Any) -> Any:
    """Return a vector with the same value in all lanes."""
    undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    lane = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(lane, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


_LINE_BYTES: Final = 128
"""Bytes that processors fetch together: two adjacent lines of a cache."""


def aligned_zeros[T: np.generic](shape: int | tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
    """Return an array of zeros that shares no cache line with other memory.

    A processor that writes to a cache line takes it from other processors. Small arrays are often close together, so
    threads that write to different arrays would wait for each other. Walks with two threads would take a fifth more CPU
    time.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(size + 2 * _LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % _LINE_BYTES
    aligned: npt.NDArray[Any] = memory[first : first + size].view(kind).reshape(shape)
    return aligned
