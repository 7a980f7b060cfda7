"""Which targets a world can reach at all, by its configuration: what is too small says so."""

from math import ceil
from typing import Final

from prism_mesa.runs.config import Config
from prism_mesa.studies.measures.window import SHORTEST_H
from prism_mesa.studies.validation.targets import Target

LEAST_AGENTS: Final = 10_000
LEAST_FOLLOWEES: Final = 150
"""Below it real rates and real sizes exclude each other: a post gets too few impressions."""

WINDOW_MIN: Final = (20, 60)
"""Minutes of a round that stands for a window of 30 in which somebody looked in once."""

LONGEST_ROUND_MIN: Final = 60
"""Minutes of a round by which delays of an hour can be told."""

DAY_H: Final = 24

LEAST_PERSONS: Final = 234
"""As many as the data of windows of use have: fewer agents tell less than they do."""

OF_PERSONS: Final = ("window", "rounds", "day", "days")
"""Needs that a world of few agents, or of less than a day, does not meet: shares of a handful are accidents, and what
is not a day old has had no time to be seen."""

MANY_AGENTS: Final = 60_000
"""From so many on a world is to have cascades of 100 enough for an exponent: without them that target is outside."""

OF_SMALL_GRAPHS: Final = (
    "post_reshares",
    *("window_liked", "window_reshared", "window_replied", "window_posted", "window_none"),
)
"""What is held against data on a graph from a file with few followees."""


def why_not(target: Target, config: Config, agents: float, followees: float) -> str:
    """Return why a target does not apply to a world, in a few words; empty if it does.

    Args:
        target: The target.
        config: The world's configuration; that of a variant has the same targets as what it is a variant of.
        agents: How many there are; of a graph from a file only a run tells.
        followees: How many an agent follows on average, in the runs.
    """
    minutes = config.clock.round_minutes
    if target.needs in OF_PERSONS and (told := too_little(config, agents)):
        return told
    few = followees < LEAST_FOLLOWEES
    if config.network.kind == "edges" and few and target.required and target.measure not in OF_SMALL_GRAPHS:
        return f"a graph with {followees:.1f} followees: only reshares per post and windows of use"
    if target.needs in ("sizes", "many"):
        if agents < LEAST_AGENTS:
            return f"{agents:,.0f} agents: a post needs some 1,000 impressions ({LEAST_AGENTS:,} agents)"
        if few:
            return f"{followees:.0f} followees: a post needs some 1,000 impressions ({LEAST_FOLLOWEES} followees)"
    if target.needs == "graph" and agents < LEAST_AGENTS:
        return f"{agents:,.0f} agents: among so few many follow each other by chance ({LEAST_AGENTS:,} agents)"
    if target.needs == "many" and agents < MANY_AGENTS:
        return f"{agents:,.0f} agents: enough large cascades need {MANY_AGENTS:,}"
    if target.needs == "window" and not WINDOW_MIN[0] <= minutes <= WINDOW_MIN[1]:
        return f"rounds of {minutes:g} minutes: the data are of windows of 30"
    if target.needs in ("rounds", "days") and minutes > LONGEST_ROUND_MIN:
        return f"rounds of {minutes:g} minutes: too long to tell delays"
    if target.needs == "days" and config.rounds * minutes < SHORTEST_H * 60:
        least = ceil(SHORTEST_H * 60 / minutes)
        return f"{config.rounds * minutes / 60:.3g} hours: followed for too short ({SHORTEST_H} hours, {least} rounds)"
    if target.measure == "hours_r" and minutes > LONGEST_ROUND_MIN:
        return f"rounds of {minutes:g} minutes: too long to tell hours"
    return ""


def too_little(config: Config, agents: float) -> str:
    """Return why a world is too small or too short for anything that agents do, and what it takes; empty if not."""
    minutes = config.clock.round_minutes
    if agents < LEAST_PERSONS:
        return f"{agents:,.0f} agents: too few to compare shares (at least {LEAST_PERSONS} agents)"
    if config.rounds * minutes < DAY_H * 60:
        return f"{config.rounds * minutes / 60:.3g} hours: less than a day (at least {least_rounds(config)} rounds)"
    return ""


def least_rounds(config: Config) -> int:
    """Return the rounds of a day."""
    return ceil(DAY_H * 60 / config.clock.round_minutes)
