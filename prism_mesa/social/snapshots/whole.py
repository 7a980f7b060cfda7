"""Whether a platform that was brought back from a snapshot leads outside of itself."""

from typing import Any

from prism_mesa.snapshot import require
from prism_mesa.social.snapshots.bounds import (
    check_attributes,
    check_engagements,
    check_events,
    check_group_counts,
    check_history,
    check_known,
    check_network,
    check_outcomes,
    check_population,
    check_posts,
    check_relations,
    check_time,
)
from prism_mesa.statechart import STATES


def check_platform(platform: Any) -> None:
    """Check all of a `Platform` (which imports this).

    Raises:
        DataError: If something in it is none of it.
    """
    n, n_posts, ticks = len(platform.population), len(platform.posts), platform.params.ticks_per_round
    check_time(platform.time_of_day, platform.round, platform.tick)
    check_population(platform.population, n_posts)
    require(platform.network.n_agents == n, f"columns of {n:,} agents differ in length")
    require(n >= platform.drawn_network.n_agents, "there are fewer agents than at the beginning")
    if platform.network is not platform.first_network:  # that of the beginning was drawn, or checked as it was read
        check_network(platform.network, n)
    for known in (platform.exposure, platform.copies, platform.met):
        check_known(known, n if known is platform.exposure or platform.params.feed.repeats else 0, n_posts)
    check_history(platform.history, n, n_posts, len(platform.chart.triggers), platform.time_of_day)
    check_attributes(platform.attributes.known.agents, platform.population.attributes, "agents")
    check_attributes(platform.attributes.known.posts, platform.posts.attributes, "posts")
    require(len(platform.opinions.first) == 3, "what opinions were is not three numbers")
    check_posts(platform.posts, n, platform.round)
    check_outcomes(platform.outcomes, platform.recorded, platform.posts, n)
    n_topics = platform.population.interests.shape[1]
    check_engagements(platform.engagements, platform.liked, platform.notebook, n, n_posts, n_topics)
    check_group_counts(platform.group_counts, platform.feeds.n_groups, n_posts)
    check_relations(platform.relations, n, n_posts)
    check_events(platform.events, n, n_posts, ticks)
    require(not platform.pending and not platform.pending.keys, "agents wait for answers")
    require(all(type(row) is int and 0 <= row < n for row in platform.leaving), "who leaves is no agent")
    require(0 <= platform.first_of_round <= n_posts, "the round began with posts that are not there")
    require(platform.tick_counts.shape == (ticks, len(STATES)), "the ticks of the round are not counted")
    require(platform.agent_ticks.shape == (len(STATES),), "agent-ticks are not counted by state")
    require(all(isinstance(said, str) for said in (*platform.notes, *platform.row_by_row_guards)), "a note is no text")
