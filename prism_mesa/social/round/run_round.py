"""Run one round of a platform.

1. publish: Interventions begin or end. Agents join and leave (`agents.churn`). Posts of agents, seeded posts, and the
   replies and reshares of the last round appear. Acts of the platform meet posts (`round.acts`).
2. rank: Each agent that will read gets a feed of posts that it has not seen and that no act takes out.
3. open: Idle agents that come online (by their activity and the hour of the day) receive `feed_ready`.
4. ticks: In each tick, every agent that is not idle fires at most one trigger. The reasoner answers open choices.
5. commit: Replies and reshares get their texts (`content`). Engagements are added to the posts' counters and cascades.
   Changes of follows, mutes, blocks and opinions take effect in the next round.
6. collect: The round's rows go to the recorder and to the caller.
7. close: `round_ends` brings every active agent to IDLE.

All agents see the platform as it was at the start of the round and do not interact within it, so the result depends
neither on their order nor on the order in which answers arrive.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from prism_mesa.arrays import Mask, Rows
from prism_mesa.social.behavior import IDLE, ROUND_ENDS
from prism_mesa.social.content.writer import write_words
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import assign_agents, carry_out_acts, feed_acts, meet_posts
from prism_mesa.social.round.collect import collect, record_moves
from prism_mesa.social.round.columns import AgentColumns, make_scorer
from prism_mesa.social.round.engagements import open_round
from prism_mesa.social.round.feeds import make_outbox, rank_feeds
from prism_mesa.social.round.follows import open_follows
from prism_mesa.social.round.opinions import record_initial_opinions
from prism_mesa.social.round.presence import apply_churn, draw_online, session_lengths
from prism_mesa.social.round.publish import commit, publish
from prism_mesa.social.round.ticks import fire_on_active, run_ticks
from prism_mesa.social.state.population import GONE, MEMBER


def run_round(platform: Platform, on_collected: Callable[[dict[str, float]], object] | None = None) -> dict[str, float]:
    """Run one round, and return its row: the columns of the table `rounds`, with running outcomes.

    Args:
        platform: The platform.
        on_collected: Called with the row before the round closes.
    """
    platform.round += 1
    platform.tick = 0
    platform.counts.clear()
    platform.change_settings()
    remove_departed(platform)
    apply_churn(platform)
    assign_agents(platform)
    open_follows(platform)
    record_initial_opinions(platform)
    open_round(platform)
    is_online = draw_online(platform)
    if platform.writer is not None:  # its tools must not show removed posts
        meet_posts(platform)
    publish(platform, is_online)
    carry_out_acts(platform)
    run_ticks(platform, _rank(platform, is_online))
    write_words(platform)
    commit(platform)
    row = collect(platform)
    if on_collected is not None:
        on_collected(row)
    _close(platform)
    platform.end_events()
    return row


def remove_departed(platform: Platform) -> None:
    """Remove the agents that have left since the last round opened."""
    population, leaving = platform.population, list(platform.leaving)
    is_member = population.membership[leaving] == MEMBER
    population.membership[leaving] = np.where(is_member, MEMBER, GONE)  # an absent agent does not come back
    population.present[leaving] = False
    population.scripted[leaving] = False
    population.state[leaving] = IDLE.code
    platform.leaving.clear()


def _rank(platform: Platform, is_online: Mask) -> Rows:
    """Rank the feeds of agents that will read in this round; return the agents that come online."""
    population = platform.population
    idle = population.state == IDLE.code
    online = np.flatnonzero(is_online & idle & population.present)
    readers = np.flatnonzero(population.present & ((is_online & idle) | ~idle | population.scripted))
    population.n_feed[:] = 0
    population.n_read[:] = 0
    world = (population, platform.posts, platform.exposure, platform.network)
    hidden, groups = platform.relations.hidden_rows(len(population)), platform.groups
    now, threads = platform.round, platform.params.threads
    all_acts, agents = feed_acts(platform, readers), AgentColumns(platform, readers)
    sort_posts = cache(
        partial(make_outbox, platform.posts, platform.params.feed, len(population), now, threads, all_acts)
    )
    for group, params, feed in platform.feeds.assign(readers, agents, platform.act_state):
        for rows, acts in all_acts.split(group, params):
            rank_feeds(
                rows,
                *world,
                params,
                platform.streams,
                now,
                threads=threads if feed is None or feed.is_expression else 1,  # functions may be unsafe
                scorer=make_scorer(platform, feed),
                hidden=hidden,
                read_copies=platform.copies,
                groups=groups,
                depths=platform.depths,
                max_posts=session_lengths(platform, rows),
                acts=acts,
                sort_posts=sort_posts,
            )
    platform.counts["online"] = len(online)
    return online


def _close(platform: Platform) -> None:
    platform.tick = platform.params.ticks_per_round + 1
    before = platform.counts.copy()
    fire_on_active(platform, ROUND_ENDS)
    platform.totals.update(platform.counts - before)  # a chart may leave a choice open here
    record_moves(platform)
