"""Compile expressions to programs for kernels (`prism_mesa.kernels.programs`)."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from prism_mesa.kernels import programs as ops
from prism_mesa.statechart.guards import Expression, field_name

_COMPARISONS: Final[dict[type[ast.cmpop], int]] = {
    ast.Lt: ops.LESS,
    ast.LtE: ops.LESS_EQUAL,
    ast.Gt: ops.GREATER,
    ast.GtE: ops.GREATER_EQUAL,
    ast.Eq: ops.EQUAL,
    ast.NotEq: ops.NOT_EQUAL,
}
_ARITHMETIC: Final[dict[type[ast.operator], int]] = {
    ast.Add: ops.ADD,
    ast.Sub: ops.SUBTRACT,
    ast.Mult: ops.MULTIPLY,
    ast.Div: ops.DIVIDE,
}
_MAX_EXACT: Final = 2.0**53
"""float64 represents smaller integers exactly."""
_INT32: Final = 2.0**31
_LOGICAL: Final = ast.Compare | ast.BoolOp | ast.UnaryOp
_INEXACT: Final = float("inf")
"""The size of values that may have a fraction."""


@dataclass(frozen=True)
class Field:
    """A field that programs can read.

    Attributes:
        register: The number of the field's register.
        names: The names of the codes if the field is a category, else empty.
        is_int32: Whether the field holds integers of at most 32 bits.
    """

    register: int
    names: tuple[str, ...] = ()
    is_int32: bool = False


class _UnsupportedExpressionError(Exception):
    """The expression cannot be compiled."""


type _Value = tuple[int, float]
"""A value's register, and its maximum absolute value (`_INEXACT` if it may have a fraction)."""


class Compiler:
    """Compiles expressions into one `Programs` object with a program for each expression."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._code: list[tuple[int, int, int, int]] = []
        self._start = [0]
        self._registers = [0.0] * len(fields)
        self._reads_post: list[bool] = []

    def add(self, expression: Expression) -> int | None:
        """Compile an expression and return its program's number, or None if the expression cannot be compiled.

        That is so if it reads an unknown field, compares strings by order, or may exceed the integers that float64
        represents exactly.
        """
        length = len(self._code)
        try:
            register, _ = self._compile(expression.tree)
        except _UnsupportedExpressionError:
            del self._code[length:]
            return None
        if len(self._code) == length:  # a single field or number
            self._emit(ops.TRUTH, register)
        self._start.append(len(self._code))
        self._reads_post.append(expression.reads_post)
        return len(self._start) - 2

    def programs(self) -> ops.Programs:
        """Return all programs compiled so far."""
        code, left, right, result = np.array(self._code, np.uint32).reshape(-1, 4).T.copy()
        used = np.zeros(len(self._registers), np.uint8)
        used[left] = used[right] = 1
        return ops.Programs(
            code.astype(np.uint8),
            left,
            right,
            result,
            np.array(self._start, np.uint32),
            np.array(self._registers, np.float64),
            np.array(self._reads_post, np.uint8),
            used[: len(self._fields)].copy(),
        )

    def _emit(self, code: int, left: int, right: int | None = None) -> int:
        """Add an instruction and return the register of its result."""
        self._registers.append(0.0)
        result = len(self._registers) - 1
        self._code.append((code, left, left if right is None else right, result))
        return result

    def _add_constant(self, value: float) -> int:
        self._registers.append(value)
        return len(self._registers) - 1

    def _compile(self, node: ast.expr) -> _Value:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                if isinstance(value, int) and abs(value) >= _MAX_EXACT:
                    raise _UnsupportedExpressionError
                return self._add_constant(float(value)), abs(value) if isinstance(value, int) else _INEXACT
            case ast.Attribute():
                field = self._fields.get(field_name(node))
                if field is None or field.names:
                    raise _UnsupportedExpressionError
                return field.register, _INT32 if field.is_int32 else _INEXACT
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                operands = self._category(left, operator, right) or (self._compile(left)[0], self._compile(right)[0])
                return self._emit(_COMPARISONS[type(operator)], *operands), 1.0
            case ast.BoolOp(op=operator, values=[left, right]):
                code = ops.AND if isinstance(operator, ast.And) else ops.OR
                return self._emit(code, self._compile_truth(left), self._compile_truth(right)), 1.0
            case ast.UnaryOp(operand=operand):  # `not` is the only unary operator
                return self._emit(ops.NOT, self._compile_truth(operand)), 1.0
            case ast.BinOp(left=left, op=operator, right=right):
                return self._compile_arithmetic(left, operator, right)
        raise _UnsupportedExpressionError

    def _compile_truth(self, node: ast.expr) -> int:
        register, _ = self._compile(node)
        return register if isinstance(node, _LOGICAL) else self._emit(ops.TRUTH, register)

    def _compile_arithmetic(self, left: ast.expr, operator: ast.operator, right: ast.expr) -> _Value:
        (left_register, left_size), (right_register, right_size) = self._compile(left), self._compile(right)
        register = self._emit(_ARITHMETIC[type(operator)], left_register, right_register)
        if isinstance(operator, ast.Div):
            return register, _INEXACT
        size = left_size * right_size if isinstance(operator, ast.Mult) else left_size + right_size
        if _MAX_EXACT <= size < _INEXACT:
            raise _UnsupportedExpressionError
        return register, size

    def _category(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> tuple[int, int] | None:
        """Return the operands of ``field == "text"`` or ``"text" == field``; None without a string or a category."""
        if isinstance(left, ast.Constant):
            left, right = right, left
        field = self._fields.get(field_name(left)) if isinstance(left, ast.Attribute) else None
        string = right.value if isinstance(right, ast.Constant) else None
        names = () if field is None else field.names
        if not isinstance(string, str) and not names:
            return None
        if field is None or not names or not isinstance(string, str) or not isinstance(operator, ast.Eq | ast.NotEq):
            raise _UnsupportedExpressionError
        return field.register, self._add_constant(float(names.index(string)) if string in names else -1.0)
