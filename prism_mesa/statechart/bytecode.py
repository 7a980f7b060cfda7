"""Expressions compiled to programs for kernels (`prism_mesa.kernels.programs`)."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from prism_mesa.kernels.programs import (
    ADD,
    AND,
    DIVIDE,
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    MULTIPLY,
    NOT,
    NOT_EQUAL,
    OR,
    SUBTRACT,
    TRUTH,
    Programs,
)
from prism_mesa.statechart.guards import Expression

_COMPARISONS: Final[dict[type[ast.cmpop], int]] = {
    ast.Lt: LESS,
    ast.LtE: LESS_EQUAL,
    ast.Gt: GREATER,
    ast.GtE: GREATER_EQUAL,
    ast.Eq: EQUAL,
    ast.NotEq: NOT_EQUAL,
}
_ARITHMETIC: Final[dict[type[ast.operator], int]] = {
    ast.Add: ADD,
    ast.Sub: SUBTRACT,
    ast.Mult: MULTIPLY,
    ast.Div: DIVIDE,
}
_EXACT: Final = 2.0**53
"""Integers below it are exact in float64."""

_INT32: Final = 2.0**31
_LOGICAL: Final = ast.Compare | ast.BoolOp | ast.UnaryOp

INEXACT: Final = float("inf")
"""The bound of values that are no integers."""


@dataclass(frozen=True)
class Field:
    """A field that programs can read.

    Attributes:
        place: Its number.
        names: The names of its codes, if it is a category; else empty.
        whole: Whether it holds integers of at most 32 bits.
    """

    place: int
    names: tuple[str, ...] = ()
    whole: bool = False


class _CannotError(Exception):
    """An expression has no program."""


type _Value = tuple[int, float]
"""The register of a value, and its largest absolute value, `INEXACT` if it is no integer."""


class Programmer:
    """Compiles expressions, each to a program, into one `Programs`."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._code: list[tuple[int, int, int, int]] = []
        self._start = [0]
        self._registers = [0.0] * len(fields)
        self._reads_post: list[bool] = []

    def add(self, expression: Expression) -> int | None:
        """Return the number of an expression's program, or None if it has none.

        It has none if it reads an unknown field, compares texts other than with == and !=, or may leave the integers
        that float64 holds.
        """
        length = len(self._code)
        try:
            register, _ = self._write(expression.tree)
        except _CannotError:
            del self._code[length:]
            return None
        if len(self._code) == length:  # a single field or number
            self._put(TRUTH, register)
        self._start.append(len(self._code))
        self._reads_post.append(expression.reads_post)
        return len(self._start) - 2

    def programs(self) -> Programs:
        """Return all programs so far."""
        code, left, right, result = np.array(self._code, np.uint32).reshape(-1, 4).T.copy()
        used = np.zeros(len(self._registers), np.uint8)
        used[left] = used[right] = 1
        return Programs(
            code.astype(np.uint8),
            left,
            right,
            result,
            np.array(self._start, np.uint32),
            np.array(self._registers, np.float64),
            np.array(self._reads_post, np.uint8),
            used[: len(self._fields)].copy(),
        )

    def _put(self, code: int, left: int, right: int | None = None) -> int:
        """Add an instruction and return the register of its result."""
        self._registers.append(0.0)
        result = len(self._registers) - 1
        self._code.append((code, left, left if right is None else right, result))
        return result

    def _constant(self, value: float) -> int:
        self._registers.append(value)
        return len(self._registers) - 1

    def _write(self, node: ast.expr) -> _Value:
        """Compile a node."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                if isinstance(value, int) and abs(value) >= _EXACT:
                    raise _CannotError
                return self._constant(float(value)), abs(value) if isinstance(value, int) else INEXACT
            case ast.Attribute(value=ast.Name(id=whose), attr=name):
                field = self._fields.get(f"{whose}.{name}")
                if field is None or field.names:
                    raise _CannotError
                return field.place, _INT32 if field.whole else INEXACT
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                sides = self._category(left, operator, right) or (self._write(left)[0], self._write(right)[0])
                return self._put(_COMPARISONS[type(operator)], *sides), 1.0
            case ast.BoolOp(op=operator, values=[left, right]):
                code = AND if isinstance(operator, ast.And) else OR
                return self._put(code, self._truth(left), self._truth(right)), 1.0
            case ast.UnaryOp(operand=operand):  # the only one is `not`
                return self._put(NOT, self._truth(operand)), 1.0
            case ast.BinOp(left=left, op=operator, right=right):
                return self._arithmetic(left, operator, right)
        raise _CannotError

    def _truth(self, node: ast.expr) -> int:
        register, _ = self._write(node)
        return register if isinstance(node, _LOGICAL) else self._put(TRUTH, register)

    def _arithmetic(self, left: ast.expr, operator: ast.operator, right: ast.expr) -> _Value:
        (left_register, left_size), (right_register, right_size) = self._write(left), self._write(right)
        register = self._put(_ARITHMETIC[type(operator)], left_register, right_register)
        if isinstance(operator, ast.Div):
            return register, INEXACT
        size = left_size * right_size if isinstance(operator, ast.Mult) else left_size + right_size
        if _EXACT <= size < INEXACT:
            raise _CannotError
        return register, size

    def _category(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> tuple[int, int] | None:
        """Return the registers of ``field == "text"``, in either order; None if there is no text and no category."""
        if isinstance(left, ast.Constant):
            left, right = right, left
        field = self._fields.get(ast.unparse(left)) if isinstance(left, ast.Attribute) else None
        text = right.value if isinstance(right, ast.Constant) else None
        names = () if field is None else field.names
        if not isinstance(text, str) and not names:
            return None
        if field is None or not names or not isinstance(text, str) or not isinstance(operator, ast.Eq | ast.NotEq):
            raise _CannotError
        return field.place, self._constant(float(names.index(text)) if text in names else -1.0)
