"""Null models and ablations: one thing taken away from a world, or added, as named overrides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

from prism_mesa.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class Variant:
    """A configuration with something taken away or added.

    Attributes:
        told: What is so in it.
        overrides: Values by dotted key.
        matched: Whether `agents.threshold_mean` is moved until an impression is reshared as often as before (see
            `matching`). So it is where what is taken away would otherwise only make engagement rarer or more frequent;
            where the change of rates is itself the pattern, it is not.
        null: Whether it is a null model, else an ablation.
    """

    told: str
    overrides: Mapping[str, Any]
    matched: bool = False
    null: bool = False


FULL: Final = "full"
"""What the configuration itself is called beside its variants."""

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
