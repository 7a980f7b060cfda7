"""Guards as expressions that run on one agent or on columns, and that checks and labels can read.

>>> from types import SimpleNamespace as Row
>>> keen = F.post.relevance > F.agent.high_threshold
>>> keen(Row(high_threshold=0.6), {"relevance": 0.7})
True
>>> print(keen | ~(F.post.velocity <= 100))
post.relevance > agent.high_threshold or not post.velocity <= 100
"""

import ast
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from enum import Enum
from functools import cached_property, reduce
from math import isfinite
from typing import Any, Final, NoReturn

import numpy as np

from prism_mesa.errors import ChartError
from prism_mesa.statechart.states import state_name

NEEDS_ORACLE: Final = "needs_oracle"
"""A guard returns this value to let the oracle choose among the declared targets."""

type _Operator = Callable[["Expression", object], "Expression"]


def _comparison_method(operator: type[ast.cmpop]) -> _Operator:
    return lambda left, right: Expression(ast.Compare(left.tree, [operator()], [_to_tree(right)]))


def _arithmetic_methods(operator: type[ast.operator]) -> tuple[_Operator, _Operator]:
    """Return two methods of an operator: with the expression on the left, and with it on the right."""
    return (
        lambda left, right: Expression(ast.BinOp(left.tree, operator(), _to_tree(right))),
        lambda right, left: Expression(ast.BinOp(_to_tree(left), operator(), right.tree)),
    )


class Expression:
    """An expression over fields of the agent and the context, built from `F` with operators.

    The operators are comparisons, ``+ - * /``, and ``& | ~`` for and, or, not. Both sides of ``&`` and ``|`` are always
    evaluated. ``a < F.post.x < b`` raises, because Python would ignore a comparison. Integers are exact up to 2**53.
    """

    def __init__(self, tree: ast.expr) -> None:
        self.tree = tree
        self._function: Callable[[Any, Any], Any] | None = None

    @property
    def function(self) -> Callable[[Any, Any], Any]:
        """A function of agent and context: it returns a value for two objects, and an array for columns."""
        if self._function is None:
            arguments = ast.arguments([], [ast.arg("agent"), ast.arg("context")], None, [], [], None, [])
            source = ast.Expression(ast.Lambda(arguments, _Elementwise().visit(deepcopy(self.tree))))
            code = compile(ast.fix_missing_locations(source), f"<guard {self}>", "eval")
            self._function = eval(code, _FUNCTIONS)  # noqa: S307 - only `F` makes the tree
        return self._function

    def __call__(self, agent: Any, context: Any = None) -> Any:
        """Evaluate for one agent; `context` may be an object or a mapping."""
        return self.function(agent, with_attributes(context))

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the fields that the expression reads, as ``agent.x``, ``model.y``, ``post.z`` (any context)."""
        return frozenset(field_name(n) for n in ast.walk(self.tree) if isinstance(n, ast.Attribute))

    @property
    def reads_post(self) -> bool:
        """Whether the expression reads a field of the context."""
        return any(name.startswith("post.") for name in self.fields)

    @cached_property
    def constants(self) -> frozenset[float | str]:
        """The numbers and strings in the expression."""
        values = (n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant))
        return frozenset(float(v) if isinstance(v, int | float) else str(v) for v in values)

    @cached_property
    def terms(self) -> tuple["Expression", ...]:
        """The comparisons and arithmetic operations in the expression, each as an expression."""
        return tuple(Expression(n) for n in ast.walk(self.tree) if isinstance(n, ast.Compare | ast.BinOp))

    @cached_property
    def conjuncts(self) -> tuple["Expression", ...]:
        """The parts of a conjunction or of a negated disjunction; otherwise the expression itself."""
        match self.tree:
            case ast.BoolOp(op=ast.And(), values=values):
                parts = [Expression(value) for value in values]
            case ast.UnaryOp(operand=ast.BoolOp(op=ast.Or(), values=values)):
                parts = [~Expression(value) for value in values]
            case _:
                return (self,)
        return tuple(part for expression in parts for part in expression.conjuncts)

    def __str__(self) -> str:
        return ast.unparse(self.tree)

    __repr__ = __str__

    def __getstate__(self) -> dict[str, Any]:
        return {"tree": self.tree, "_function": None}

    def __bool__(self) -> NoReturn:
        remedy = "combine expressions with & | ~, and write (a < F.post.x) & (F.post.x < b)"
        raise TypeError(f"'{self}' has no truth value: {remedy}")

    __hash__ = object.__hash__

    __eq__ = _comparison_method(ast.Eq)  # type: ignore[assignment]
    __ne__ = _comparison_method(ast.NotEq)  # type: ignore[assignment]
    __lt__ = _comparison_method(ast.Lt)
    __le__ = _comparison_method(ast.LtE)
    __gt__ = _comparison_method(ast.Gt)
    __ge__ = _comparison_method(ast.GtE)
    __add__, __radd__ = _arithmetic_methods(ast.Add)
    __sub__, __rsub__ = _arithmetic_methods(ast.Sub)
    __mul__, __rmul__ = _arithmetic_methods(ast.Mult)
    __truediv__, __rtruediv__ = _arithmetic_methods(ast.Div)

    def __and__(self, other: object) -> "Expression":
        return Expression(ast.BoolOp(ast.And(), [self.tree, _to_tree(other)]))

    def __or__(self, other: object) -> "Expression":
        return Expression(ast.BoolOp(ast.Or(), [self.tree, _to_tree(other)]))

    def __invert__(self) -> "Expression":
        return Expression(ast.UnaryOp(ast.Not(), self.tree))


def _to_tree(value: object) -> ast.expr:
    if isinstance(value, Expression):
        return value.tree
    if isinstance(value, Enum) and not isinstance(value, str):
        return ast.Constant(str(value.value), kind=_FROM_ENUM)
    python_value = value.value if isinstance(value, Enum) else value.item() if isinstance(value, np.generic) else value
    if isinstance(python_value, str | bool | int) or (isinstance(python_value, float) and isfinite(python_value)):
        return ast.Constant(python_value)
    raise ChartError(f"a guard expression cannot contain {value!r}; use fields of F, finite numbers and strings")


_FROM_ENUM: Final = "enum"
"""The kind of constants from enums whose members are not strings."""


def field_name(node: ast.expr) -> str:
    """Return the name of a field in `Expression.fields`; a context is called a post."""
    return re.sub(r"^context\.", "post.", ast.unparse(node))


def _as_truth_value(value: Any) -> Any:
    """Return whether `value` is true, element by element for a column."""
    if not isinstance(value, np.ndarray):
        return bool(value)
    if value.dtype.kind not in "biuf":
        raise TypeError(f"a column of {value.dtype} is neither true nor false")
    return value != 0


def _quotient(left: Any, right: Any) -> Any:
    """Return left / right; raise if any divisor is 0, even in cases where NumPy would not (nan / 0)."""
    is_zero = right == 0
    if is_zero.any() if isinstance(is_zero, np.ndarray) else is_zero:
        raise ZeroDivisionError("division by zero")
    return left / right


_FUNCTIONS: Final = {"truth": _as_truth_value, "quotient": _quotient, "text": state_name}


class _Elementwise(ast.NodeTransformer):
    """Rewrites an expression so that columns give the same values as single rows.

    The operators and, or, not become ``& | ^ True`` between truth values. In arithmetic, truth values become 0 or 1,
    because ``True + True`` is True in NumPy.
    """

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node.value:
            case ast.Name(id="post"):
                node.value = ast.Name("context", ast.Load())
            case ast.Name(id="model"):
                node.value = ast.Attribute(ast.Name("agent", ast.Load()), "model", ast.Load())
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = (node.left, node.comparators[0])
        is_enum = any(isinstance(side, ast.Constant) and side.kind == _FROM_ENUM for side in sides)
        is_enum |= any(isinstance(side, ast.Attribute) and side.attr == "state" for side in sides)
        left, right = (self.visit(side) for side in sides)
        if is_enum:
            left, right = (ast.Call(ast.Name("text", ast.Load()), [side], []) for side in (left, right))
        return ast.Compare(left, node.ops, [right])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        left, right = (self._as_truth(value) for value in node.values)
        return ast.BinOp(left, operator, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return ast.BinOp(self._as_truth(node.operand), ast.BitXor(), ast.Constant(True))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self._as_number(node.left), self._as_number(node.right)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("quotient", ast.Load()), [left, right], [])
        return ast.BinOp(left, node.op, right)

    def _as_truth(self, node: ast.expr) -> ast.expr:
        value: ast.expr = self.visit(node)
        return value if _is_logical(node) else ast.Call(ast.Name("truth", ast.Load()), [value], [])

    def _as_number(self, node: ast.expr) -> ast.expr:
        value: ast.expr = self.visit(node)
        return ast.BinOp(value, ast.Mult(), ast.Constant(1)) if _is_logical(node) else value


def _is_logical(node: ast.expr) -> bool:
    # `not` is the only unary operator
    is_truth_value = isinstance(node, ast.Constant) and isinstance(node.value, bool)
    return is_truth_value or isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)


class _Fields:
    """Creates expressions by attribute access: ``F.agent.energy``."""

    def __init__(self, root: str) -> None:
        self.__root = root  # mangled, here and below, because a field may have any name

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__"):
            raise AttributeError(name)
        return Expression(ast.Attribute(ast.Name(self.__root, ast.Load()), name, ast.Load()))


class _Roots:
    agent: Final = _Fields("agent")
    post: Final = _Fields("post")
    context: Final = _Fields("context")
    model: Final = _Fields("model")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"F has no {name!r}; write F.agent.{name}, F.context.{name} or F.model.{name}")


F: Final = _Roots()
"""``F.agent.x`` reads attribute x of the agent; ``F.context.x`` reads attribute (or key) x of the context, which is a
post on the platform (``F.post.x`` is the same); ``F.model.x`` reads attribute x of the agent's model."""


class _MappingReader:
    """Reads the items of a mapping as attributes."""

    __slots__ = ("__items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        self.__items = items

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__items[name]
        except KeyError:
            raise AttributeError(f"the context has no key {name!r}") from None


def with_attributes(context: Any) -> Any:
    """Return an object with the fields of `context` as attributes."""
    return _MappingReader(context) if isinstance(context, Mapping) else context


MAX_LENGTH: Final = 1000
_MAX_DEPTH: Final = 100
_COMPARISONS: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LOGIC: Final[dict[type[ast.operator], ast.boolop]] = {ast.BitAnd: ast.And(), ast.BitOr: ast.Or()}
_TRUTH_VALUES: Final = {"true": True, "false": False}


def parse_expression(text: str) -> Expression:
    """Parse an expression.

    The text may contain fields of ``agent`` and ``post``, numbers, strings, true and false, comparisons, ``+ - * /``,
    and ``and or not`` (or ``& | ~``).

    >>> parse_expression("agent.leaning > 0.5 and not agent.party == 'left'")
    agent.leaning > 0.5 and (not agent.party == 'left')

    Raises:
        ValueError: If the text contains anything else.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression of {len(text):,} characters is too long (at most {MAX_LENGTH:,})")
    try:
        tree = _rebuild_node(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"cannot be read as an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("is too deeply nested for an expression") from None
    nodes: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):  # compiling recurses once per level
        nodes = [part for node in nodes for part in ast.iter_child_nodes(node)]
    if nodes:
        raise ValueError("is too deeply nested for an expression")
    return Expression(tree)


def _rebuild_node(node: ast.expr) -> ast.expr:
    """Return a node as `F` would build it."""
    match node:
        case ast.Attribute(value=ast.Name(id="agent" | "post" as root), attr=name) if not name.startswith("_"):
            return ast.Attribute(ast.Name(root, ast.Load()), name, ast.Load())
        case ast.Constant(value=bool() | int() | str() as value):
            return ast.Constant(value)
        case ast.Constant(value=float() as value) if isfinite(value):
            return ast.Constant(value)
        case ast.Name(id=word) if word in _TRUTH_VALUES:
            return ast.Constant(_TRUTH_VALUES[word])
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return ast.Constant(-value)
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return ast.UnaryOp(ast.Not(), _rebuild_node(operand))
        case ast.BoolOp(op=operator, values=[*values]):
            return _combine(operator, [_rebuild_node(value) for value in values])
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _LOGIC:
            return ast.BoolOp(_LOGIC[type(operator)], [_rebuild_node(left), _rebuild_node(right)])
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _ARITHMETIC):
            return ast.BinOp(_rebuild_node(left), operator, _rebuild_node(right))
        case ast.Compare(left=left, ops=[*operators], comparators=[*right_sides]) if all(
            isinstance(operator, _COMPARISONS) for operator in operators
        ):
            for side in (left, *right_sides):
                if isinstance(side, ast.BinOp) and type(side.op) in _LOGIC:  # 1 & agent.y in agent.x > 1 & agent.y > 2
                    remedy = "put ( ) around both sides, or write and, or"
                    raise ValueError(f"expression: {ast.unparse(side)[:60]}: {remedy}")
            operands = [_rebuild_node(side) for side in (left, *right_sides)]
            pairs = zip(operands, operators, operands[1:], strict=False)
            return _combine(ast.And(), [ast.Compare(first, [operator], [second]) for first, operator, second in pairs])
    allowed = "agent.x, numbers, texts, < > == and or not"
    raise ValueError(f"{ast.unparse(node)[:60]!r} is not allowed in an expression ({allowed})")


def _combine(operator: ast.boolop, parts: list[ast.expr]) -> ast.expr:
    return reduce(lambda left, right: ast.BoolOp(operator, [left, right]), parts)
