"""Assign agents to interventions at random, as a round opens."""

import numpy as np
import numpy.typing as npt

from prism_mesa.social.params.interventions import COMMUNITY, InterventionParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.state.assignments import CONTROL, NOT_ASSIGNED, NOT_ELIGIBLE, TREATED
from prism_mesa.social.state.population import Rows


def assign_agents(platform: Platform) -> None:
    """Assign agents to the named interventions that apply in this round, and note the groups of a new intervention.

    With a `share`, an agent is assigned once: when the intervention begins, or when the agent joins. Otherwise the
    agents that the intervention targets in any round are treated.
    """
    population, has_joined = platform.population, platform.population.has_joined
    for index, act in enumerate(platform.configured.interventions):
        if act.name is None or not act.applies_in(platform.round):
            continue
        groups = platform.assignments.groups(act.name, len(population))
        rows = np.flatnonzero(has_joined & (groups == NOT_ASSIGNED) if act.share is not None else has_joined)
        if not len(rows):
            continue
        is_eligible = np.ones(len(rows), np.bool_)
        if act.agents is not None:
            is_eligible = platform.feeds.select_agents(index, AgentColumns(platform, rows), len(rows))
        if act.share is None:
            groups[rows[is_eligible]] = TREATED
            continue
        drawn = np.where(_draws(platform, act, rows) < act.share, TREATED, CONTROL)
        groups[rows] = np.where(is_eligible, drawn, NOT_ELIGIBLE)
        if act.at == platform.round:
            n_treated, n_eligible = np.count_nonzero(groups == TREATED), int(is_eligible.sum())
            platform.notes += (
                f"interventions: {act.name}: treats {n_treated:,} of {n_eligible:,} eligible agents "
                f"(share={act.share:g})",
            )


def _draws(platform: Platform, act: InterventionParams, rows: Rows) -> npt.NDArray[np.float64]:
    """Return the draws that a share is compared with; agents of one cluster have the same draw.

    A draw depends only on seed, name, and agent or cluster: a larger share treats the same agents, and others.
    """
    return platform.streams.uniform(f"assign {act.name}", _clusters(platform, act, rows))


def _clusters(platform: Platform, act: InterventionParams, rows: Rows) -> Rows:
    if act.assign is None:
        return rows
    if act.assign.by == COMMUNITY:
        return np.asarray(np.searchsorted(platform.attributes.bounds, rows, side="right"))
    place, _ = platform.attributes.schema.agent_attribute(act.assign.by)
    return np.ascontiguousarray(platform.population.attributes[rows, place]).view(np.int64)
