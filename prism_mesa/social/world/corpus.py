"""The corpus: the texts that agents post, from a file or PRISM's own."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import DataError, format_count
from prism_mesa.social.params import FilesParams
from prism_mesa.social.params.user_files import COLUMNS, POSTS
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.world.cells import DateOrder, parse_labels, parse_numbers, parse_texts, parse_times, read_values
from prism_mesa.social.world.readers import DEFAULT_FILES, Table, name_file_in_errors, read_table
from prism_mesa.streams import Streams


@dataclass(frozen=True)
class Corpus:
    """Texts to post, in order of time if the file has times.

    Attributes:
        authors: The author id of each text; None if agents draw the texts that they post.
        rounds: The round of each text; None if scheduled posts are spread evenly.
        labels: Topic labels of each text; empty tuples without labels.
        attributes: The values of post attributes in the file, by name (`cells.read_values`).
        dropped: Reasons for unusable rows, with the number of rows.
        notes: Notes on how the file was read.
        subjects: The subject of each text, for other wordings; empty for users' files.
    """

    texts: list[str]
    authors: list[str] | None = None
    rounds: npt.NDArray[np.int64] | None = None
    labels: list[tuple[str, ...]] = field(default_factory=list)
    media_types: list[str] = field(default_factory=list)
    media_descriptions: list[str] = field(default_factory=list)
    attributes: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    dropped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    subjects: list[str] = field(default_factory=list)


def load_corpus(
    path: str | None,
    files: FilesParams = DEFAULT_FILES,
    attributes: Mapping[str, tuple[str, Attribute]] | None = None,
    dates: DateOrder | None = None,
) -> Corpus:
    """Read posts from a file, or the corpus shipped with PRISM.

    The file needs a column `text`. It may have `author`, `round` (a whole number, 0 or more), `created_at` (a time, by
    which rows are sorted), `topic` (labels, separated by ;), `media_type`, `media_description`, and the columns of
    `attributes`: name -> (column, attribute). Repeated rows are left out if posts have times.
    `dates` is the value of posts.dates.

    Raises:
        DataError: If the file is missing, has no column `text`, no usable row, or ambiguous dates.
    """
    if path is None:
        return _default_corpus()
    declared = attributes or {}
    required = ("text", *dict.fromkeys(column for column, _ in declared.values() if column not in ("text", *_COLUMNS)))
    table = read_table(path, _KEY, required=required, optional=_COLUMNS, files=files)
    with name_file_in_errors(path, _KEY):
        date_notes: list[str] = []
        cells = _parse_cells(table, dates, date_notes)
        for name, (column, attribute) in declared.items():
            cells[f"{_ATTRIBUTE}{name}"] = read_values(table[column], column, attribute, f"{_KEY}: {path}")
    usable, dropped = _find_usable_rows(cells)
    if not usable.any():
        reasons = ", ".join(drop_phrases(dropped.items()))
        raise DataError(f"{_KEY}: {path}: none of the {len(table)} rows can be used ({reasons})")
    if dates and not date_notes:
        date_notes = ["posts.dates: no effect, because no date is ambiguous"]
    cells, n_repeats, notes = _sort_rows(cells[usable])
    dropped["repeated posts"] = n_repeats
    columns = {name: cells[name].tolist() for name in cells}
    blanks = [""] * len(cells)
    return Corpus(
        texts=columns["text"],
        authors=columns.get("author"),
        rounds=cells["round"].to_numpy(np.int64) if "round" in cells else None,
        labels=[tuple(filter(None, map(str.strip, value.split(";")))) for value in columns.get("topic", blanks)],
        media_types=columns.get("media_type", blanks),
        media_descriptions=columns.get("media_description", blanks),
        attributes={name: cells[f"{_ATTRIBUTE}{name}"].to_numpy() for name in declared},
        dropped=tuple((reason, count) for reason, count in dropped.items() if count),
        notes=(*table.notes, *(f"{_KEY}: {note}" for note in date_notes), *notes, *_content_notes(cells)),
    )


@cache
def _default_corpus() -> Corpus:
    with resources.as_file(resources.files("prism_mesa.social.world") / "corpus.csv") as file:
        return replace(load_corpus(str(file)), subjects=pd.read_csv(file)["subject"].tolist(), notes=())


def with_media_share(corpus: Corpus, share: float | None, streams: Streams) -> Corpus:
    """Return the corpus with media for a share of its texts, or unchanged for None.

    A drawn text keeps its media or gets an image. A larger share adds media to further texts.
    """
    if share is None:
        return corpus
    n = len(corpus.texts)
    chosen_rows = set(np.argsort(streams.bits("media", np.arange(n)), kind="stable")[: round(share * n)].tolist())
    media = enumerate(zip(corpus.media_types, corpus.media_descriptions, strict=True))
    pairs = [(type_ or IMAGE, text) if index in chosen_rows else ("", "") for index, (type_, text) in media]
    return replace(corpus, media_types=[type_ for type_, _ in pairs], media_descriptions=[text for _, text in pairs])


IMAGE: Final = "image"
"""The media type of a text drawn to have media, if the file names none."""

_KEY: Final = POSTS
_ATTRIBUTE: Final = "attribute "
_COLUMNS: Final = tuple(COLUMNS[POSTS])[1:]


def _content_notes(cells: pd.DataFrame) -> Iterator[str]:
    """Yield notes on times with little effect, and on texts with traces of an export."""
    for column, cell in (("round", "round"), ("created_at", "time")):
        if cell in cells and "author" not in cells:
            yield f"{_KEY}: {column}: no effect without a column author: agents choose what they post and when"
    if "time" in cells and "author" in cells:
        posts = "posts of a round" if "round" in cells else "posts, which are spread evenly over the run"
        yield f"{_KEY}: created_at only gives the order of {posts}"
    if n := sum(text.startswith("RT @") for text in cells["text"]):
        yield f"{_KEY}: {format_count(n, 'text')} starting with 'RT @...', as reshares do: PRISM reads them as posts"
    if n := sum(";" in text and html.unescape(text) != text for text in cells["text"]):
        yield f"{_KEY}: {format_count(n, 'text')} with entities such as '&amp;' (html.unescape decodes them)"


def _parse_cells(table: Table, dates: DateOrder | None, notes: list[str]) -> pd.DataFrame:
    """Return the cells of a table: `round` and `time` as numbers, all others as strings."""
    cells: dict[str, object] = {name: _object_array(parse_texts(table[name], name)) for name in _TEXTS if name in table}
    if "author" in table:
        cells["author"] = _object_array(parse_labels(table["author"], "author"))
    if "round" in table:
        cells["round"], _ = parse_numbers(table["round"], "round")
    if "created_at" in table:
        cells["time"], cells["is_time"] = parse_times(table["created_at"], table.names["created_at"], dates, notes)
    return pd.DataFrame(cells)


_TEXTS: Final = ("text", "topic", "media_type", "media_description")


def _object_array(values: Sequence[str | None]) -> npt.NDArray[np.object_]:
    return np.array([*values, None], object)[:-1]


def _find_usable_rows(cells: pd.DataFrame) -> tuple[npt.NDArray[np.bool_], dict[str, int]]:
    """Return a mask of usable rows, and the number of unusable rows by the first reason that applies."""
    conditions = {"rows without text": cells["text"] != ""}
    if "is_time" in cells:
        conditions["rows whose created_at is not a time"] = cells["is_time"]
    if "round" in cells:
        is_whole = cells["round"].between(0, 2**31 - 1) & (cells["round"] == cells["round"].round())
        conditions["rows whose round is not a whole number from 0"] = is_whole
    if "author" in cells:
        conditions["rows without author"] = cells["author"].notna()
    usable, dropped = np.ones(len(cells), np.bool_), {}
    for reason, condition in conditions.items():
        dropped[reason] = int((usable & ~condition.to_numpy(bool)).sum())
        usable &= condition.to_numpy(bool)
    return usable, dropped


def _sort_rows(cells: pd.DataFrame) -> tuple[pd.DataFrame, int, tuple[str, ...]]:
    """Return rows in order of time, the number of repeated rows that were left out, and notes.

    Without times, authors post in the order of rows; a repeated row then counts as another post.
    """
    times = [cells[name] for name in ("time", "round") if name in cells]
    if times:
        cells = cells.iloc[np.lexsort(times)]
    repeats = cells.duplicated().to_numpy()
    if not repeats.any():
        return cells, 0, ()
    if "author" in cells and not times:
        return cells, 0, (f"{_KEY}: {repeats.sum()} repeated rows are posted too (no column round or created_at)",)
    return cells[~repeats], int(repeats.sum()), ()


def drop_phrases(dropped: Iterable[tuple[str, int]]) -> list[str]:
    """Return phrases such as "1 row without text" from plural phrases ("rows without text") and counts."""
    return [f"{n} {reason if n > 1 else re.sub(r's\b', '', reason, count=1)}" for reason, n in dropped if n]
