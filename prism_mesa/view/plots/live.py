"""Tables of a model that is still going, made of what it holds when they are asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import POST_KINDS
from prism_mesa.errors import DataError, printable
from prism_mesa.runs.records.arrow_rows import WaitingRows
from prism_mesa.runs.records.final_tables import agent_blocks, cascade_blocks, post_blocks
from prism_mesa.social.cascades import cascades
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.collect import ROUND_FIELDS, SHARE_FIELDS, TICK_FIELDS
from prism_mesa.social.state.population import STATE_NAMES, unpacked_codes
from prism_mesa.view.plots.recorded import added_up

MOVES: Final = "moves"
"""A table that only live models have: the last changes of state of each agent (`statechart.max_history_depth`)."""

_NUMBERS_OF_POSTS: Final = (
    *("round", "written", "author", "parent", "root"),
    *("likes", "replies", "reshares", "impressions", "velocity"),
)

type Columns = dict[str, Any]


class LiveRun:
    """A model that is going on; each table is as of now.

    Tables of events (`transitions`, `impressions`, `engagements`, ...) are there if the model was given a recorder that
    has a method ``table(name)``, such as `runs.records.in_memory.RowsInMemory`.

    Attributes:
        model: The model.
        folder: None: it has none.
        name: What it is called.
        seed: Its seed.
        config: Its parameters.
        n_agents: Its agents.
        decided_by: Who answers its open choices.
    """

    folder = None
    name = "the model"

    def __init__(self, model: SocialModel) -> None:
        self.model = model
        self.seed = model.params.seed
        self.config: Mapping[str, Any] = model.params.model_dump()
        self.n_agents = len(model.population)
        self.decided_by = printable(model.reasoner.label)

    def has(self, table: str) -> bool:
        """Return whether it has a table."""
        return table in self._made or self._recorded(table) is not None

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table as it would stand in the folder of a run, or only some of its columns.

        Raises:
            DataError: If it is not recorded.
        """
        if name in self._made:
            frame = self._made[name](columns)
        else:
            found = self._recorded(name)
            if found is None:
                way = "SocialModel(recorder=RowsInMemory(SOCIAL_TABLES)) keeps it"
                raise DataError(f"{self.name}: no table {name!r} is recorded: {way}")
            frame = found
        return frame if columns is None else frame[list(columns)]

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Return how many rows of a table there are of each combination: columns `by` and `n`."""
        return added_up([self.table(name, by).groupby(list(by), observed=True).size()], by)

    @property
    def _made(self) -> dict[str, Callable[[Sequence[str] | None], pd.DataFrame]]:
        made = {"rounds": self._rounds, "ticks": self._ticks, "posts": self._posts, "agents": self._agents}
        return {**made, "cascades": self._cascades, MOVES: self._moves}

    def _recorded(self, name: str) -> pd.DataFrame | None:
        table = getattr(self.model.recorder, "table", None)
        if not callable(table):
            return None
        try:
            found = table(name)
        except DataError:
            return None
        return found if isinstance(found, pd.DataFrame) else None

    def _rounds(self, columns: Sequence[str] | None) -> pd.DataFrame:
        kept = self.model.prism_datacollector.model_vars
        n = min(len(kept[name]) for name in (*ROUND_FIELDS, *SHARE_FIELDS))  # another thread may be writing a round
        first = self.model.round + 1 - n
        own = {name: kept[name][:n] for name in (*ROUND_FIELDS, *SHARE_FIELDS) if columns is None or name in columns}
        return pd.DataFrame({"round": np.arange(first, first + n), **own})

    def _ticks(self, columns: Sequence[str] | None) -> pd.DataFrame:
        kept = self.model.prism_datacollector.tables["ticks"]
        return pd.DataFrame({name: kept[name] for name in ("round", "tick", *TICK_FIELDS)})

    def _posts(self, columns: Sequence[str] | None) -> pd.DataFrame:
        posts = self.model.posts
        plain = {"post", "kind", *_NUMBERS_OF_POSTS}
        if columns is None or not set(columns) <= plain:
            return _frame(post_blocks(self.model))
        own: Columns = {name: getattr(posts, name) for name in _NUMBERS_OF_POSTS if name in columns}
        own |= {"post": np.arange(len(posts))} if "post" in columns else {}
        own |= {"kind": _named(posts.kind, POST_KINDS)} if "kind" in columns else {}
        return pd.DataFrame(own)

    def _agents(self, columns: Sequence[str] | None) -> pd.DataFrame:
        network = self.model.network
        counts = {"followers": network.n_followers, "followees": network.n_followees}
        if columns is None or not set(columns) <= {"agent", *counts}:
            return _frame(agent_blocks(self.model))
        return pd.DataFrame({"agent": np.arange(self.n_agents), **counts})

    def _cascades(self, columns: Sequence[str] | None) -> pd.DataFrame:
        posts = self.model.posts
        return _frame(cascade_blocks(self.model, cascades(posts.parent, posts.root, posts.kind)))

    def _moves(self, columns: Sequence[str] | None) -> pd.DataFrame:
        history = self.model.history
        kept = np.arange(history.depth) < history.count[:, None]
        for row in history.limits:
            kept[row] = np.isin(np.arange(history.depth), history.places(row))
        agent, place = np.nonzero(kept)
        trigger, source, target = unpacked_codes(history.ring["move"][agent, place])
        names = {"trigger": self.model.chart.triggers, "from_state": STATE_NAMES, "to_state": STATE_NAMES}
        codes = zip(names.items(), (trigger, source, target), strict=True)
        return pd.DataFrame({"agent": agent, **{name: _named(code, texts) for (name, texts), code in codes}})


def _named(codes: npt.NDArray[np.integer[Any]], names: Sequence[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes.astype(np.int32), list(names))


def _frame(blocks: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    rows = WaitingRows(None)
    for block in blocks:
        rows.add(block)
    frame: pd.DataFrame = rows.table().to_pandas(ignore_metadata=True)
    return frame
