"""Guard expressions as programs for a small register machine, which kernels run.

Each instruction applies an operation to two registers and writes to a third. The first registers are the readable
fields, followed by the constants of expressions and by intermediate results. Numbers are float64, truth values 0 and 1,
exactly as in the columns of an expression.
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
    """Concatenated programs: program p is instructions ``start[p]`` .. ``start[p + 1] - 1``.

    Attributes:
        code: Operations, uint8.
        left: Registers to read, uint32; `right` is the second one, if any.
        result: Registers to write, uint32; the last one written holds the result.
        start: Shape (number of programs + 1,), uint32.
        registers: Initial content of the registers, float64.
        reads_post: Whether a program reads the current post, uint8.
        used: Which fields any program reads, uint8.
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
    """Apply an operation to two numbers; comparisons and logic give 0 or 1."""
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
    """Return the result of a program, 0 or 1, or `FAULT`; the registers hold the fields."""
    value = 0.0
    for i in range(programs.start[program], programs.start[program + 1]):
        other = register[programs.right[i]]
        if programs.code[i] == DIVIDE and other == 0.0:
            return FAULT
        value = operated(programs.code[i], register[programs.left[i]], other)
        register[programs.result[i]] = value
    return 1 if value != 0.0 else 0
