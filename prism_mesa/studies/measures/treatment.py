"""Measures of an intervention: treated minus control agents, or posts (``measure@intervention``).

An intervention with a `share` treats agents, and one with a `coverage` treats posts. ``measure@24`` and
``measure@24-47`` are means over all agents in rounds, in the unit of the measures by agent.
"""

import re
from collections.abc import Callable, Collection, Iterable
from functools import partial
from math import inf, nan
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats
from prism_mesa.domain import ACTIONS
from prism_mesa.errors import ConfigError, printable
from prism_mesa.runs.config import Config
from prism_mesa.social.params.interventions import InterventionParams
from prism_mesa.social.state.act_state import GROUPS
from prism_mesa.social.state.posts import POST
from prism_mesa.social.tables import COUNTERS
from prism_mesa.studies.measures.engagement import stay_intervals
from prism_mesa.studies.measures.measure import FinishedRun, Measure, attribute_values, is_kind, mean

type Rounds = tuple[int, int]
type Rates = Callable[[FinishedRun, Rounds], Floats]
"""Returns a number for each agent from what it did in some rounds, NaN for agents without one; empty if undefined."""


def _acts(config: Config, key: str) -> dict[str | None, InterventionParams]:
    """Return the interventions with a `share` or a `coverage`, by name."""
    holders = [(act, act if key == "share" else act.post_act) for act in config.interventions]
    return {act.name: act for act, holder in holders if getattr(holder, key, None) is not None}


def _rounds(run: FinishedRun, name: str, key: str = "share") -> Rounds | None:
    """Return the first round of an intervention, and the round after its last; None if the run has none with `key`."""
    if (act := _acts(run.config, key).get(name)) is None:
        return None
    return act.at, run.config.rounds if act.until is None else act.until


def check_interventions(measures: Iterable[str], configs: Collection[Config]) -> None:
    """Raise ConfigError if no configuration has the intervention of a measure.

    It needs a `share` for a measure by agent, and a `coverage` for a measure by post.
    """
    for measure in measures:
        base, _, name = measure.partition("@")
        key = "share" if base in by_agent(base) else "coverage" if base in _BY_POST else ""
        names = {str(name) for config in configs for name in _acts(config, key)} if key else set()
        if key and name and name not in names and not _ROUNDS.fullmatch(name):
            known = ", ".join(sorted(names)) or "none"
            raise ConfigError(f"measures: {base}: no intervention {printable(name)!r} has a {key} (with one: {known})")


def _rounds_present(run: FinishedRun, rounds: Rounds) -> Floats:
    """Return in how many of some rounds each agent was on the platform."""
    n = len(run.table("agents"))
    if not run.config.has_churn:
        return np.full(n, float(rounds[1] - rounds[0]))
    agents, starts, ends = stay_intervals(run)
    overlap = np.minimum(ends, rounds[1]) - np.maximum(starts, rounds[0])
    return np.bincount(agents, np.maximum(overlap, 0), minlength=n)


def _rows_in(run: FinishedRun, table: str, rounds: Rounds) -> pd.DataFrame:
    rows = run.table(table)
    return rows[rows["round"].between(*rounds, inclusive="left")]


def _count(table: str, doers: Callable[[pd.DataFrame], Any], run: FinishedRun, rounds: Rounds) -> Floats:
    """Return how often each agent is among the `doers` of a table, per round on the platform.

    It is NaN for agents that were not there, or whose rows of the table are not recorded.
    """
    agents, present = run.table("agents"), _rounds_present(run, rounds)
    if f"recorded_{table}" in agents:
        present = present * agents[f"recorded_{table}"].to_numpy()
    n_done = np.bincount(doers(_rows_in(run, table, rounds)), minlength=len(agents))
    return n_done / np.where(present > 0, present, nan)


def _doers(column: str, value: str) -> Callable[[pd.DataFrame], Any]:
    return lambda rows: rows["agent"][rows[column] == value]


def _count_follows(run: FinishedRun, rounds: Rounds) -> Floats:
    is_live = run.config.network.dynamics == "live"
    return _count("follows", _doers("event", "follow"), run, rounds) if is_live else np.zeros(0)


def _opinions(run: FinishedRun, rounds: Rounds) -> Floats:
    agents, name = run.table("agents"), run.config.opinions.of
    return np.zeros(0) if name is None else np.asarray(agents[name].where(agents["present"]), np.float64)


def _mean_read(attribute: str, run: FinishedRun, rounds: Rounds) -> Floats:
    """Return the mean of an attribute over the posts that each agent read, where true counts as 1."""
    values, rows = attribute_values(run, attribute, "post"), _rows_in(run, "impressions", rounds)
    if any(isinstance(value, str) for value in run.config.attributes[attribute].values or ()):
        raise ConfigError(f"{printable(attribute)}: give it a range, or the values true and false, to read its mean")
    n_agents, readers = len(run.table("agents")), rows["agent"].to_numpy()
    n_read = np.bincount(readers, minlength=n_agents)
    total = np.bincount(readers, values.to_numpy(np.float64)[rows["post"].to_numpy()], minlength=n_agents)
    return total / np.where(n_read > 0, n_read, nan)


def _contrast(values: Floats, groups: Any) -> float:
    """Return the mean of treated minus the mean of control, without NaN; NaN without either."""
    treated, control = (mean(values[(groups == group) & np.isfinite(values)]) for group in GROUPS)
    return treated - control


def _difference(name: str, rates: Rates, run: FinishedRun) -> float:
    """Return the mean of treated minus control agents."""
    rounds = _rounds(run, name)
    values = np.zeros(0) if rounds is None else rates(run, rounds)
    return _contrast(values, run.table("agents")[name].to_numpy()) if len(values) else nan


def _level(rounds: Rounds, rates: Rates, run: FinishedRun) -> float:
    """Return the mean over all agents."""
    values = rates(run, (rounds[0], min(rounds[1], run.config.rounds)))
    return mean(values[np.isfinite(values)])


def _post_difference(column: str, name: str, run: FinishedRun) -> float:
    """Return the mean of treated minus control roots: of a column of `cascades`, or of later engagements."""
    rounds = _rounds(run, name, "coverage")
    if rounds is None:
        return nan
    posts, roots = run.table("posts"), run.table("cascades")["root"].to_numpy()
    start = posts[f"{name}_round"].to_numpy()
    if column == _LATER:
        rows = run.table("engagements")[["root", "round"]]
        is_later = rows["round"].between(start[rows["root"]], rounds[1], inclusive="left")
        values = np.bincount(rows["root"][is_later], minlength=len(posts))[roots].astype(np.float64)
    else:
        values = run.table("cascades")[column].to_numpy(np.float64)
    return _contrast(np.where(start[roots] < rounds[1], values, nan), posts[name].to_numpy()[roots])


_LATER: Final = "later_engagement"
_BY_POST: Final = {
    "size": ("posts", "of cascades"),
    "depth": ("reshares", "of cascades"),
    "breadth": ("posts", "of cascades"),
    "structural_virality": ("steps", "of cascades"),
    _LATER: ("engagements", "since the act began"),
}
_ROUNDS: Final = re.compile(r"(\d+)(?:-(\d+))?")
_EXPOSURE: Final = "exposure_"
_PER_ROUND: Final = "per agent and round", "on the platform"
_ENGAGEMENTS: Final = (*_PER_ROUND, ("engagements", "churn"))
_IMPRESSIONS: Final = (*_PER_ROUND, ("impressions", "churn"))
_BY_AGENT: Final[dict[str, tuple[Rates, str, str, tuple[str, ...]]]] = {
    "impressions": (partial(_count, "impressions", lambda rows: rows["agent"]), *_IMPRESSIONS),
    "engagements": (partial(_count, "engagements", lambda rows: rows["agent"]), *_ENGAGEMENTS),
    **{
        counter: (partial(_count, "engagements", _doers("action", action)), *_ENGAGEMENTS)
        for counter, action in zip(COUNTERS, ACTIONS, strict=True)
    },
    "posts": (partial(_count, "posts", lambda rows: rows["author"][is_kind(rows, POST)]), *_PER_ROUND, ("churn",)),
    "visits": (
        partial(_count, "impressions", lambda rows: rows[["agent", "round"]].drop_duplicates()["agent"]),
        *_IMPRESSIONS,
    ),
    "follows": (_count_follows, *_PER_ROUND, ("follows", "churn")),
    "opinion": (_opinions, "", "at the end of the run", ()),
}


def by_agent(base: str) -> dict[str, tuple[Rates, str, str, tuple[str, ...]]]:
    """Return the measures by agent: the function, unit, a phrase, and the optional tables that it reads.

    A `base` such as ``exposure_misleading`` is the mean of an attribute over the posts that an agent reads.
    """
    if not base.startswith(_EXPOSURE):
        return _BY_AGENT
    mean_read = partial(_mean_read, base.removeprefix(_EXPOSURE))
    return _BY_AGENT | {base: (mean_read, "", "(mean over the posts that an agent reads)", ("impressions",))}


def measures_of_treatment(name: str, base: str) -> tuple[Measure, ...]:
    """Return the measures of an intervention with this name: by agent (see `by_agent`), then by post."""
    whose = f", treated minus control {{}} of intervention `{name}`"
    by_post = (
        Measure(
            *(column, partial(_post_difference, column, name), f"{column} {phrase}{whose.format('posts')}", unit, -inf),
            tables=("engagements",) if column == _LATER else (),
        )
        for column, (unit, phrase) in _BY_POST.items()
    )
    return (*_make_by_agent(base, partial(_difference, name), whose.format("agents")), *by_post)


def measures_in_rounds(text: str, base: str) -> tuple[Measure, ...]:
    """Return the means over all agents in rounds (``24``: from round 24 on; ``24-47``); empty for another text."""
    if not (match := _ROUNDS.fullmatch(text)):
        return ()
    first, last = match.groups()
    rounds = int(first), int(last or 1_000_000_000) + 1
    when = f"from round {first} on" if last is None else f"in rounds {first} to {last}"
    return _make_by_agent(base, partial(_level, rounds), f", {when}")


def _make_by_agent(base: str, number: Callable[[Rates, FinishedRun], float], whose: str) -> tuple[Measure, ...]:
    """Return the measures by agent, each `number` of its function and the run."""
    return tuple(
        Measure(
            name,
            partial(number, rates),
            f"{' '.join(filter(None, (name, unit, phrase)))}{whose}",
            f"{name} {unit}" if unit else "",
            -inf,
            tables=tables,
        )
        for name, (rates, unit, phrase, tables) in by_agent(base).items()
    )
