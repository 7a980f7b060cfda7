"""Measures of windows of use: what an agent did in a round in which it came online, and how persons differ in it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.social.behavior import FEED_READY
from prism_mesa.social.state.posts import POST
from prism_mesa.streams import Streams
from prism_mesa.studies.measures.measure import FinishedRun, Measure, category_codes, is_kind, measured_rounds, ratio

type Ints = npt.NDArray[np.integer[Any]]
type Mask = npt.NDArray[np.bool_]

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
    """Windows of use, and which of four things was done in each.

    Attributes:
        agent: Whose each is, ascending.
        did: Action, or `post`, -> in which of them it was done.
        possible: How many there would be if these agents came online in every round.
    """

    agent: Ints
    round: Ints
    did: dict[str, Mask]
    possible: int


def usage_windows(run: FinishedRun) -> Windows:
    """Return the windows of use of agents whose transitions and engagements are recorded.

    Rounds of the first day are left out where posts of it are (see `measure.measured_rounds`).
    """
    agents, moves = run.table("agents"), run.table("transitions")
    first, _ = measured_rounds(run.config)
    known = (agents["recorded_transitions"] & agents["recorded_engagements"]).to_numpy()
    codes, triggers = category_codes(moves["trigger"])
    opened = codes == (triggers.index(FEED_READY) if FEED_READY in triggers else len(triggers))
    rounds, n = run.config.rounds, len(agents)

    def keys(agent: Ints, round_: Ints) -> Ints:
        some = (round_ >= first) & (round_ < rounds) & known[agent]
        return np.unique(agent[some].astype(np.int64) * rounds + round_[some])

    used = keys(moves["agent"].to_numpy()[opened], moves["round"].to_numpy()[opened])
    engaged = run.table("engagements")
    actions, names = category_codes(engaged["action"])
    did: dict[str, Mask] = {}
    for action in ACTIONS:
        mine = actions == (names.index(action) if action in names else len(names))
        done = keys(engaged["agent"].to_numpy()[mine], engaged["round"].to_numpy()[mine])
        did[action] = np.isin(used, done, assume_unique=True)
    posts = run.table("posts")
    own = posts[is_kind(posts, POST)]
    wrote = own["author"].to_numpy()
    inside = (wrote >= 0) & (wrote < n)
    did["post"] = np.isin(used, keys(wrote[inside], own["written"].to_numpy()[inside]), assume_unique=True)
    return Windows(used // rounds, used % rounds, did, int(known.sum()) * (rounds - first))


def _share(action: str) -> Callable[[FinishedRun], float]:
    def share(run: FinishedRun) -> float:
        did = run.once(usage_windows).did[action]
        return ratio(float(did.sum()), len(did))

    return share


def _none(run: FinishedRun) -> float:
    did = np.stack(list(run.once(usage_windows).did.values()))
    return ratio(float((~did.any(axis=0)).sum()), did.shape[1])


def person_shares(agent: Ints, round_: Ints, did: Mask, seed: int) -> npt.NDArray[np.float64]:
    """Return the share of windows in which a person did a thing, of persons sampled as experience sampling does.

    Each agent with any window is a person. It is asked after so many of its windows as somebody in the data was
    (`USED_WINDOWS`, drawn by agent), or after all if it has fewer; which ones is drawn.
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


def _never(run: FinishedRun) -> float:
    shares = run.once(_persons)
    return ratio(float((shares == 0).sum()), len(shares))


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
    Measure("persons_never_reshared", _never, "persons that reshared in no window of such a sample", *_SHARE),
)
