"""Measures of who is there: agents who join, leave and come back (`agents.churn`)."""

from collections.abc import Callable
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.studies.estimators.stays import survival
from prism_mesa.studies.measures.columns import codes_of
from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio, said

_NONE: Final = "NaN without `agents.churn`"


def stays(run: FinishedRun) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return how many rounds each stay on the platform has lasted, and whether it has ended.

    A stay begins with the run, or as an agent joins or comes back; it ends as the agent leaves, or is removed.
    """
    rounds, table = run.config.rounds, run.table("churn")
    table = table.sort_values(["agent", "round"], kind="stable")
    agent, at = table["agent"].to_numpy(np.int64), table["round"].to_numpy(np.int64)
    codes, names = codes_of(table["event"])
    comes = np.isin(codes, [names.index(name) for name in ("join", "back") if name in names])
    is_first, is_last = np.diff(agent, prepend=-1) != 0, np.diff(agent, append=-1) != 0
    began, still = np.where(is_first, 0, np.roll(at, 1)), rounds - at[comes & is_last]
    there = run.table("agents")["present"].to_numpy(np.bool_).copy()
    there[agent] = False
    lengths = np.concatenate([(at - began)[~comes], still, np.full(int(there.sum()), rounds)])
    return lengths, np.arange(len(lengths)) < np.count_nonzero(~comes)


def _median_stay(run: FinishedRun) -> float:
    if not run.config.has_churn:
        return nan
    at, lasts = survival(*run.once(stays))
    return float(at[np.argmax(lasts <= 0.5)]) if len(at) and lasts[-1] <= 0.5 else nan


def _share_there(run: FinishedRun) -> float:
    churn: dict[str, Any] = run.summary.get("churn", {})
    return ratio(churn["there_mean"], churn["rows"]) if churn else nan


def _per_round(event: str) -> Callable[[FinishedRun], float]:
    count = said("churn", "events", event)
    return lambda run: ratio(count(run), run.summary["rounds"])


CHURN: Final = (
    Measure("share_there", _share_there, f"agents who are there, as a mean of rounds; {_NONE}", "share", 0, 1),
    *(
        Measure(f"{name}_per_round", _per_round(event), f"agents who {told} in a round; {_NONE}", "agents per round")
        for name, event, told in (
            ("joined", "join", "join"),
            ("left", "leave", "leave"),
            ("came_back", "back", "come back"),
        )
    ),
    Measure(
        "median_stay",
        _median_stay,
        "how long half of all stays last at most, counted from the beginning of the run at the earliest; NaN if fewer "
        "have ended",
        "rounds",
        source="Kaplan and Meier 1958, doi:10.1080/01621459.1958.10501452",
        tables=("churn",),
    ),
)
