"""Plain guards over columns: a guard runs once for many rows, and apart for the halves where it would decide otherwise.

It never runs over columns what might do more than read, or give a row another answer than its own; it says so instead.
"""

import dis
import operator
from collections import ChainMap, Counter
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from prism_mesa.statechart.statechart import Statechart, guard_value
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.transitions import Transition

if TYPE_CHECKING:
    from prism_mesa.statechart.batch import Columns

type Values = npt.NDArray[np.int8]
type Guard = Callable[[Any, Any], Any]
type Operator = Callable[[Any, Any], Any]

BY_ROW: Final = -1
"""The row must say, as it is one of few or raises; `UNABLE`: it must, as columns cannot run the guard."""
UNABLE: Final = -2

FEW: Final = 16
PROBES: Final = 128
EXACT: Final = 2**53
"""Below it whole numbers are the same in Python, in int64 and in double precision."""

_PLAIN: Final = frozenset({bool, int, float, str, AgentState, type(None)})
_PURE: Final = (abs, max, min, bool, AgentState)
_STEPS: Final = frozenset(
    """
    RESUME NOP CACHE EXTENDED_ARG COPY_FREE_VARS NOT_TAKEN COPY SWAP POP_TOP RETURN_VALUE RETURN_CONST
    LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST LOAD_CONST LOAD_SMALL_INT LOAD_GLOBAL LOAD_DEREF LOAD_ATTR
    BINARY_OP COMPARE_OP CONTAINS_OP UNARY_NEGATIVE UNARY_NOT TO_BOOL BUILD_TUPLE CALL
    JUMP_FORWARD POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE
    """.split()
)
"""Steps of bytecode (3.12 to 3.14) that neither write, loop, catch nor ask for identity; any other means rows."""

_tried: Final[WeakKeyDictionary[Statechart, Counter[Transition]]] = WeakKeyDictionary()
"""How often a chart's guards ran over columns; `UNABLE` for one that rows have contradicted."""


def plain_values(
    chart: Statechart, transition: Transition, guard: Guard, agents: "Columns", contexts: "Columns", n: int
) -> Values:
    """Return what `split_values` does, having compared some rows the 1st, 2nd, 4th, 8th ... time that the guard runs.

    A guard that gave a row another value than its own has to run by row from then on.
    """
    tried = _tried.setdefault(chart, Counter())
    if tried[transition] == UNABLE:
        return np.full(n, UNABLE, np.int8)
    values = split_values(guard, agents, contexts, n)
    if (values >= 0).any():
        tried[transition] += 1
        if tried[transition].bit_count() == 1 and not _as_rows(guard, agents, contexts, values):
            tried[transition] = UNABLE
            values[:] = UNABLE
    return values


def split_values(guard: Guard, agents: "Columns", contexts: "Columns", n: int, few: int = FEW) -> Values:
    """Return what a guard gives in each of `n` rows: FALSE, TRUE or NEEDS; `BY_ROW` or `UNABLE` where rows must say.

    Where rows decide differently (in an ``if``, an ``and``, a divisor of 0) they run on apart, from the start; fewer
    than `few` of them are left to rows.
    """
    if not only_reads(guard):
        return np.full(n, UNABLE, np.int8)
    overridden = getattr(agents, "overridden", None)
    with np.errstate(all="ignore"):
        if overridden is None or not (own := overridden()).any():
            return _part(guard, agents, contexts, n, few)
        values, rows = np.full(n, BY_ROW, np.int8), np.flatnonzero(~own)
        values[rows] = _part(guard, agents.take(rows), contexts.take(rows), len(rows), few)
        return values


def _part(guard: Guard, agents: "Columns", contexts: "Columns", n: int, few: int) -> Values:
    values, truth = np.full(n, BY_ROW, np.int8), None
    if n < few:
        return values
    try:
        result = guard(_Fields(agents, n), _Fields(contexts, n))
        values[:] = result._truth() if isinstance(result, _Numbers) else guard_value(result)
    except _Split as split:
        truth = split.truth
    except ZeroDivisionError:  # of every row: they will raise it, and are counted
        pass
    except Exception:  # no such column, or an operation that only a row knows
        values[:] = UNABLE
    if truth is not None:
        for half in (truth, ~truth):
            rows = np.flatnonzero(half)
            values[rows] = _part(guard, agents.take(rows), contexts.take(rows), len(rows), few)
    return values


def _as_rows(guard: Guard, agents: "Columns", contexts: "Columns", values: Values) -> bool:
    """Return whether rows, spread over all that columns gave a value, give the same."""
    known = np.flatnonzero(values >= 0)
    spread = known[np.linspace(0, len(known) - 1, min(len(known), PROBES)).astype(np.intp)]
    try:
        return all(guard_value(guard(agents.row(i), contexts.row(i))) == values[i] for i in spread.tolist())
    except Exception:  # columns gave a value, the row gives none
        return False


# What a guard may be made of.


def only_reads(guard: Guard) -> bool:
    """Return whether a guard is a function that surely only reads fields and computes with plain values.

    Its names outside are looked up each time: they may have been bound to something else.
    """
    if type(guard) is not FunctionType or (names := _global_names(guard.__code__)) is None:
        return False
    outside = ChainMap(guard.__globals__, cast(Any, guard).__builtins__)
    try:
        used = [outside[name] for name in names] + [cell.cell_contents for cell in guard.__closure__ or ()]
    except (KeyError, ValueError):  # not bound: the row will say so
        return False
    return all(map(_is_plain, (*used, *(guard.__defaults__ or ()), *(guard.__kwdefaults__ or {}).values())))


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _PLAIN or any(value is known for known in _PURE)


@lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> frozenset[str] | None:
    """Return the globals that `code` reads, or None if it might do more than read; it calls nothing else than them."""
    names = set()
    for step in dis.get_instructions(code):
        if step.opname not in _STEPS:
            return None
        if step.opname == "LOAD_ATTR" and (cast(int, step.arg) & 1 or step.argval.startswith("_")):
            return None  # the lowest bit: a method to be called
        if step.opname == "LOAD_GLOBAL":
            names.add(step.argval)
    return frozenset(names)


# What a guard sees instead of an agent and a post.


class _Split(Exception):  # noqa: N818 - nothing went wrong
    """Rows decide differently: `truth` says which."""

    def __init__(self, truth: npt.NDArray[np.bool_]) -> None:
        self.truth = truth


class _Opaque:
    """Something of which a guard learns only what a subclass tells; all else raises TypeError, which means rows."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("it is true or false by row")

    def __eq__(self, other: object) -> Any:
        raise TypeError("it is equal by row")

    def __repr__(self) -> str:
        raise TypeError("it has a text by row")

    __hash__ = None  # type: ignore[assignment]


class _Fields(_Opaque):
    """The agents, or the posts: a field of all of them is read once, so that it is identical to itself."""

    __slots__ = ("_columns", "_kept", "_n")

    def __init__(self, columns: "Columns", n: int) -> None:
        self._columns, self._n = columns, n
        self._kept: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._kept:
            self._kept[name] = _seen(self._columns.column(name), self._n)
        return self._kept[name]


def _seen(column: Any, n: int) -> Any:
    """Return a column as guards see it, with the values that the rows would have."""
    if not isinstance(column, np.ndarray):
        return column if type(column) in _PLAIN else _Texts(column)
    kind = column.dtype.kind
    if column.shape != (n,) or kind not in "biufU" or (kind == "f" and column.itemsize > 8):
        raise TypeError(f"a column of {column.dtype}, shape {column.shape}, is read by row")
    if kind == "U":
        return _Texts(column)
    return _Numbers(column.astype(np.float64, copy=False) if kind == "f" else _exact(column))


def _exact(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers as int64; raise OverflowError if one may be another one in double precision."""
    if values.dtype.kind == "b":
        return values
    if values.itemsize == 8 and _size(values) >= EXACT:
        raise OverflowError("whole numbers from 2**53 on are computed by row")
    return values.astype(np.int64, copy=False)


def _size(values: Any) -> int:
    """Return the largest absolute value; whole numbers, at least one."""
    return max(int(np.max(values)), -int(np.min(values)))


class _Texts(_Opaque):
    """A column that tells only whether it equals a text."""

    __slots__ = ("_values",)

    def __init__(self, values: Any) -> None:
        self._values = values

    def __eq__(self, other: object) -> Any:
        return _Numbers(self._equals(other))

    def __ne__(self, other: object) -> Any:
        return _Numbers(~self._equals(other))

    def _equals(self, other: object) -> npt.NDArray[np.bool_]:
        if not isinstance(other, str) or "\0" in other:  # numpy would take "a\0" for "a"
            raise TypeError("texts are equal to anything but a text by row")
        equals = self._values == str.__str__(other)
        if not isinstance(equals, np.ndarray) or equals.dtype != np.bool_:
            raise TypeError("this column is equal by row")
        return equals


def _operand(value: Any) -> Any:
    """Return a number, or numbers, such that numpy compares and adds them as Python does."""
    if isinstance(value, _Numbers):
        return value._values
    if type(value) is float or (type(value) in (int, bool) and abs(value) < EXACT):
        return value
    raise TypeError(f"{type(value)} is no number of a column")


def _as_number(value: Any) -> Any:
    """Return an operand with 0 and 1 for truth values: numpy's ``True + True`` is True."""
    value = _operand(value)
    return value.astype(np.int64) if isinstance(value, np.ndarray) and value.dtype.kind == "b" else value


def _product(left: Any, right: Any) -> Any:
    whole = all(np.asarray(factor).dtype.kind != "f" for factor in (left, right))
    if whole and _size(left) * _size(right) >= EXACT:
        raise OverflowError("products from 2**53 on are computed by row")
    return left * right


def _dividing(divide: Operator) -> Operator:
    """Return a division that raises where a row would: rows with a divisor of 0 run apart."""

    def divided(left: Any, right: Any) -> Any:
        is_zero = right == 0
        if _Numbers(is_zero) if isinstance(is_zero, np.ndarray) else is_zero:
            raise ZeroDivisionError("division by zero")
        return divide(left, right)

    return divided


def _both_ways(operate: Operator, read: Callable[[Any], Any] = _as_number) -> tuple[Operator, Operator]:
    """Return the methods for ``column + x`` and ``x + column``."""
    return (
        lambda self, other: _Numbers(operate(read(self), read(other))),
        lambda self, other: _Numbers(operate(read(other), read(self))),
    )


class _Numbers(_Opaque):
    """Numbers or truth values of many rows: bool, int64 below `EXACT`, or float64.

    Where a guard asks whether it is true, the rows must agree; else `_Split` is raised.
    """

    __slots__ = ("_values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values if values.dtype.kind == "f" else _exact(values)

    def __bool__(self) -> bool:
        truth = self._truth()
        n_true = np.count_nonzero(truth)
        if 0 < n_true < len(truth):
            raise _Split(truth)
        return bool(n_true)

    def _truth(self) -> npt.NDArray[np.bool_]:
        return self._values if self._values.dtype.kind == "b" else self._values != 0

    __lt__, __gt__ = _both_ways(operator.lt, _operand)
    __le__, __ge__ = _both_ways(operator.le, _operand)
    __eq__, _ = _both_ways(operator.eq, _operand)
    __ne__, _ = _both_ways(operator.ne, _operand)
    __and__, __rand__ = _both_ways(operator.and_, _operand)
    __or__, __ror__ = _both_ways(operator.or_, _operand)
    __xor__, __rxor__ = _both_ways(operator.xor, _operand)
    __add__, __radd__ = _both_ways(operator.add)
    __sub__, __rsub__ = _both_ways(operator.sub)
    __mul__, __rmul__ = _both_ways(_product)
    __truediv__, __rtruediv__ = _both_ways(_dividing(operator.truediv))
    __floordiv__, __rfloordiv__ = _both_ways(_dividing(operator.floordiv))
    __mod__, __rmod__ = _both_ways(_dividing(operator.mod))

    def __neg__(self) -> "_Numbers":
        return _Numbers(-_as_number(self))

    def __abs__(self) -> "_Numbers":
        return _Numbers(abs(_as_number(self)))
