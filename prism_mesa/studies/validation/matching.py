"""The threshold at which a variant reshares as often as the full model: a null model that nobody engages in is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any, Final

from prism_mesa.errors import RunError
from prism_mesa.params import merged, nested
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.rounds import as_before
from prism_mesa.runs.social import start_run
from prism_mesa.social.tables import SOCIAL_TABLES

AGENTS: Final = 3_000
"""At most so many agents have the small runs in which a threshold is looked for."""

SEEDS: Final = 4
"""Small runs of each threshold."""

NEAR: Final = 0.05
"""So far, as a logarithm, may two rates lie apart that count as the same: a standard error of the ratio of two means
over `SEEDS` runs (between seeds of 3,000 agents of the calibrated world a rate's logarithm has a deviation of .075)."""

STRAW: Final = 1.25
"""Above so many times the full model's rate, or below its inverse, a variant is no fair comparison in its runs."""

_STEPS: Final = 10
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
    """Return a configuration with at most 3,000 agents; a graph from a file stays as it is."""
    if config.agents.n <= AGENTS or config.network.kind == "edges":
        return config
    return config.model_copy(update={"agents": config.agents.model_copy(update={"n": AGENTS})})


def reshare_rate(config: Config) -> float:
    """Run a configuration with 4 seeds, keep nothing, and return all reshares per impression; 0 without impressions."""
    reshares = impressions = 0
    for seed in range(config.seed, config.seed + SEEDS):
        with as_before():
            run = start_run(config.model_copy(update={"seed": seed}))
            summary = run.leave_nothing(RowsInMemory(SOCIAL_TABLES, ()), "rate")
        if summary["status"] != "done":
            raise RunError(f"matching: {summary.get('error', 'the run failed')}")
        reshares += int(summary["engagement"]["reshares"])
        impressions += int(summary["impressions"])
    return reshares / max(1, impressions)


def matched_threshold(config: Config, overrides: Mapping[str, Any], rate: float) -> Match:
    """Return the mean threshold at which a variant is reshared at a rate.

    Where engagement is rare and moods are logistic, rates go with ``exp(-threshold / (sensitivity * mood))``: so a step
    moves the threshold by the logarithm of the ratio of both rates, until two thresholds hold the rate between them;
    from then on by secants (Illinois; Dowell and Jarratt 1971, doi:10.1007/BF01934364). Sensitivity 0 leaves utility as
    relevance: a log-odds is then taken as .03.

    Args:
        config: The full model, as small as the runs are to be.
        overrides: What makes it the variant.
        rate: Reshares per impression of the full model.

    Returns:
        The best threshold of 10 steps (each of 4 runs); its ratio says how near it comes.
    """
    values = merged(config.model_dump(mode="json"), nested(dict(overrides)))
    unit = values["utility"]["sensitivity"] or 0.03
    threshold = float(values["agents"]["threshold_mean"])
    ends: dict[bool, tuple[float, float]] = {}  # whether the rate is too high there -> threshold, log of the ratio
    best, last = Match(threshold, 0.0), None
    for _ in range(_STEPS):
        own = reshare_rate(make_config(merged(values, nested({KEY: threshold})), "matching"))
        now = Match(threshold, own / rate if rate else 1.0)
        best = now if _off(now) < _off(best) else best
        if now.found:
            return now
        off = max(-_FARTHEST, min(_FARTHEST, log(now.ratio) if now.ratio > 0 else -_FARTHEST))
        if last == (off > 0) and (not last) in ends:  # the other end has stayed: it counts half
            ends[not last] = ends[not last][0], ends[not last][1] / 2
        last = off > 0
        ends[last] = threshold, off
        if len(ends) == 2:
            (low, above), (high, below) = ends[True], ends[False]
            threshold = low + (high - low) * above / (above - below)
        else:
            threshold += unit * off
        threshold = round(min(1.0, max(0.0, threshold)), 5)
    return best


def _off(match: Match) -> float:
    return abs(log(match.ratio)) if match.ratio > 0 else float("inf")
