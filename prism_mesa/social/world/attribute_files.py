"""What users' files say of attributes."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from prism_mesa.errors import DataError, counted, shortened
from prism_mesa.social.params.attributes import AttributeParams
from prism_mesa.social.state.attributes import Attribute, Floats
from prism_mesa.social.world.cells import parse_numbers, parse_texts

_TRUTHS: Final = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, "yes": 1.0, "no": 0.0}


def read_values(cells: pa.ChunkedArray, column: str, own: Attribute, where: str) -> Floats:
    """Return what a column of a file says of an attribute, NaN where a cell is blank.

    Raises:
        DataError: If a cell holds something else than its values; the message says which.
    """
    if own.texts or own.is_truth:
        texts = parse_texts(cells, column)
        codes = {text: float(place) for place, text in enumerate(own.texts)} if own.texts else _TRUTHS
        found = np.array([codes.get(t if own.texts else t.lower(), np.nan) for t in texts], np.float64)
        bad = np.isnan(found) & np.array([text != "" for text in texts], np.bool_)
    else:
        found, given = parse_numbers(cells, column)
        bad = given & ~np.array(np.isin(found, own.kept) if own.values else (found >= own.low) & (found <= own.high))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        said = shortened(str(cells[row].as_py()))
        raise DataError(f"{where}: {column}: line {row + 2}: {said} is not {own.allowed} (attributes.{own.name})")
    return found


def file_columns(
    declared: Mapping[str, AttributeParams], known: Mapping[str, Attribute]
) -> dict[str, tuple[str, Attribute]]:
    """Return which of some attributes are given by a column of a file: name -> (column, what it is)."""
    given = {name: (declared[name].column, own) for name, own in known.items()}
    return {name: (column, own) for name, (column, own) in given.items() if column is not None}


def blank_notes(given: Mapping[str, Floats], key: str, rows: str) -> list[str]:
    """Return in words of which attributes a file leaves values out, which are drawn then."""
    blank = {name: int(np.isnan(values).sum()) for name, values in given.items()}
    return [f"attributes.{name}: {key} has none for {counted(n, rows)}: drawn" for name, n in blank.items() if n]
