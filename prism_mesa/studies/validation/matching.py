"""The threshold at which a variant reshares as often as the full model: a null model that nobody engages in is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from typing import Any, Final

from prism_mesa.errors import RunError
from prism_mesa.params import merged, nested
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.in_memory import RowsInMemory
from prism_mesa.runs.lifecycle import as_before
from prism_mesa.runs.social import start_run
from prism_mesa.social.tables import SOCIAL_TABLES

AGENTS: Final = 5_000
"""At most so many agents has the small run in which a threshold is looked for."""

NEAR: Final = 0.03
"""So far, as a logarithm, may two rates lie apart that count as the same."""

_STEPS: Final = 8
_FARTHEST: Final = 3.0
"""Log-odds by which a threshold is moved at most in one step."""

KEY: Final = "agents.threshold_mean"


@dataclass(frozen=True)
class Match:
    """What was found.

    Attributes:
        threshold: The value of `agents.threshold_mean`.
        ratio: Reshares per impression of the variant, as a multiple of the full model's, in the small runs.
    """

    threshold: float
    ratio: float

    @property
    def found(self) -> bool:
        """Whether the rates are the same."""
        return abs(log(self.ratio)) <= NEAR if self.ratio > 0 else False


def small(config: Config) -> Config:
    """Return a configuration with at most 5,000 agents; a graph from a file stays as it is."""
    if config.agents.n <= AGENTS or config.network.kind == "edges":
        return config
    return config.model_copy(update={"agents": config.agents.model_copy(update={"n": AGENTS})})


def reshare_rate(config: Config) -> float:
    """Run a configuration, keep nothing, and return its reshares per impression; 0 without impressions."""
    with as_before():
        summary = start_run(config).leave_nothing(RowsInMemory(SOCIAL_TABLES, ()), "rate")
    if summary["status"] != "done":
        raise RunError(f"matching: {summary.get('error', 'the run failed')}")
    return float(summary["engagement"]["reshares"]) / max(1, int(summary["impressions"]))


def matched_threshold(config: Config, overrides: Mapping[str, Any], rate: float) -> Match:
    """Return the mean threshold at which a variant is reshared at a rate.

    Where engagement is rare and moods are logistic, rates go with ``exp(-threshold / (sensitivity * mood))``: each step
    moves the threshold by the logarithm of the ratio of both rates, and halves where two steps hold it between them.
    Sensitivity 0 leaves utility as relevance: a log-odds is then taken as .03.

    Args:
        config: The full model, as small as the runs are to be.
        overrides: What makes it the variant.
        rate: Reshares per impression of the full model.

    Returns:
        The best threshold of 8 steps; its ratio says how near it comes.
    """
    values = merged(config.model_dump(mode="json"), nested(dict(overrides)))
    unit = values["utility"]["sensitivity"] or 0.03
    threshold = float(values["agents"]["threshold_mean"])
    low, high = 0.0, 1.0  # the rate is too high at `low`, too low at `high`
    best = Match(threshold, 0.0)
    for _ in range(_STEPS):
        own = reshare_rate(make_config(merged(values, nested({KEY: threshold})), "matching"))
        now = Match(threshold, own / rate if rate else 1.0)
        best = now if _off(now) < _off(best) else best
        if now.found:
            return now
        low, high = (threshold, high) if now.ratio > 1 else (low, threshold)
        step = (
            _FARTHEST if now.ratio > exp(_FARTHEST) else -_FARTHEST if now.ratio < exp(-_FARTHEST) else log(now.ratio)
        )
        moved = threshold + unit * step
        threshold = round(moved if low < moved < high else (low + high) / 2, 5)
    return best


def _off(match: Match) -> float:
    return abs(log(match.ratio)) if match.ratio > 0 else float("inf")
