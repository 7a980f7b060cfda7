"""What a model tells about its rounds, to the DataCollector and to a recorder. It changes no agent."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from mesa import DataCollector

from prism_mesa.social.population import STATE_BITS, STATE_NAMES
from prism_mesa.social.publishing import COUNTERS
from prism_mesa.statechart import STATES

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

ROUND_FIELDS: Final = ("online", "posts", "impressions", *COUNTERS, "open", "fallback")
SHARE_FIELDS: Final = tuple(f"share_{state.value}" for state in STATES)
TICK_FIELDS: Final = tuple(state.value for state in STATES)
_NO_MOVES: Final = (*[np.zeros(0, np.uint8)] * 4, np.zeros(0, np.bool_))


class Recorder(Protocol):
    """Where a model's records go."""

    def write(self, table: str, columns: Mapping[str, npt.NDArray[Any] | pd.Categorical]) -> None:
        """Append rows to a table: `rounds`, `ticks`, `transitions` or `engagements`."""
        ...


def make_datacollector() -> DataCollector:
    """Return the collector of every model: counts and shares per round, state counts per tick."""
    reporters = {name: partial(_reported, name=name) for name in (*ROUND_FIELDS, *SHARE_FIELDS)}
    return DataCollector(model_reporters=reporters, tables={"ticks": ["round", "tick", *TICK_FIELDS]})


def _reported(model: "SocialModel", name: str) -> float:
    return model.round_row[name]


def collect(model: "SocialModel") -> None:
    """Add the round's rows to the DataCollector, the totals and the recorder."""
    counts = model.tick_counts
    shares = counts.sum(axis=0) / max(1, int(counts.sum()))
    numbers = {name: int(model.counts[name]) for name in ROUND_FIELDS}
    model.round_row = {**numbers, **dict(zip(SHARE_FIELDS, shares.tolist(), strict=True))}
    model.totals.update(numbers)
    model.agent_ticks += counts.sum(axis=0)
    model.datacollector.collect(model)
    for tick, of_tick in enumerate(counts.tolist(), start=1):
        states = dict(zip(TICK_FIELDS, of_tick, strict=True))
        model.datacollector.add_table_row("ticks", {"round": model.round, "tick": tick, **states})
    if model.recorder is not None:
        row = {"round": model.round, **model.round_row}
        model.recorder.write("rounds", {name: np.array([value]) for name, value in row.items()})
        ticks = {"round": np.full(len(counts), model.round), "tick": np.arange(1, len(counts) + 1)}
        model.recorder.write("ticks", ticks | {name: counts[:, i] for i, name in enumerate(TICK_FIELDS)})


def record_moves(model: "SocialModel") -> None:
    """Give the round's transitions to the recorder, by tick and agent."""
    noted, model.events.moves = [_NO_MOVES, *model.events.moves], []
    if model.recorder is None:
        return
    tick, agent, move, post, was_open = (np.concatenate(column) for column in zip(*noted, strict=True))
    order = np.lexsort((agent, tick))  # stable: what one agent did in one tick stays in its order
    move = move[order].astype(np.int64)
    columns = {
        "round": np.full(len(tick), model.round),
        "tick": tick[order],
        "agent": agent[order],
        "trigger": pd.Categorical.from_codes(move >> 2 * STATE_BITS, list(model.chart.triggers)),
        "from_state": pd.Categorical.from_codes(move >> STATE_BITS & 7, list(STATE_NAMES)),
        "to_state": pd.Categorical.from_codes(move & 7, list(STATE_NAMES)),
        "post": post[order],
        "open": was_open[order],
    }
    model.recorder.write("transitions", columns)
