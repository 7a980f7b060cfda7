"""What a model tells about its rounds, to the DataCollector and to a recorder."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from mesa import DataCollector

from prism_mesa.domain import ACTIONS
from prism_mesa.social.state.outcomes import OUTCOME_FIELDS
from prism_mesa.social.state.population import STATE_BITS, STATE_NAMES, Rows
from prism_mesa.statechart import STATES

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

COUNTERS: Final = ("likes", "replies", "reshares")
"""The counters of posts, in the order of `domain.ACTIONS`."""

ROUND_FIELDS: Final = ("online", "posts", "impressions", *COUNTERS, "open", "fallback")
SHARE_FIELDS: Final = tuple(f"share_{state.value}" for state in STATES)
TICK_FIELDS: Final = tuple(state.value for state in STATES)
_MOVE: Final = (np.int32, np.int32, np.uint16, np.int32, np.bool_)
_IMPRESSION: Final = (np.int32, np.int32, np.int32)


class RoundRecorder(Protocol):
    """Where a model's records go."""

    def write(self, table: str, columns: Mapping[str, npt.NDArray[Any] | pd.Categorical]) -> None:
        """Append rows to a table: `rounds`, `ticks`, `transitions`, `impressions` or `engagements`."""
        ...


def make_datacollector() -> DataCollector:
    """Return the collector of every model: counts and shares per round, outcomes so far, state counts per tick."""
    reporters = {name: partial(_reported, name=name) for name in (*ROUND_FIELDS, *SHARE_FIELDS)}
    reporters |= {name: partial(_come_to, name=name) for name in OUTCOME_FIELDS}
    return DataCollector(model_reporters=reporters, tables={"ticks": ["round", "tick", *TICK_FIELDS]})


def _reported(model: "SocialModel", name: str) -> float:
    return model.round_row[name]


def _come_to(model: "SocialModel", name: str) -> float:
    return model.outcome_row[name]


def collect(model: "SocialModel") -> None:
    """Add the round's rows to the DataCollector, the totals and the recorder."""
    counts = model.tick_counts
    shares = counts.sum(axis=0) / max(1, int(counts.sum()))
    numbers = {name: int(model.counts[name]) for name in ROUND_FIELDS}
    model.round_row = {**numbers, **dict(zip(SHARE_FIELDS, shares.tolist(), strict=True))}
    model.totals.update(numbers)
    model.agent_ticks += counts.sum(axis=0)
    model.outcomes.update(model)
    model.outcome_row = model.outcomes.row(model.totals)
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
    """Give the round's transitions of the agents that are recorded to the recorder, by tick and agent."""
    noted, model.events.moves = model.events.moves, []
    if model.recorder is None:
        return
    tick, agent, move, post, was_open = _recorded(model, "transitions", noted, _MOVE)
    columns = {
        "round": np.full(len(tick), model.round, np.int32),
        "tick": tick,
        "agent": agent,
        "trigger": _named(move >> 2 * STATE_BITS, model.chart.triggers),
        "from_state": _named(move >> STATE_BITS & 7, STATE_NAMES),
        "to_state": _named(move & 7, STATE_NAMES),
        "post": post,
        "open": was_open,
    }
    model.recorder.write("transitions", columns)


def record_impressions(model: "SocialModel", tick: Rows, agent: Rows, post: Rows) -> None:
    """Give the round's impressions of the agents that are recorded to the recorder, by tick and agent."""
    if model.recorder is None:
        return
    tick, agent, post = _recorded(model, "impressions", [(tick, agent, post)], _IMPRESSION)
    root = model.posts.root[post]
    columns = {"round": np.full(len(tick), model.round, np.int32), "tick": tick, "agent": agent, "post": post}
    model.recorder.write("impressions", columns | {"root": root})


def record_engagements(model: "SocialModel", tick: Rows, agent: Rows, post: Rows, action: Rows) -> None:
    """Count the round's engagements of each agent; give those that are recorded to the recorder, in their order."""
    if model.recorder is None:
        return
    counted = np.bincount(agent)
    model.recorded.n_engaged[: len(counted)] += counted.astype(np.int32)
    mask = model.recorded["engagements"]
    if mask is not None:
        tick, agent, post, action = (column[mask[agent]] for column in (tick, agent, post, action))
    columns = {"round": np.full(len(tick), model.round, np.int32), "tick": tick, "agent": agent, "post": post}
    columns["root"] = model.posts.root[post]
    model.recorder.write("engagements", columns | {"action": _named(action, ACTIONS)})


def _recorded(
    model: "SocialModel", table: str, chunks: Sequence[tuple[npt.NDArray[Any], ...]], kinds: Sequence[type[np.generic]]
) -> list[npt.NDArray[Any]]:
    """Return columns of all chunks, by tick and agent, without the agents that are not recorded.

    Args:
        model: The model whose sample counts.
        table: The table they are for.
        chunks: Columns (tick, agent, ...); what one agent did in one tick stands in its order.
        kinds: Types of the columns that are returned.
    """
    mask = model.recorded[table]
    if mask is not None:
        chunks = [tuple(column[keep] for column in chunk) for chunk in chunks for keep in (mask[chunk[1]],)]
    none = [np.zeros(0, kind) for kind in kinds]
    columns = [
        np.concatenate(column, dtype=column[0].dtype, casting="unsafe") for column in zip(none, *chunks, strict=True)
    ]
    order = _by_time(columns[0], columns[1])
    return columns if order is None else [column[order] for column in columns]


def _by_time(tick: Rows, agent: Rows) -> npt.NDArray[np.intp] | None:
    """Return the stable order by tick and agent; None where they stand in it already."""
    key = tick.astype(np.int64) << 32 | agent
    return None if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def _named(codes: Rows, names: Sequence[str]) -> pd.Categorical:
    small = codes.astype(np.int8 if len(names) < 128 else np.int16)
    return pd.Categorical.from_codes(small, list(names), validate=False)
