"""Null models and ablations as named overrides, and the matching of their reshare rates to the full model's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any, Final

from prism_mesa.errors import ConfigError, RunError, did_you_mean
from prism_mesa.params import merged, nested
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.rounds import without_repeated_warnings
from prism_mesa.runs.social import start_run
from prism_mesa.social.tables import SOCIAL_TABLES


@dataclass(frozen=True)
class Variant:
    """A configuration with a mechanism removed or added: a null model or an ablation.

    If `matched`, `agents.threshold_mean` is moved until impressions are reshared as often as in the full model, because
    most variants would otherwise only change the rate of engagement.
    """

    label: str
    overrides: Mapping[str, Any]
    matched: bool = False
    null: bool = False


FULL: Final = "full"  # the arm of the configuration itself

VARIANTS: Final[Mapping[str, Variant]] = {
    "one_probability": Variant(
        "all impressions are reshared with the same probability",
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
        "a reshare is reshared with a tenth of the odds, whatever its appeal",
        {"utility.gamma": 1.0, "utility.reshared": round(log(0.1), 4)},
        matched=True,
        null=True,
    ),
    "no_appeal": Variant("all posts have the same appeal", {"utility.appeal_sigma": 0.0}, matched=True),
    "no_loss": Variant("a reshare is as appealing as its post", {"utility.gamma": 1.0, "utility.reshared": 0.0}),
    "no_recency": Variant("age does not count", {"utility.theta": 0.0}, matched=True),
    "no_close_ties": Variant("close ties count as all others", {"utility.closeness": None}),
    "equal_activity": Variant(
        "agents are equally active", {"agents.activity_sigma": 0.0, "agents.post_sigma": 0.0, "agents.popularity": 0.0}
    ),
    "flat_hours": Variant("all hours are alike", {"agents.hours": None}),
    "no_bursts": Variant("rounds are independent", {"agents.persistence": 0.0}),
    "alike_persons": Variant(
        "agents do not differ in their thresholds and propensities",
        {"agents.threshold_sd": 0.0, "agents.propensity_sigma": 0.0},
        matched=True,
    ),
    "small_audience": Variant("agents follow 20 others", {"network.mean_degree": 20}),
    "no_mood": Variant("an agent's mood does not count", {"utility.mood": 0.0}, matched=True),
    "repeats": Variant("reshares show a root again", {"feed.repeats": True}, matched=True),
    "own_hours": Variant("agents have their own habitual hours", {"agents.rhythm": 1.0}),
}
"""All null models and ablations by name."""


def select_variants(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of variants without repetitions; `all` stands for all variants, `nulls` for the null models."""
    groups = {"all": list(VARIANTS), "nulls": [name for name, variant in VARIANTS.items() if variant.null]}
    members = {**groups, **{name: [name] for name in VARIANTS}}
    for name in names:
        if name not in members:
            raise ConfigError(f"--variant: no variant {name!r} ({', '.join(members)}).{did_you_mean(name, members)}")
    return tuple(dict.fromkeys(chosen for name in names for chosen in members[name]))


AGENTS: Final = 3_000  # agents of the small runs in which a threshold is first searched
SEEDS: Final = 4  # seeds of the small runs for a threshold; the configuration itself runs with one seed
MAX_DISTANCE: Final = 0.05
"""Largest difference of the logarithms of equal rates: about the standard error of the ratio of two means over `SEEDS`
small runs (the logarithm of a rate varies between seeds by .075)."""

MAX_RATIO: Final = 1.25
"""Largest ratio of a variant's rate and the full model's, or its inverse, for a fair comparison."""

STEPS: Final = 10  # maximum number of thresholds for a variant in each world
_MAX_STEP: Final = 3.0  # largest step of a threshold, in log-odds
KEY: Final = "agents.threshold_mean"


@dataclass(frozen=True)
class Match:
    """The threshold of a variant (`agents.threshold_mean`).

    `ratio` is the variant's reshares per impression as a multiple of the full model's, in the last runs of the search.
    """

    threshold: float
    ratio: float

    @property
    def distance(self) -> float:
        """The absolute difference of the logarithms of both rates."""
        return abs(log(self.ratio)) if self.ratio > 0 else inf

    @property
    def is_close(self) -> bool:
        """Whether the rates are equal."""
        return self.distance <= MAX_DISTANCE


def worlds(config: Config) -> tuple[tuple[Config, int], ...]:
    """Return the worlds in which a threshold is searched, with their numbers of seeds.

    The first has 3,000 agents, the second is the configuration itself, since rates depend on size. A small world, or
    one with a graph from a file, is the only one. The rule replaces an LLM, whose answers would not be reused.
    """
    if config.reasoner.kind not in ("rule", "distilled"):
        config = config.model_copy(update={"reasoner": ReasonerParams(kind="rule")})
    if config.agents.n <= AGENTS or config.network.kind == "edges":
        return ((config, SEEDS),)
    small = config.model_copy(update={"agents": config.agents.model_copy(update={"n": AGENTS})})
    return (small, SEEDS), (config, 1)


def reshare_rate(config: Config, seeds: int) -> float:
    """Run a configuration with several seeds, and return the reshares per impression; 0 without impressions."""
    reshares = impressions = 0
    for seed in range(config.seed, config.seed + seeds):
        with without_repeated_warnings():
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
    """Return the threshold, in the last of the model's `worlds`, at which a variant is reshared as often as the model.

    `rates` has the full model's reshares per impression in these worlds; `on_step` is called after each threshold.
    """
    match = Match(config.agents.threshold_mean, 0.0)
    for (world, seeds), rate in zip(worlds(config), rates, strict=True):
        match = _search(world, seeds, {**overrides, KEY: match.threshold}, rate, on_step)
    return match


def _search(
    config: Config, seeds: int, overrides: Mapping[str, Any], rate: float, on_step: Callable[[], object]
) -> Match:
    """Return the best of 10 thresholds at which a variant is reshared at a rate, starting from the overrides.

    For rare engagement and logistic moods, rates are proportional to ``exp(-threshold / (sensitivity * mood))``. So
    steps move the threshold by the logarithm of the ratio of both rates until two thresholds enclose the rate, and then
    use secants (Illinois; Dowell and Jarratt 1971, doi:10.1007/BF01934364). With sensitivity 0, utility is relevance,
    and a step of 1 in log-odds is taken as .03.
    """
    values = merged(config.model_dump(mode="json"), nested(dict(overrides)))
    unit = values["utility"]["sensitivity"] or 0.03
    threshold = float(values["agents"]["threshold_mean"])
    ends: dict[bool, tuple[float, float]] = {}  # whether the rate is too high -> threshold, log of the ratio
    best, was_high = Match(threshold, 0.0), None
    for _ in range(STEPS):
        variant_rate = reshare_rate(make_config(merged(values, nested({KEY: threshold})), "matching"), seeds)
        on_step()
        match = Match(threshold, variant_rate / rate if rate else 1.0)
        best = min(best, match, key=lambda match: match.distance)
        if match.is_close:
            return match
        log_ratio = max(-_MAX_STEP, min(_MAX_STEP, log(match.ratio) if match.ratio > 0 else -_MAX_STEP))
        if was_high == (log_ratio > 0) and (not was_high) in ends:  # halve the weight of the end that did not move
            ends[not was_high] = ends[not was_high][0], ends[not was_high][1] / 2
        was_high = log_ratio > 0
        ends[was_high] = threshold, log_ratio
        if len(ends) == 2:
            (low, above), (high, below) = ends[True], ends[False]
            threshold = low + (high - low) * above / (above - below)
        else:
            threshold += unit * log_ratio
        threshold = round(min(1.0, max(0.0, threshold)), 5)
    return best
