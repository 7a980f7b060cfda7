"""The posts of a run, read from its table."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import DataError
from prism_mesa.runs.run_files import columns_of, read_table


class RecordedPosts:
    """The posts of a run, by id; `round` is when one appears, `written` when it was written.

    Raises:
        DataError: If the table is damaged: a post has no author, or what it is about does not stand before it.
    """

    def __init__(self, run_dir: Path) -> None:
        columns = ["round", "author", "kind", "parent", "text"]
        columns += sorted({"comment", "written"} & set(columns_of(run_dir, "posts")))
        table = read_table(run_dir, "posts", columns)
        self.round = table["round"].to_numpy()
        self.author = table["author"].to_numpy()
        self.kind = table["kind"].astype(object).to_numpy()
        self.parent = table["parent"].fillna(-1).to_numpy(np.int64)  # a blank in a run of version 0.1
        ids = np.arange(len(table))
        own = self.kind == "post"
        odd = np.flatnonzero((self.author < 0) | (self.parent < -1) | (self.parent >= ids) | (own != (self.parent < 0)))
        if len(odd):
            told = f"a {self.kind[odd[0]]} by agent {self.author[odd[0]]} about post {self.parent[odd[0]]}"
            raise DataError(f"{run_dir}: table 'posts' is damaged: row {odd[0]} is {told}")
        late = self.kind != "post"  # what an older run knows: these appear in the round after
        self.written = table["written"].to_numpy() if "written" in table else self.round - late
        self._text = _coded(table["text"])
        self._comment = _coded(table["comment"]) if "comment" in table else None

    def __len__(self) -> int:
        return len(self.round)

    def words(self, post: int) -> str:
        """Return what the author of a reply or a reshare says itself; empty if nothing, or if it is neither."""
        column = self._text if self.kind[post] == "reply" else self._comment
        return "" if column is None or self.kind[post] == "post" else _text_at(column, post)

    def says(self, post: int) -> str:
        """Return what a post says: of a reshare what it passes on, of a reply without words what it answers."""
        while post >= 0 and not (text := _text_at(self._text, post)):
            post = int(self.parent[post])
        return text if post >= 0 else ""


type _Coded = tuple[npt.NDArray[np.intp], "pd.Index[Any]"]


def _coded(column: "pd.Series[Any]") -> _Coded:
    codes, distinct = pd.factorize(column)
    return codes, pd.Index(distinct)


def _text_at(column: _Coded, place: int) -> str:
    codes, distinct = column
    return "" if codes[place] < 0 else str(distinct[codes[place]])
