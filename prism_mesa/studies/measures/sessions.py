"""Measures of windows of use: what an agent did in a round in which it came online, and how persons differ in it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import ACTIONS
from prism_mesa.social.behavior import FEED_READY
from prism_mesa.social.state.posts import POST
from prism_mesa.streams import Streams
from prism_mesa.studies.measures.measure import FinishedRun, Ints, Mask, Measure, is_kind, mean, measured_rounds, ratio

_TABLES: Final = ("transitions", "engagements")
_ESM: Final = "Oldemburgo de Mello, Cheung and Inzlicht 2024, doi:10.1038/s44271-024-00062-z"
_SHARE: Final = ("share", 0, 1, _ESM, _TABLES)

USED_WINDOWS: Final = (
    *(23, 27, 26, 18, 21, 18, 14, 11, 11, 17, 9, 7, 4, 3, 10, 6),
    *(1, 1, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
)
"""How many of the 234 persons of the experience-sampling data were asked after 1, 2, 3, ... windows of use."""


@dataclass(frozen=True)
class Windows:
    """Windows of use, and which of four things the agent did in each.

    Attributes:
        agent: The agent of each window, ascending.
        round: The round of each window.
        did: Action, or `post`, -> in which windows it was done.
        possible: The number of windows if these agents came online in every round.
    """

    agent: Ints
    round: Ints
    did: dict[str, Mask]
    possible: int


def usage_windows(run: FinishedRun) -> Windows:
    """Return the windows of use of agents whose transitions and engagements are recorded.

    The first day is left out if its posts are (see `measure.measured_rounds`).
    """
    agents, moves = run.table("agents"), run.table("transitions")
    first, _ = measured_rounds(run.config)
    known = (agents["recorded_transitions"] & agents["recorded_engagements"]).to_numpy()
    rounds = run.config.rounds

    def keys(rows: pd.DataFrame, agent: str = "agent", round_: str = "round") -> Ints:
        """Return a number for each agent and round in which it has a row."""
        who, when = rows[agent].to_numpy(), rows[round_].to_numpy()
        counted = (when >= first) & (when < rounds) & known[who]
        return np.unique(who[counted].astype(np.int64) * rounds + when[counted])

    used = keys(moves[moves["trigger"] == FEED_READY])
    engaged, posts = run.table("engagements"), run.table("posts")
    done = {action: keys(engaged[engaged["action"] == action]) for action in ACTIONS}
    by_agents = is_kind(posts, POST) & posts["author"].between(0, len(agents), inclusive="left")
    done["post"] = keys(posts[by_agents], "author", "written")
    did = {action: np.isin(used, active, assume_unique=True) for action, active in done.items()}
    return Windows(used // rounds, used % rounds, did, int(known.sum()) * (rounds - first))


def _share(action: str) -> Callable[[FinishedRun], float]:
    return lambda run: mean(run.once(usage_windows).did[action])


def _none(run: FinishedRun) -> float:
    did = np.stack(list(run.once(usage_windows).did.values()))
    return mean(~did.any(axis=0))


def person_shares(agent: Ints, round_: Ints, did: Mask, seed: int) -> npt.NDArray[np.float64]:
    """Return the share of windows in which each person did something, with persons sampled as in the data.

    Each agent with a window is a person. It is asked about as many of its windows as a random person of the data
    (`USED_WINDOWS`), or about all if it has fewer; the windows are drawn, too.
    """
    draws = Streams(seed)
    persons, place = np.unique(agent, return_inverse=True)
    if not len(persons):
        return np.zeros(0)
    ends = np.cumsum(USED_WINDOWS)
    wanted = 1 + np.searchsorted(ends, draws.uniform("windows asked of", persons) * ends[-1], side="right")
    order = np.lexsort((draws.uniform("window asked", agent, round_=round_), place))
    begins = np.searchsorted(place[order], np.arange(len(persons)))
    rank = np.arange(len(order)) - begins[place[order]]
    asked = order[rank < wanted[place[order]]]
    return np.bincount(place[asked], did[asked]) / np.bincount(place[asked])


def _persons(run: FinishedRun) -> npt.NDArray[np.float64]:
    windows = run.once(usage_windows)
    return person_shares(windows.agent, windows.round, windows.did["reshare"], run.config.seed)


def _spread(run: FinishedRun) -> float:
    shares = run.once(_persons)
    return float(shares.std(ddof=1)) if len(shares) > 1 else nan


_DONE: Final = {"like": "liked", "reshare": "reshared", "reply": "replied", "post": "posted"}

SESSIONS: Final = (
    *(
        Measure(
            f"window_{done}",
            _share(action),
            "windows of use (an agent in a round in which it came online, after the first day in runs of 60 hours or "
            f"more; of agents that are recorded) in which it {done}",
            *_SHARE,
        )
        for action, done in _DONE.items()
    ),
    Measure("window_none", _none, "windows of use in which it did none of the four", *_SHARE),
    Measure(
        "window_used",
        lambda run: ratio(len(run.once(usage_windows).agent), run.once(usage_windows).possible),
        "rounds that are windows of use, of all rounds of the same agents",
        *_SHARE,
    ),
    Measure(
        "persons_reshared_sd",
        _spread,
        "standard deviation over persons of the share of their windows in which they reshared, in samples of as many "
        "windows as persons of the data were asked after",
        *_SHARE,
    ),
    Measure(
        "persons_never_reshared",
        lambda run: mean(run.once(_persons) == 0),
        "persons that reshared in no window of such a sample",
        *_SHARE,
    ),
)
