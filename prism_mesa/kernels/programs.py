"""Guard expressions as programs of a small register machine, which kernels run.

Each instruction applies an operation to two registers and writes to a third. The first registers are the readable
fields, followed by the constants of expressions and by intermediate results. All values are float64; truth values are 0
and 1, as in the columns of an expression.
"""

from typing import Any, Final, NamedTuple

from prism_mesa.arrays import Floats, UInt8, UInt32
from prism_mesa.kernels.compiling import early_inline_kernel, inline_kernel

LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL = range(6)
ADD, SUBTRACT, MULTIPLY, DIVIDE, AND, OR, NOT, TRUTH = range(6, 14)

FAULT: Final = -1
"""The result of a program in which Python would raise an error: a division by zero."""


class Programs(NamedTuple):
    """Concatenated programs: program p is instructions ``start[p]`` .. ``start[p + 1] - 1``.

    Attributes:
        code: Operations, uint8.
        left, right: Registers to read, uint32; some operations ignore `right`.
        result: Registers to write, uint32; the last instruction writes the result of the program.
        start: Shape (number of programs + 1,), uint32.
        registers: Initial content of the registers, float64.
        reads_post: Whether a program reads the current post, uint8.
        used: Whether any program reads a field, uint8.
    """

    code: UInt8
    left: UInt32
    right: UInt32
    result: UInt32
    start: UInt32
    registers: Floats
    reads_post: UInt8
    used: UInt8


@inline_kernel
def operate(code: Any, left: Any, right: Any) -> Any:
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


@early_inline_kernel
def run_program(program: Any, programs: Programs, registers: Floats) -> Any:
    """Return the result of a program: 0, 1 or `FAULT`. The fields must be in the registers."""
    value = 0.0
    for i in range(programs.start[program], programs.start[program + 1]):
        right = registers[programs.right[i]]
        if programs.code[i] == DIVIDE and right == 0.0:
            return FAULT
        value = operate(programs.code[i], registers[programs.left[i]], right)
        registers[programs.result[i]] = value
    return 1 if value != 0.0 else 0
