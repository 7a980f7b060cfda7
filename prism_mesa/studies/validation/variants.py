"""Null models and ablations as named overrides, and the threshold at which one reshares as often as the full model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

from prism_mesa.errors import ConfigError, RunError, did_you_mean
from prism_mesa.params import merged, nested
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.rounds import as_before
from prism_mesa.runs.social import start_run
from prism_mesa.social.tables import SOCIAL_TABLES


@dataclass(frozen=True)
class Variant:
    """A configuration with something taken away or added.

    Attributes:
        told: What is so in it.
        matched: Whether `agents.threshold_mean` is moved until an impression is reshared as often as before (see
            `matching`). So it is where what is taken away would otherwise only make engagement rarer or more frequent;
            where the change of rates is itself the pattern, it is not.
        null: Whether it is a null model, else an ablation.
    """

    told: str
    overrides: Mapping[str, Any]
    matched: bool = False
    null: bool = False


FULL: Final = "full"  # what the configuration itself is called beside its variants

VARIANTS: Final[Mapping[str, Variant]] = {
    "one_probability": Variant(
        "every impression is reshared with one probability, whatever is read and by whom",
        {
            "utility.weight": 0.0,
            "utility.appeal_sigma": 0.0,
            "utility.theta": 0.0,
            "utility.reshared": 0.0,
            "utility.closeness": None,
            "agents.threshold_sd": 0.0,
            "agents.propensity_sigma": 0.0,
        },
        matched=True,
        null=True,
    ),
    "constant_per_hop": Variant(
        "a reshare is passed on with a tenth of the odds, whatever its appeal",
        {"utility.gamma": 1.0, "utility.reshared": round(log(0.1), 4)},
        matched=True,
        null=True,
    ),
    "no_appeal": Variant("all posts have the same appeal", {"utility.appeal_sigma": 0.0}, matched=True),
    "no_loss": Variant("a reshare loses no force (gamma 1)", {"utility.gamma": 1.0, "utility.reshared": 0.0}),
    "no_recency": Variant("age does not count", {"utility.theta": 0.0}, matched=True),
    "no_close_ties": Variant("close ties count as all others", {"utility.closeness": None}),
    "equal_activity": Variant(
        "all are equally active", {"agents.activity_sigma": 0.0, "agents.post_sigma": 0.0, "agents.popularity": 0.0}
    ),
    "flat_hours": Variant("all hours are alike", {"agents.hours": None}),
    "no_bursts": Variant("rounds are independent", {"agents.persistence": 0.0}),
    "alike_persons": Variant(
        "persons do not differ in what they do",
        {"agents.threshold_sd": 0.0, "agents.propensity_sigma": 0.0},
        matched=True,
    ),
    "small_audience": Variant("an agent follows 20", {"network.mean_degree": 20}),
    "no_mood": Variant("an agent's mood does not count", {"utility.mood": 0.0}, matched=True),
    "repeats": Variant("others who reshare a root show it again", {"feed.repeats": True}, matched=True),
    "own_hours": Variant("persons have habits: hours of their own", {"agents.rhythm": 1.0}),
}
"""All null models and ablations by name."""


def chosen_variants(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of variants, each once; `all` stands for all, `nulls` for the null models.

    Raises:
        ConfigError: If there is no such variant.
    """
    found: list[str] = []
    for name in names:
        if name == "all":
            found += VARIANTS
        elif name == "nulls":
            found += [one for one, variant in VARIANTS.items() if variant.null]
        elif name in VARIANTS:
            found.append(name)
        else:
            known = ["all", "nulls", *VARIANTS]
            raise ConfigError(f"--variant: no variant {name!r} ({', '.join(known)}).{did_you_mean(name, known)}")
    return tuple(dict.fromkeys(found))


AGENTS: Final = 3_000  # at most so many agents have the small runs in which a threshold is first looked for
SEEDS: Final = 4  # small runs of each threshold; of the world itself it is one
NEAR: Final = 0.05
"""So far, as a logarithm, may two rates lie apart that count as the same: a standard error of the ratio of two means
over `SEEDS` small runs (between seeds of 3,000 agents of the calibrated world a rate's logarithm has a deviation of
.075)."""

STRAW: Final = 1.25
"""Above so many times the full model's rate, or below its inverse, a variant is no fair comparison in its runs."""

STEPS: Final = 10  # thresholds that are tried for a variant at most
_FARTHEST: Final = 3.0  # log-odds by which a threshold is moved at most in one step
KEY: Final = "agents.threshold_mean"


@dataclass(frozen=True)
class Match:
    """What was found.

    Attributes:
        threshold: The value of `agents.threshold_mean`.
        ratio: Reshares per impression of the variant, as a multiple of the full model's, in the last runs that looked
            for it.
    """

    threshold: float
    ratio: float

    @property
    def found(self) -> bool:
        """Whether the rates are the same."""
        return abs(log(self.ratio)) <= NEAR if self.ratio > 0 else False


def worlds(config: Config) -> tuple[tuple[Config, int], ...]:
    """Return where a threshold is looked for, each world with its number of seeds.

    First in one of 3,000 agents, then from there in the world itself, since rates hang on its size; a world that is
    small, or whose graph is from a file, stands alone. Where an LLM decides, the rule does here: every threshold would
    ask it anew.
    """
    if config.reasoner.kind not in ("rule", "distilled"):
        config = config.model_copy(update={"reasoner": ReasonerParams(kind="rule")})
    if config.agents.n <= AGENTS or config.network.kind == "edges":
        return ((config, SEEDS),)
    small = config.model_copy(update={"agents": config.agents.model_copy(update={"n": AGENTS})})
    return (small, SEEDS), (config, 1)


def reshare_rate(config: Config, seeds: int) -> float:
    """Run a configuration with some seeds, keep nothing, and return reshares per impression; 0 without impressions."""
    reshares = impressions = 0
    for seed in range(config.seed, config.seed + seeds):
        with as_before():
            run = start_run(config.model_copy(update={"seed": seed}))
            summary = run.run_in_memory(RowsInMemory(SOCIAL_TABLES, ()), "rate")
        if summary["status"] != "done":
            raise RunError(f"matching: {summary.get('error', 'the run failed')}")
        reshares += int(summary["engagement"]["reshares"])
        impressions += int(summary["impressions"])
    return reshares / max(1, impressions)


def matched_threshold(
    config: Config,
    overrides: Mapping[str, Any],
    rates: Sequence[float],
    *,
    on_step: Callable[[], object] = lambda: None,
) -> Match:
    """Return the mean threshold at which a variant is reshared as often as the full model.

    Args:
        config: The full model.
        overrides: What makes it the variant.
        rates: Reshares per impression of the full model in each of its `worlds`.
        on_step: Called after each threshold that was tried, at most 10 in each world.

    Returns:
        What was found in the last of these worlds.
    """
    found = Match(config.agents.threshold_mean, 0.0)
    for (world, seeds), rate in zip(worlds(config), rates, strict=True):
        found = _matched(world, seeds, {**overrides, KEY: found.threshold}, rate, on_step)
    return found


def _matched(
    config: Config, seeds: int, overrides: Mapping[str, Any], rate: float, on_step: Callable[[], object]
) -> Match:
    """Return the mean threshold at which a variant is reshared at a rate; it starts from that of the overrides.

    Where engagement is rare and moods are logistic, rates go with ``exp(-threshold / (sensitivity * mood))``: so a step
    moves the threshold by the logarithm of the ratio of both rates, until two thresholds hold the rate between them;
    from then on by secants (Illinois; Dowell and Jarratt 1971, doi:10.1007/BF01934364). Sensitivity 0 leaves utility as
    relevance: a log-odds is then taken as .03. The best of 10 steps is returned; its ratio says how near it comes.
    """
    values = merged(config.model_dump(mode="json"), nested(dict(overrides)))
    unit = values["utility"]["sensitivity"] or 0.03
    threshold = float(values["agents"]["threshold_mean"])
    ends: dict[bool, tuple[float, float]] = {}  # whether the rate is too high there -> threshold, log of the ratio
    best, last = Match(threshold, 0.0), None
    for _ in range(STEPS):
        own = reshare_rate(make_config(merged(values, nested({KEY: threshold})), "matching"), seeds)
        on_step()
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
