"""The value that a guard must have for posts outside an agent's band."""

import ast
from typing import Final

from prism_mesa.statechart import Expression, F

IS_BELOW: Final = F.post.utility < F.agent.low_threshold
"""The post lies below the agent's band."""
IS_ABOVE: Final = F.post.utility > F.agent.high_threshold
"""The post lies above it."""

_THRESHOLDS: Final = frozenset({"agent.low_threshold", "agent.engagement_threshold", "agent.high_threshold"})
_BELOW: Final[dict[type[ast.cmpop], bool]] = {ast.Lt: True, ast.LtE: True, ast.Gt: False, ast.GtE: False}
"""What comparing utility with a threshold gives below the band; above it, the reverse."""


def is_certain(guard: Expression, *, below: bool) -> bool | None:
    """Return a guard's value for all posts below the band, or above it; None if comparing utility does not settle it.

    >>> is_certain(IS_ABOVE & (F.post.likes > 3), below=True), is_certain(IS_ABOVE & (F.post.likes > 3), below=False)
    (False, None)
    """
    return _value(guard.tree, below)


def _value(node: ast.expr, below: bool) -> bool | None:
    match node:
        case ast.BoolOp(op=operator, values=values):
            decisive, parts = isinstance(operator, ast.Or), [_value(value, below) for value in values]
            return decisive if decisive in parts else None if None in parts else not decisive
        case ast.UnaryOp(operand=operand):  # the only one is `not`
            value = _value(operand, below)
            return None if value is None else not value
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _BELOW:
            lies_below, sides = _BELOW[type(operator)] == below, (ast.unparse(left), ast.unparse(right))
            if sides[0] == "post.utility" and sides[1] in _THRESHOLDS:
                return lies_below
            if sides[1] == "post.utility" and sides[0] in _THRESHOLDS:
                return not lies_below
    return None
