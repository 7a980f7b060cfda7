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
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.errors import ConfigError, printable
from prism_mesa.runs.config import Config
from prism_mesa.social.params.interventions import InterventionParams
from prism_mesa.social.state.assignments import GROUPS
from prism_mesa.social.state.posts import POST
from prism_mesa.social.tables import COUNTERS
from prism_mesa.studies.measures.engagement import stay_intervals
from prism_mesa.studies.measures.measure import FinishedRun, Measure, is_kind, mean

type Floats = npt.NDArray[np.float64]
type Rounds = tuple[int, int]
type Count = Callable[[FinishedRun, Rounds], tuple[Floats, npt.NDArray[np.bool_]]]
"""Returns how many of something each agent has in some rounds, and which agents are recorded."""


def _acts(config: Config, key: str) -> dict[str | None, InterventionParams]:
    """Return the interventions with a `share` or a `coverage`, by name."""
    acts = config.interventions
    if key == "share":
        return {act.name: act for act in acts if act.share is not None}
    return {act.name: act for act in acts if act.post_act is not None and act.post_act.coverage is not None}


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
        key = "share" if base in COUNTS else "coverage" if base in _BY_POST else ""
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


def _count_rows(table: str, action: str, run: FinishedRun, rounds: Rounds) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return how many rows of a table each agent has in some rounds, and which agents are recorded."""
    rows, agents = run.table(table), run.table("agents")
    is_counted = rows["round"].between(*rounds, inclusive="left")
    if action:
        is_counted &= rows["action"] == action
    counts = np.bincount(rows["agent"][is_counted], minlength=len(agents))
    return counts.astype(np.float64), agents[f"recorded_{table}"].to_numpy(np.bool_)


def _count_posts(run: FinishedRun, rounds: Rounds) -> tuple[Floats, npt.NDArray[np.bool_]]:
    posts, n = run.table("posts"), len(run.table("agents"))
    is_counted = is_kind(posts, POST) & posts["round"].between(*rounds, inclusive="left").to_numpy()
    return np.bincount(posts["author"][is_counted], minlength=n).astype(np.float64), np.ones(n, np.bool_)


def _rates(count: Count, run: FinishedRun, rounds: Rounds) -> Floats:
    """Return each agent's number per round on the platform; NaN for agents who were not there or are not recorded."""
    counts, is_recorded = count(run, rounds)
    present = _rounds_present(run, rounds)
    return counts / np.where(is_recorded & (present > 0), present, np.nan)


def _difference(count: Count, name: str, run: FinishedRun) -> float:
    """Return the mean of treated minus control agents, per round on the platform; NaN without either."""
    rounds = _rounds(run, name)
    if rounds is None:
        return nan
    rates, groups = _rates(count, run, rounds), run.table("agents")[name].to_numpy()
    treated, control = (mean(rates[(groups == group) & np.isfinite(rates)]) for group in GROUPS)
    return treated - control


def _level(count: Count, rounds: Rounds, run: FinishedRun) -> float:
    """Return the mean over all agents, per round on the platform."""
    rates = _rates(count, run, (rounds[0], min(rounds[1], run.config.rounds)))
    return mean(rates[np.isfinite(rates)])


def _count_visits(run: FinishedRun, rounds: Rounds) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return in how many of some rounds each agent read a post, and which agents are recorded."""
    rows, agents = run.table("impressions"), run.table("agents")
    read = rows.loc[rows["round"].between(*rounds, inclusive="left"), ["agent", "round"]].drop_duplicates()
    counts = np.bincount(read["agent"], minlength=len(agents))
    return counts.astype(np.float64), agents["recorded_impressions"].to_numpy(np.bool_)


def _post_difference(column: str, name: str, run: FinishedRun) -> float:
    """Return the mean of a column of cascades for treated minus control roots; NaN without either."""
    rounds = _rounds(run, name, "coverage")
    if rounds is None:
        return nan
    posts, trees = run.table("posts"), run.table("cascades")
    trees = trees[posts[f"{name}_round"].to_numpy()[trees["root"].to_numpy()] < rounds[1]]
    groups = posts[name].to_numpy()[trees["root"].to_numpy()]
    treated, control = (mean(trees[column].to_numpy(np.float64)[groups == group]) for group in GROUPS)
    return treated - control


def _later_engagement(name: str, run: FinishedRun) -> float:
    """Return the mean number of engagements since the act began, treated minus control roots; NaN without either."""
    rounds = _rounds(run, name, "coverage")
    if rounds is None:
        return nan
    posts, rows = run.table("posts"), run.table("engagements")
    start, root = posts[f"{name}_round"].to_numpy(), rows["root"].to_numpy()
    is_later = (rows["round"].to_numpy() >= start[root]) & (rows["round"].to_numpy() < rounds[1])
    counts = np.bincount(root[is_later], minlength=len(posts)).astype(np.float64)
    groups = posts[name].to_numpy()
    treated, control = (mean(counts[(groups == group) & (start < rounds[1])]) for group in GROUPS)
    return treated - control


_SHAPES: Final = {"size": "posts", "depth": "reshares", "breadth": "posts", "structural_virality": "steps"}
_BY_POST: Final = (*_SHAPES, "later_engagement")
_ROUNDS: Final = re.compile(r"(\d+)(?:-(\d+))?")
COUNTS: Final[dict[str, tuple[Count, tuple[str, ...]]]] = {
    "impressions": (partial(_count_rows, "impressions", ""), ("impressions", "churn")),
    "engagements": (partial(_count_rows, "engagements", ""), ("engagements", "churn")),
    **{
        counter: (partial(_count_rows, "engagements", action), ("engagements", "churn"))
        for counter, action in zip(COUNTERS, ACTIONS, strict=True)
    },
    "posts": (_count_posts, ("churn",)),
    "visits": (_count_visits, ("impressions", "churn")),
}
"""What measures by agent count, and the optional tables that they read."""


def measures_of_treatment(name: str) -> tuple[Measure, ...]:
    """Return the measures of an intervention with this name: by agent, then by post."""
    whose = f"treated minus control posts of intervention `{name}`"
    by_post = [
        Measure(column, partial(_post_difference, column, name), f"{column} of cascades, {whose}", unit, -inf)
        for column, unit in _SHAPES.items()
    ]
    meaning = f"engagements since the act began, {whose}"
    later = partial(_later_engagement, name)
    by_post.append(Measure("later_engagement", later, meaning, "engagements", -inf, tables=("engagements",)))
    return (*_by_agent(_difference, name, f", treated minus control agents of intervention `{name}`", -inf), *by_post)


def measures_in_rounds(text: str) -> tuple[Measure, ...]:
    """Return the means over all agents in rounds (``24``: from round 24 on; ``24-47``); empty for another text."""
    if not (match := _ROUNDS.fullmatch(text)):
        return ()
    first, last = match.groups()
    rounds = int(first), int(last or 1_000_000_000) + 1
    when = f"from round {first} on" if last is None else f"in rounds {first} to {last}"
    return _by_agent(_level, rounds, f", {when}", 0.0)


def _by_agent(
    function: Callable[[Count, Any, FinishedRun], float], argument: object, whose: str, low: float
) -> tuple[Measure, ...]:
    """Return a measure for each count: `function` of the count, an argument and the run."""
    unit = "per agent and round"
    return tuple(
        Measure(
            measure,
            partial(function, count, argument),
            f"{measure} {unit} on the platform{whose}",
            f"{measure} {unit}",
            low,
            tables=tables,
        )
        for measure, (count, tables) in COUNTS.items()
    )
