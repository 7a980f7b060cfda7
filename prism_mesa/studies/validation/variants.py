"""Null models and ablations as named overrides, and thresholds that match their reshare rates to the full model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any, Final

from prism_mesa.errors import ConfigError, RunError, did_you_mean
from prism_mesa.params import merge_values, nest_keys
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.rounds import without_repeated_warnings
from prism_mesa.runs.social import start_run
from prism_mesa.social.tables import SOCIAL_TABLES


@dataclass(frozen=True)
class Variant:
    """A configuration with a mechanism removed or added: a null model or an ablation.

    For a `matched` variant, `agents.threshold_mean` is moved until impressions are reshared as often as in the full
    model. Otherwise most variants would differ from it mainly in the rate of engagement.
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


SMALL_AGENTS: Final = 3_000  # agents in the small runs of the first search for a threshold
SEEDS: Final = 4  # seeds of the small runs; the configuration itself runs with one seed
MAX_DISTANCE: Final = 0.05
"""Largest difference of the logarithms of two rates that count as equal: about the standard error of the difference for
means over `SEEDS` small runs (the logarithm of a rate has a standard deviation of .075 between seeds)."""

MAX_RATIO: Final = 1.25
"""Largest ratio of the rates of a variant and the full model, in either direction, for a fair comparison."""

MAX_STEPS: Final = 10  # maximum number of thresholds for a variant in each world
_MAX_STEP_SIZE: Final = 3.0  # largest step of a threshold, in log-odds
THRESHOLD_KEY: Final = "agents.threshold_mean"


@dataclass(frozen=True)
class Match:
    """The threshold of a variant (`agents.threshold_mean`); `ratio` is its rate of reshares over the full model's."""

    threshold: float
    ratio: float

    @property
    def distance(self) -> float:
        """The absolute difference of the logarithms of the two rates."""
        return abs(log(self.ratio)) if self.ratio > 0 else inf

    @property
    def is_close(self) -> bool:
        """Whether the two rates count as equal."""
        return self.distance <= MAX_DISTANCE


def search_worlds(config: Config) -> tuple[tuple[Config, int], ...]:
    """Return the worlds in which a threshold is searched, each with its number of seeds.

    The first world has 3,000 agents, the second is the configuration itself, because rates depend on size. For a small
    configuration or a graph from a file, there is no first world. The rule decides in place of an LLM.
    """
    if config.reasoner.kind not in ("rule", "distilled"):
        config = config.model_copy(update={"reasoner": ReasonerParams(kind="rule")})
    if config.agents.n <= SMALL_AGENTS or config.network.kind == "edges":
        return ((config, SEEDS),)
    small = config.model_copy(update={"agents": config.agents.model_copy(update={"n": SMALL_AGENTS})})
    return (small, SEEDS), (config, 1)


def reshare_rate(config: Config, seeds: int) -> float:
    """Run a configuration with several seeds, and return its reshares per impression; 0 without impressions."""
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
    """Return the threshold at which impressions of a variant are reshared as often as those of the full model.

    `rates` has the full model's reshares per impression in each of `search_worlds`. The threshold is that of the last
    world. `on_step` is called after each tried threshold.
    """
    match = Match(config.agents.threshold_mean, 0.0)
    for (world, seeds), rate in zip(search_worlds(config), rates, strict=True):
        match = _search_threshold(world, seeds, {**overrides, THRESHOLD_KEY: match.threshold}, rate, on_step)
    return match


def _search_threshold(
    config: Config, seeds: int, overrides: Mapping[str, Any], rate: float, on_step: Callable[[], object]
) -> Match:
    """Return the best of up to 10 thresholds for a rate of reshares; the first threshold is in `overrides`.

    For rare engagement and logistic moods, rates are proportional to ``exp(-threshold / (sensitivity * mood))``. So the
    threshold moves by the logarithm of the ratio of the two rates, until two thresholds enclose the rate. Then secants
    are used (Illinois; Dowell and Jarratt 1971, doi:10.1007/BF01934364). With sensitivity 0, utility is relevance, and
    1 in log-odds is taken as .03.
    """
    values = merge_values(config.model_dump(mode="json"), nest_keys(dict(overrides)))
    unit = values["utility"]["sensitivity"] or 0.03
    threshold = float(values["agents"]["threshold_mean"])
    ends: dict[bool, tuple[float, float]] = {}  # whether the rate is too high -> threshold, log ratio
    best, was_high = Match(threshold, 0.0), None
    for _ in range(MAX_STEPS):
        world = make_config(merge_values(values, nest_keys({THRESHOLD_KEY: threshold})), "matching")
        variant_rate = reshare_rate(world, seeds)
        on_step()
        match = Match(threshold, variant_rate / rate if rate else 1.0)
        best = min(best, match, key=lambda match: match.distance)
        if match.is_close:
            return match
        log_ratio = max(-_MAX_STEP_SIZE, min(_MAX_STEP_SIZE, log(match.ratio) if match.ratio > 0 else -_MAX_STEP_SIZE))
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
