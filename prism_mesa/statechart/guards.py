"""Guards as data: expressions over fields, from which the scalar guard, the column kernel, the static
checks and the label in diagrams are all made. An expression only reads.

>>> from types import SimpleNamespace as Row
>>> keen = F.post.relevance > F.agent.high_threshold
>>> keen(Row(high_threshold=0.6), {"relevance": 0.7})
True
>>> print(keen | ~(F.post.velocity <= 100))
post.relevance > agent.high_threshold or not post.velocity <= 100
"""

import ast
from collections.abc import Callable, Mapping
from copy import deepcopy
from math import isfinite
from typing import Any, Final, NoReturn

from prism_mesa.errors import ChartError

NEEDS_ORACLE: Final = "needs_oracle"
"""What a guard returns to leave the choice among the declared targets to the oracle."""

_NUMBER_OPERATORS: dict[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div}


class Expression:
    """An expression over fields of the agent and of the context. Build it from `F` with operators.

    Comparisons, ``+ - * /``, and ``& | ~`` for and, or, not. Both sides of ``&`` and ``|`` are always
    evaluated. ``a < F.post.x < b`` is refused: Python would drop half of it.
    """

    def __init__(self, tree: ast.expr, *, is_logical: bool = False) -> None:
        self.tree = tree
        self.is_logical = is_logical
        self._function: Callable[[Any, Any], Any] | None = None

    @property
    def function(self) -> Callable[[Any, Any], Any]:
        """``f(agent, context)`` by attribute access: on two objects one value, on columns an array."""
        if self._function is None:
            arguments = ast.arguments([], [ast.arg("agent"), ast.arg("post")], None, [], [], None, [])
            source = ast.Expression(ast.Lambda(arguments, _BitwiseLogic().visit(deepcopy(self.tree))))
            self._function = eval(compile(ast.fix_missing_locations(source), f"<guard {self}>", "eval"))
        return self._function

    def __call__(self, agent: Any, context: Any = None) -> Any:
        """Evaluate for one agent; `context` may be an object or a mapping."""
        return self.function(agent, readable(context))

    @property
    def kernel(self) -> Callable[[Any, Any], Any]:
        """`function` where it must fail on a mapping; self where it might read a dict's own attribute."""
        confused = {f"post.{name}" for name in dir(dict)} & self.fields
        return self if confused else self.function

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields it reads, as ``agent.x`` and ``post.y``."""
        return frozenset(ast.unparse(n) for n in ast.walk(self.tree) if isinstance(n, ast.Attribute))

    @property
    def constants(self) -> frozenset[float]:
        """The numbers in it."""
        found = (n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant))
        return frozenset(float(v) for v in found if isinstance(v, int | float))

    @property
    def texts(self) -> frozenset[str]:
        """The strings in it."""
        found = (n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant))
        return frozenset(v for v in found if isinstance(v, str))

    def __str__(self) -> str:
        return ast.unparse(self.tree)

    __repr__ = __str__

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_function": None}

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"'{self}' has no truth value until it is evaluated; combine expressions with & | ~, "
            "and write (a < F.post.x) & (F.post.x < b) for a chained comparison"
        )

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return self._compare(ast.Eq(), other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return self._compare(ast.NotEq(), other)

    def __lt__(self, other: object) -> "Expression":
        return self._compare(ast.Lt(), other)

    def __le__(self, other: object) -> "Expression":
        return self._compare(ast.LtE(), other)

    def __gt__(self, other: object) -> "Expression":
        return self._compare(ast.Gt(), other)

    def __ge__(self, other: object) -> "Expression":
        return self._compare(ast.GtE(), other)

    def __add__(self, other: object) -> "Expression":
        return _arithmetic("+", self, other)

    def __radd__(self, other: object) -> "Expression":
        return _arithmetic("+", other, self)

    def __sub__(self, other: object) -> "Expression":
        return _arithmetic("-", self, other)

    def __rsub__(self, other: object) -> "Expression":
        return _arithmetic("-", other, self)

    def __mul__(self, other: object) -> "Expression":
        return _arithmetic("*", self, other)

    def __rmul__(self, other: object) -> "Expression":
        return _arithmetic("*", other, self)

    def __truediv__(self, other: object) -> "Expression":
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: object) -> "Expression":
        return _arithmetic("/", other, self)

    def __and__(self, other: object) -> "Expression":
        return Expression(ast.BoolOp(ast.And(), [_truth(self), _truth(other)]), is_logical=True)

    def __or__(self, other: object) -> "Expression":
        return Expression(ast.BoolOp(ast.Or(), [_truth(self), _truth(other)]), is_logical=True)

    def __invert__(self) -> "Expression":
        return Expression(ast.UnaryOp(ast.Not(), _truth(self)), is_logical=True)

    def _compare(self, operator: ast.cmpop, other: object) -> "Expression":
        return Expression(ast.Compare(self.tree, [operator], [_tree(other)]), is_logical=True)


def _tree(value: object) -> ast.expr:
    if isinstance(value, Expression):
        return value.tree
    if isinstance(value, str) or (isinstance(value, int | float) and isfinite(value)):
        # plain values only: a str enum becomes its value
        return ast.Constant(value.value if hasattr(value, "value") else value)
    raise ChartError(f"a guard expression cannot hold {value!r}; use fields of F, finite numbers and strings")


def _truth(value: object) -> ast.expr:
    tree = _tree(value)
    logical = isinstance(value, bool) or (isinstance(value, Expression) and value.is_logical)
    return tree if logical else ast.Compare(tree, [ast.NotEq()], [ast.Constant(0)])


def _arithmetic(symbol: str, left: object, right: object) -> Expression:
    return Expression(ast.BinOp(_tree(left), _NUMBER_OPERATORS[symbol](), _tree(right)))


class _BitwiseLogic(ast.NodeTransformer):
    """Write and, or, not as ``& | ^ True``: the same value on bools, and arrays understand it too."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        joined = node.values[0]
        for value in node.values[1:]:
            joined = ast.BinOp(joined, operator, value)
        return joined

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return ast.BinOp(node.operand, ast.BitXor(), ast.Constant(True)) if isinstance(node.op, ast.Not) else node


class _Fields:
    """Attribute access makes a field: ``F.agent.energy``."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__"):
            raise AttributeError(name)
        return Expression(ast.Attribute(ast.Name(self._root, ast.Load()), name, ast.Load()))


class _Roots:
    """The two roots of field names."""

    agent: Final = _Fields("agent")
    post: Final = _Fields("post")


F: Final = _Roots()
"""``F.agent.x`` reads attribute x of the agent, ``F.post.x`` of the context (or key x of a mapping)."""


class _Mapped:
    """A mapping read by attribute."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = items

    def __getattr__(self, name: str) -> Any:
        try:
            return self._items[name]
        except KeyError:
            raise AttributeError(f"the context has no key {name!r}") from None


def readable(context: Any) -> Any:
    """Return `context` in a form whose fields are attributes."""
    return _Mapped(context) if isinstance(context, Mapping) else context
