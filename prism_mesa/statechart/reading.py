"""Expressions written as text, for configurations: read, never run as code."""

import ast
from math import isfinite
from typing import Final

from prism_mesa.statechart.guards import Expression

MOST_CHARACTERS: Final = 1000
_DEEPEST: Final = 100
_COMPARISONS: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LOGIC: Final[dict[type[ast.operator], ast.boolop]] = {ast.BitAnd: ast.And(), ast.BitOr: ast.Or()}
_WORDS: Final = {"true": True, "false": False}


def expression_of(text: str) -> Expression:
    """Return the expression that a text writes.

    Fields are those of ``agent`` and ``post``; beside them stand numbers, texts, true and false, comparisons,
    ``+ - * /``, and ``and or not`` (or ``& | ~``).

    >>> expression_of("agent.leaning > 0.5 and not agent.party == 'left'")
    agent.leaning > 0.5 and (not agent.party == 'left')

    Raises:
        ValueError: If it writes anything else.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"an expression of {len(text):,} characters is too long (at most {MOST_CHARACTERS:,})")
    try:
        read = _read(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"cannot be read as an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("is too deeply nested for an expression") from None
    if _depth(read) > _DEEPEST:  # what compiles it goes down as deep, from wherever it is called
        raise ValueError("is too deeply nested for an expression")
    return Expression(read)


def _depth(tree: ast.expr) -> int:
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [part for one in level for part in ast.iter_child_nodes(one)]  # type: ignore[misc]
    return depth


def _read(node: ast.expr) -> ast.expr:
    """Return a node as `F` would make it."""
    match node:
        case ast.Attribute(value=ast.Name(id="agent" | "post" as root), attr=name) if not name.startswith("_"):
            return ast.Attribute(ast.Name(root, ast.Load()), name, ast.Load())
        case ast.Constant(value=bool() | int() | str() as value):
            return ast.Constant(value)
        case ast.Constant(value=float() as value) if isfinite(value):
            return ast.Constant(value)
        case ast.Name(id=word) if word in _WORDS:
            return ast.Constant(_WORDS[word])
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return ast.Constant(-value)
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return ast.UnaryOp(ast.Not(), _read(operand))
        case ast.BoolOp(op=operator, values=[*values]):
            return _all_of(operator, [_read(value) for value in values])
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _LOGIC:
            return ast.BoolOp(_LOGIC[type(operator)], [_read(left), _read(right)])
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _ARITHMETIC):
            return ast.BinOp(_read(left), operator, _read(right))
        case ast.Compare(left=left, ops=[*operators], comparators=[*others]) if all(
            isinstance(one, _COMPARISONS) for one in operators
        ):
            for side in (left, *others):
                if isinstance(side, ast.BinOp) and type(side.op) in _LOGIC:  # as Python reads agent.x > 1 & agent.y > 2
                    raise ValueError(
                        f"expression: {ast.unparse(side)[:60]}: put ( ) around what & and | join, or say and, or"
                    )
            sides = [_read(side) for side in (left, *others)]
            pairs = zip(sides, operators, sides[1:], strict=False)
            return _all_of(ast.And(), [ast.Compare(one, [operator], [other]) for one, operator, other in pairs])
    raise ValueError(
        f"{ast.unparse(node)[:60]!r} can stand in no expression (agent.x, numbers, texts, < > == and or not)"
    )


def _all_of(operator: ast.boolop, parts: list[ast.expr]) -> ast.expr:
    """Return several parts combined, two at a time."""
    found = parts[0]
    for part in parts[1:]:
        found = ast.BoolOp(operator, [found, part])
    return found
