"""Format numbers with as many decimals as their intervals justify."""

from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import Any, Final

import pandas as pd

NO_VALUE: Final = "\u2014"
"""Placeholder for a missing number."""
_MAX_DECIMALS: Final = 6


def decimals_for(low: Iterable[float], high: Iterable[float], values: Iterable[float] = ()) -> int:
    """Return the decimals that give the narrowest half width two digits, or else the largest value four digits."""
    widths = [abs(top - bottom) / 2 for bottom, top in zip(low, high, strict=True)]
    positive = [width for width in widths if isfinite(width) and width > 0]
    sizes = [abs(value) for value in values if isfinite(value) and value]
    if positive:
        decimals = 1 - floor(log10(min(positive)))
    else:
        decimals = 0 if all(float(size).is_integer() for size in sizes) else 3 - floor(log10(max(sizes)))
    return min(max(decimals, 0), _MAX_DECIMALS)


def number(value: Any, decimals: int = 0) -> str:
    """Format a number with thousands separators; a missing number becomes a dash.

    >>> number(1234.5678, 1), number(-0.0001, 2), number(float("nan"))
    ('1,234.6', '0.00', '—')
    """
    if value is None or pd.isna(value):
        return NO_VALUE
    text = f"{float(value):,.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text


def interval(low: Any, high: Any, decimals: int) -> str:
    """Format an interval, with more decimals if an end would round to 0.

    >>> interval(0.1, 0.25, 2), interval(-38.2, -0.245, 0)
    ('[0.10, 0.25]', '[-38.2, -0.2]')
    """
    if any(end is None or pd.isna(end) for end in (low, high)):
        return NO_VALUE
    while decimals < _MAX_DECIMALS and any(end and not round(end, decimals) for end in (low, high)):
        decimals += 1
    return f"[{number(low, decimals)}, {number(high, decimals)}]"


def significant(value: Any, digits: int = 3) -> str:
    """Format a number with `digits` significant digits; whole numbers are exact.

    >>> significant(0.00012345), significant(12), significant(1234567.0)
    ('0.000123', '12', '1,234,567')
    """
    if value is None or pd.isna(value):
        return NO_VALUE
    size = abs(float(value))
    if not isfinite(size) or float(value).is_integer():
        return f"{float(value):,.0f}"
    if size < 1e-5:
        return f"{float(value):.{digits - 1}e}"
    return number(value, max(digits - 1 - floor(log10(size)), 0))


def p_value(value: Any) -> str:
    """Format a p-value.

    >>> p_value(0.0004), p_value(0.0312), p_value(1.0)
    ('< 0.001', '0.031', '1.000')
    """
    if value is None or pd.isna(value):
        return NO_VALUE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def level(value: Any) -> str:
    """Format the level of a factor as in a study file.

    >>> level(0.02), level(True), level("x_algo"), level(50.0), level(None)
    ('0.02', 'true', 'x_algo', '50', 'null')
    """
    if value is None or value is pd.NaT or (isinstance(value, float) and pd.isna(value)):
        return "null"
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return str(bool(value)).lower()
    if isinstance(value, float) or hasattr(value, "dtype"):
        return f"{float(value):.6g}"
    return str(value)
