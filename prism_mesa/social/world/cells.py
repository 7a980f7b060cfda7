"""Parse cells of users' tables: ids, texts, numbers, times. Each error is a ValueError that names the column."""

import re
import warnings
from collections.abc import Sequence
from datetime import date
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.arrays import Floats, Mask
from prism_mesa.errors import DataError, format_count, shorten
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.world.csv_files import whole_numbers

_MAX_EXACT: Final = 2.0**53
"""Smaller whole numbers are exact as floats."""
_TRUTHS: Final = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, "yes": 1.0, "no": 0.0}
_MISSING_NUMBERS: Final = frozenset({"na", "n/a", "#n/a", "nan", "null", "none"})
"""Strings that other programs write for a missing number."""
DateOrder = Literal["day_first", "month_first"]
_DATE: Final = re.compile(
    r"((?:[^\W\d]+[.,]*\s+)?(?:\d{1,2}[:.]\d\d(?::\d\d)?(?:\s*[ap]m)?[,\s-]+)?)"
    r"(\d{1,2})(\s*[./-]\s*|\s)(\d{1,2})\3(\d{4}|\d{2})(?![\w./:-])",
    re.IGNORECASE,
)
"""A date of three numbers with the year last, perhaps after a weekday or an hour."""
_YEAR_LAST: Final = re.compile(r"\d{3,4}(?:19|20)\d\d")
_ZONE: Final = re.compile(r"(?:\dZ|[+-]\d\d:?\d\d|\b(?:GMT|UTC))$|[+-]\d{4} \d{4}$")
_CURRENT_TIME: Final = frozenset({"now", "today"})
"""Strings that pandas reads as the current time."""


def parse_ids(columns: dict[str, pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Return columns of ids, all as int64 or all as strings; blank cells become nulls.

    Whole numbers, also floats (which pandas uses in columns with blank cells), become ids of decimal digits.

    Raises:
        ValueError: If a column holds lists or other nested values, or floats too large to be exact.
    """
    cells = {name: _decode(column, name, "ids") for name, column in columns.items()}
    for name, column in cells.items():
        if pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
            cells[name] = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    floats = [column for column in cells.values() if pa.types.is_floating(column.type)]
    all_whole = all(pc.all(pc.equal(column, pc.round(column))).as_py() is not False for column in floats)
    ids = [_normalize_ids(column, name, all_whole=all_whole) for name, column in cells.items()]
    if all(pa.types.is_int64(column.type) for column in ids):
        return ids
    return [column if is_text(column.type) else column.cast(pa.string()) for column in ids]


def parse_labels(column: pa.ChunkedArray, name: str) -> list[str | None]:
    """Return the ids of a column as stripped strings, None for blank cells."""
    [ids] = parse_ids({name: column})
    return [None if id_ is None else str(id_).strip() or None for id_ in ids.to_pylist()]


def distinct_ids(texts: pa.Array) -> "pd.Series[Any]":
    """Return distinct strings as stripped ids, in the same order; as whole numbers if all strings are whole numbers."""
    trimmed = pc.utf8_trim_whitespace(texts)
    numbers = whole_numbers(trimmed)
    return pd.Series(trimmed.to_pylist(), dtype=object) if numbers is None else numbers.to_pandas()


def _normalize_ids(column: pa.ChunkedArray, name: str, *, all_whole: bool) -> pa.ChunkedArray:
    """Return ids as int64 if they are whole numbers, else as strings."""
    type_ = column.type
    if pa.types.is_floating(type_):
        if not all_whole:
            texts = [None if x is None else repr(x) for x in column.to_pylist()]
            return pa.chunked_array([pa.array(texts, pa.string())])
        if (pc.max(pc.abs(column)).as_py() or 0) >= _MAX_EXACT:
            raise ValueError(f"column {name!r} holds ids as floats that are too large to be exact: write them as text")
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            pass  # beyond 64 bits, or decimals
    return column if is_text(type_) else column.cast(pa.string())


def is_text(type_: pa.DataType) -> bool:
    """Return whether a column of this type holds strings."""
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _decode(column: pa.ChunkedArray, name: str, content: str) -> pa.ChunkedArray:
    """Return a column with bytes as strings, and with values instead of codes unless the values are strings."""
    type_ = column.type
    if pa.types.is_nested(type_):
        raise ValueError(f"column {name!r} holds {type_}, not {content}")
    try:
        if pa.types.is_dictionary(type_) and not is_text(type_):
            column = column.cast(type_.value_type)
        binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        return column.cast(pa.string()) if binary or pa.types.is_null(column.type) else column
    except pa.ArrowException:
        raise ValueError(f"column {name!r} holds {type_}, not {content}") from None


def parse_texts(column: pa.ChunkedArray, name: str) -> list[str]:
    """Return cells as stripped strings, empty for blank cells; raise ValueError for nested values."""
    cells = _decode(column, name, "texts")
    return ["" if text is None or text != text else str(text).strip() for text in cells.to_pylist()]


def parse_numbers(column: pa.ChunkedArray, name: str) -> tuple[Floats, Mask]:
    """Return cells as numbers, NaN where a cell is not a number, and a mask of cells that are not blank.

    Raises:
        ValueError: If the cells hold nested values.
    """
    cells = _decode(column, name, "numbers")
    if not is_text(cells.type):
        try:
            numbers = np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(), np.float64)
        except pa.ArrowException:
            raise ValueError(f"column {name!r} holds {cells.type}, not numbers") from None
        return numbers, ~np.isnan(numbers)
    texts = parse_texts(column, name)
    is_filled = np.array([text != "" and text.lower() not in _MISSING_NUMBERS for text in texts], np.bool_)
    return np.array([_parse_number(text) for text in texts], np.float64), is_filled


def _parse_number(text: str) -> float:
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


def parse_times(
    column: pa.ChunkedArray, name: str, order: DateOrder | None, notes: list[str]
) -> tuple[npt.NDArray[Any], Mask]:
    """Return times as sortable numbers, and a mask of cells that hold a time.

    Cells are dates and times of any format, or all cells are numbers (seconds since 1970, years, ...). Times without a
    zone are in UTC. All dates such as 01/02/2017 are read in the same order, which `notes` then mention.

    Raises:
        ValueError: If the cells hold no times, or if `order` is None and both orders or neither fit all dates.
    """
    cells = _decode(column, name, "times")
    if pa.types.is_temporal(cells.type) and not (pa.types.is_duration(cells.type) or pa.types.is_time(cells.type)):
        width = pa.int32() if pa.types.is_date32(cells.type) else pa.int64()
        return np.asarray(cells.cast(width).fill_null(0).to_numpy(), np.int64), np.asarray(cells.is_valid().to_numpy())
    numbers, is_filled = parse_numbers(cells, name)
    texts = parse_texts(cells, name)
    filled = [texts[row] for row in np.flatnonzero(is_filled)]
    if np.isfinite(numbers[is_filled]).all():
        if filled and all(map(_YEAR_LAST.fullmatch, filled)):
            raise ValueError(f"column {name!r}: {filled[0]!r} does not sort by date: write 2017-12-31")
        return np.nan_to_num(numbers), is_filled
    has_zone = [bool(_ZONE.search(text)) for text in filled]
    if any(has_zone) and not all(has_zone):
        notes.append(f"{name}: {format_count(has_zone.count(False), 'time')} without a time zone read as UTC")
    times = _parse_timestamps(_put_year_first(texts, name, order, notes))
    is_time = ~np.isnat(times)
    return np.where(is_time, times.view(np.int64), 0), is_time


def _put_year_first(texts: list[str], name: str, order: DateOrder | None, notes: list[str]) -> list[str]:
    """Return texts in which dates such as 01/02/2017, all read in the same order, have the year first."""
    matches = [_DATE.match(text) for text in texts]
    dmy, mdy = (
        [match and _iso_date(match[day_group], match[month_group], match[5]) for match in matches]
        for day_group, month_group in ((2, 4), (4, 2))
    )
    ambiguous = [row for row in range(len(texts)) if dmy[row] != mdy[row]]
    by_order: dict[DateOrder, list[str | None]] = {"day_first": dmy, "month_first": mdy}
    possible = [key for key, parsed in by_order.items() if all(parsed[row] for row in ambiguous)]
    if order is None and ambiguous and len(possible) != 1:
        rows = ambiguous[:1] if possible else [next(i for i in ambiguous if not parsed[i]) for parsed in (mdy, dmy)]
        examples = "; ".join(f"{texts[i]!r} (line {i + 2}): day-first {dmy[i]}, month-first {mdy[i]}" for i in rows)
        fault = "can be read in two orders" if possible else "fits neither order in all rows"
        raise ValueError(f"column {name!r} {fault}: {examples}: set posts.dates=day_first or month_first")
    order = order or possible[0]
    for row in [row for row in ambiguous if by_order[order][row]][:1]:
        notes.append(f"{name} is read {order.replace('_', '-')}: {texts[row]!r} is {by_order[order][row]}")
    for row, (match, parsed) in enumerate(zip(matches, by_order[order], strict=True)):
        if match:
            texts[row] = f"{match[1]}{parsed}{texts[row][match.end() :]}" if parsed else ""
    return texts


def _iso_date(day: str, month: str, year: str) -> str | None:
    """Return an ISO date, or None for a date that does not exist; the year 68 is 2068, 69 is 1969 (POSIX)."""
    century = 0 if len(year) == 4 else 2000 if int(year) < 69 else 1900
    try:
        return date(century + int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _parse_timestamps(texts: Sequence[str]) -> npt.NDArray[np.datetime64]:
    """Return times in UTC, NaT for other strings; times in another format than the first are parsed one by one."""
    values = pd.Series([None if text.lower() in _CURRENT_TIME else text for text in texts], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas warns if no format fits all
        times = _pandas_times(values)
        unparsed = np.flatnonzero(np.isnat(times) & values.notna().to_numpy())
        times[unparsed] = _pandas_times(values[unparsed], format="mixed")
    return times


def _pandas_times(values: "pd.Series[Any]", **options: str) -> npt.NDArray[np.datetime64]:
    """Return times, NaT for other strings; retry in halves, because one time out of range makes pandas reject all."""
    if not len(values):
        return np.zeros(0, "datetime64[us]")
    try:
        times = pd.to_datetime(values, errors="coerce", utc=True, **options)
        return np.array(times.dt.tz_localize(None), "datetime64[us]")
    except (ValueError, ArithmeticError, NotImplementedError, TypeError):
        if len(values) == 1:
            return np.array(["NaT"], "datetime64[us]")
        half = len(values) // 2
        return np.concatenate([_pandas_times(values[:half], **options), _pandas_times(values[half:], **options)])


def read_values(cells: pa.ChunkedArray, column: str, attribute: Attribute, where: str) -> Floats:
    """Return an attribute's values from a column of a file, NaN for blank cells.

    Raises:
        DataError: If a cell does not hold a value of the attribute.
    """
    if attribute.texts or attribute.is_boolean:
        texts = parse_texts(cells, column)
        codes = {text: float(index) for index, text in enumerate(attribute.texts)} or _TRUTHS
        values = np.array([codes.get(t if attribute.texts else t.lower(), np.nan) for t in texts], np.float64)
        is_bad = np.isnan(values) & np.array([text != "" for text in texts], np.bool_)
    else:
        values, is_filled = parse_numbers(cells, column)
        is_bad = is_filled & ~attribute.allows(values)
    check_cells(is_bad, cells, f"{where}: {column}", f"{attribute.allowed_text} (attributes.{attribute.name})")
    return values


def check_cells(is_bad: Mask, cells: pa.ChunkedArray, where: str, allowed: str) -> None:
    """Raise DataError for the first bad cell, if any."""
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise DataError(f"{where}: line {row + 2}: {shorten(str(cells[row].as_py()))} is not {allowed}")
