"""Make the row of a round, and write its records."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Rows
from prism_mesa.domain import ACTIONS, SHARE
from prism_mesa.kernels.commit.orders import order_by_tick
from prism_mesa.social.params.accounts import ACCOUNT
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import seen_labels
from prism_mesa.social.state.population import unpack_codes
from prism_mesa.social.tables import ROUND_COUNTS

ROUND_FIELDS: Final = tuple(column.name for column in ROUND_COUNTS)
_MOVE: Final = (np.int32, np.int32, np.uint16, np.int32, np.bool_)
_IMPRESSION: Final = (np.int32, np.int32, np.int32)


def collect(platform: Platform) -> dict[str, float]:
    """Return and record the round's row; the returned row also has the totals of the run."""
    counts = platform.tick_counts
    shares = counts.sum(axis=0) / max(1, int(counts.sum()))
    numbers = {name: int(platform.counts[name]) for name in ROUND_FIELDS}
    names = [state.value for state in platform.states]
    row = {**numbers, **{SHARE + name: share for name, share in zip(names, shares.tolist(), strict=True)}}
    platform.totals.update(numbers)
    platform.agent_ticks += counts.sum(axis=0)
    if platform.recorder is not None and platform.records("rounds"):
        columns = {"round": platform.round, **row}
        platform.recorder.write("rounds", {name: np.array([value]) for name, value in columns.items()})
    if platform.recorder is not None and platform.records("ticks"):
        ticks = {"round": np.full(len(counts), platform.round), "tick": np.arange(1, len(counts) + 1)}
        platform.recorder.write("ticks", ticks | {name: counts[:, i] for i, name in enumerate(names)})
    if platform.recorder is not None and platform.params.accounts and platform.records("accounts"):
        texts = platform.attributes.schema.agents[ACCOUNT].texts
        kinds = {"round": np.full(len(texts), platform.round), "account": _categorical(np.arange(len(texts)), texts)}
        sums = platform.kind_counts.sum(axis=1)
        platform.recorder.write("accounts", kinds | {name: sums[:, i] for i, name in enumerate(names)})
    row |= {"present": int(platform.counts["present"])}
    return row | platform.outcomes.row(platform.totals, platform.population.has_joined)


def record_moves(platform: Platform) -> None:
    """Record the round's transitions, by tick and agent."""
    moves, platform.events.moves = platform.events.moves, []
    if platform.recorder is None or not platform.records("transitions"):
        return
    tick, agent, move, post, was_open = _select_recorded(platform, "transitions", moves, _MOVE)
    trigger, source, target = unpack_codes(move)
    states = [state.value for state in platform.states]
    columns = {
        "round": np.full(len(tick), platform.round, np.int32),
        "tick": tick,
        "agent": agent,
        "trigger": _categorical(trigger, platform.chart.triggers),
        "from_state": _categorical(source, states),
        "to_state": _categorical(target, states),
        "post": post,
        "open": was_open,
    }
    platform.recorder.write("transitions", columns)


def record_impressions(platform: Platform, impressions: Sequence[tuple[Rows, ...]]) -> None:
    """Record the round's impressions, by tick and agent."""
    if platform.recorder is None or not platform.records("impressions"):
        return
    tick, agent, post = _select_recorded(platform, "impressions", impressions, _IMPRESSION)
    root = platform.posts.root[post]
    columns: dict[str, Any] = {"round": np.full(len(tick), platform.round, np.int32), "tick": tick, "agent": agent}
    columns |= {"post": post, "root": root}
    if platform.read_roots.is_used:
        columns["source"] = platform.read_roots.read_counts(agent, root) + 1
    if any(act.label for act in platform.configured.interventions):
        columns["label"] = seen_labels(platform, agent, root)
    platform.recorder.write("impressions", columns)


def record_views(platform: Platform, roots: Sequence[Rows]) -> None:
    """Record this round's number of impressions of a random share of roots (`records.views`)."""
    share = platform.params.records.views
    if platform.recorder is None or not share or not platform.records("views"):
        return
    counts = np.bincount(np.concatenate([np.zeros(0, np.int32), *roots]))
    root = np.flatnonzero(counts)
    root = root[platform.streams.uniform("views", platform.posts.key[root].view(np.int64)) < share]
    columns = {"round": np.full(len(root), platform.round, np.int32), "root": root.astype(np.int32)}
    platform.recorder.write("views", columns | {"impressions": counts[root].astype(np.int32)})


def record_engagements(platform: Platform, tick: Rows, agent: Rows, post: Rows, action: Rows) -> None:
    """Count the round's engagements of each agent, and record them."""
    if platform.recorder is None:
        return
    n_engagements = np.bincount(agent)
    platform.recorded.n_engaged[: len(n_engagements)] += n_engagements.astype(np.int32)
    if not platform.records("engagements"):
        return
    mask = platform.recorded["engagements"]
    if mask is not None:
        tick, agent, post, action = (column[mask[agent]] for column in (tick, agent, post, action))
    columns = {"round": np.full(len(tick), platform.round, np.int32), "tick": tick, "agent": agent, "post": post}
    columns["root"] = platform.posts.root[post]
    platform.recorder.write("engagements", columns | {"action": _categorical(action, ACTIONS)})


def _select_recorded(
    platform: Platform, table: str, chunks: Sequence[tuple[npt.NDArray[Any], ...]], kinds: Sequence[type[np.generic]]
) -> list[npt.NDArray[Any]]:
    """Return the columns (tick, agent, ...) of all chunks for recorded agents, by tick and agent, in these types."""
    mask = platform.recorded[table]
    if mask is not None:
        chunks = [tuple(column[keep] for column in chunk) for chunk in chunks for keep in (mask[chunk[1]],)]
    empty = [np.zeros(0, kind) for kind in kinds]
    columns = [
        np.concatenate(column, dtype=column[0].dtype, casting="unsafe") for column in zip(empty, *chunks, strict=True)
    ]
    order = order_by_tick(columns[0], columns[1], platform.params.ticks_per_round + 2, len(platform.population))
    return [column.take(order) for column in columns]


def _categorical(codes: Rows, names: Sequence[str]) -> pd.Categorical:
    small_codes = codes.astype(np.int8 if len(names) < 128 else np.int16)
    return pd.Categorical.from_codes(small_codes, dtype=_categories(tuple(names)), validate=False)


@lru_cache(maxsize=64)
def _categories(names: tuple[str, ...]) -> pd.CategoricalDtype:
    """Return the type of a column with these names; creating it takes as long as filling a column."""
    return pd.CategoricalDtype(list(names))
