"""Guard expressions as programs for a small register machine, run inside kernels.

An instruction writes an operation on two registers into a third. The first registers are the fields that can be read;
after them come the numbers of the expressions, and room for what is worked out. Numbers are float64, truth values 0
and 1, exactly as in the columns of an expression.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import early_part_of_kernels, part_of_kernels

(
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    EQUAL,
    NOT_EQUAL,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    AND,
    OR,
    NOT,
    TRUTH,
) = range(14)

FAULT: Final = -1
"""What a program gives where Python would raise: a division by zero."""


class Programs(NamedTuple):
    """Many programs one after the other: program p is instructions ``start[p]`` .. ``start[p + 1] - 1``.

    Attributes:
        code: Operations, uint8.
        left: Registers that they read, uint32; `right` the second one, if there is one.
        result: Registers that they write, uint32; what the last one writes is what the program gives.
        start: Shape (number of programs + 1,), uint32.
        registers: What the registers hold before anything is read, float64.
        reads_post: Whether a program reads the post at hand, uint8.
        used: Which fields any of them reads, uint8.
    """

    code: npt.NDArray[np.uint8]
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    result: npt.NDArray[np.uint32]
    start: npt.NDArray[np.uint32]
    registers: npt.NDArray[np.float64]
    reads_post: npt.NDArray[np.uint8]
    used: npt.NDArray[np.uint8]


@part_of_kernels
def operated(code: Any, left: Any, right: Any) -> Any:
    """Return an operation on two numbers; comparisons and logic give 0 or 1."""
    if code == GREATER:
        return 1.0 if left > right else 0.0
    if code == LESS:
        return 1.0 if left < right else 0.0
    if code == LESS_EQUAL:
        return 1.0 if left <= right else 0.0
    if code == GREATER_EQUAL:
        return 1.0 if left >= right else 0.0
    if code == EQUAL:
        return 1.0 if left == right else 0.0
    if code == NOT_EQUAL:
        return 1.0 if left != right else 0.0
    if code == AND:
        return left * right
    if code == OR:
        return max(left, right)
    if code == NOT:
        return 1.0 - left
    if code == TRUTH:
        return 1.0 if left != 0.0 else 0.0
    if code == ADD:
        return left + right
    if code == SUBTRACT:
        return left - right
    if code == MULTIPLY:
        return left * right
    return left / right


@early_part_of_kernels
def run_program(program: Any, programs: Programs, register: npt.NDArray[np.float64]) -> Any:
    """Return whether a program holds, 0 or 1, or `FAULT`; the registers hold the fields."""
    value = 0.0
    for i in range(programs.start[program], programs.start[program + 1]):
        other = register[programs.right[i]]
        if programs.code[i] == DIVIDE and other == 0.0:
            return FAULT
        value = operated(programs.code[i], register[programs.left[i]], other)
        register[programs.result[i]] = value
    return 1 if value != 0.0 else 0
