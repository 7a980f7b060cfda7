"""Nations, and policies written shortly."""

from prism_mesa.economy.policy import Measure, Policy

OWN = "United States"


NATIONS = (OWN, "United Kingdom", "Canada", "Australia", "Sweden")


def policy(*measures: list[object]) -> Policy:
    keys = ("lever", "how", "size", "unit", "target")
    return Policy(measures=tuple(Measure.model_validate(dict(zip(keys, m, strict=True))) for m in measures))
