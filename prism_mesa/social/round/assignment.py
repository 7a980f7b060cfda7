"""Assign agents to interventions at random, as a round opens."""

import numpy as np

from prism_mesa.social.params.interventions import COMMUNITY, InterventionParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.state.act_state import CONTROL, NOT_ASSIGNED, NOT_ELIGIBLE, TREATED
from prism_mesa.social.state.feeds import is_true
from prism_mesa.social.state.population import Rows


def assign_agents(platform: Platform) -> None:
    """Assign agents to the named interventions that apply in this round, and note the groups of a new intervention.

    With a `share`, an agent is assigned once: when the intervention begins, or when the agent joins. Otherwise the
    agents that the intervention targets in any round are treated.
    """
    population, has_joined = platform.population, platform.population.has_joined
    for act in platform.configured.interventions:
        if act.name is None or not act.applies_in(platform.round):
            continue
        groups = platform.act_state.groups(act.name, len(population))
        rows = np.flatnonzero(has_joined & (groups == NOT_ASSIGNED) if act.share is not None else has_joined)
        if not len(rows):
            continue
        is_eligible = np.ones(len(rows), np.bool_)
        if act.agents is not None:
            is_eligible = is_true(act.agents, len(rows), AgentColumns(platform, rows))
        if act.share is None:
            groups[rows[is_eligible]] = TREATED
            continue
        # the draws depend only on seed, name, and agent or cluster: a larger share treats the same agents, and others
        draws = platform.streams.uniform(f"assign {act.name}", _clusters(platform, act, rows))
        drawn = np.where(draws < act.share, TREATED, CONTROL)
        groups[rows] = np.where(is_eligible, drawn, NOT_ELIGIBLE)
        if act.at == platform.round:
            n_treated, n_eligible = np.count_nonzero(groups == TREATED), int(is_eligible.sum())
            platform.notes += (
                f"interventions: {act.name}: treats {n_treated:,} of {n_eligible:,} eligible agents "
                f"(share={act.share:g})",
            )


def _clusters(platform: Platform, act: InterventionParams, rows: Rows) -> Rows:
    """Return the cluster of each agent; agents of one cluster have the same draw."""
    if act.assign is None:
        return rows
    if act.assign.by == COMMUNITY:
        return np.asarray(np.searchsorted(platform.attributes.bounds, rows, side="right"))
    place, _ = platform.attributes.schema.agent_attribute(act.assign.by)
    return np.ascontiguousarray(platform.population.attributes[rows, place]).view(np.int64)
