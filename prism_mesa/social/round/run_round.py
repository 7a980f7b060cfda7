"""A round of a platform.

1. publish: settings change that do (`interventions`); agents come and go (`agents.churn`); agents post with their own
   rate, always or if they come online; scheduled posts appear; last round's replies and reshares become visible.
2. rank: each agent who will be there gets its feed, of posts it has not seen, from what stands now.
3. open: idle agents that come online (own activity, hour of the day) get `feed_ready`; the others stay idle.
4. ticks: in each, every agent that is not idle fires at most one trigger; open choices are asked.
5. commit: replies and reshares get their words (`content`); likes, replies and reshares reach the posts'
   counters and cascades; follows begin and end, mutes and blocks hold, and opinions have moved (`opinions`), from
   the next round on.
6. collect: the round's rows go to the recorder, and to whoever ran the round.
7. close: `round_ends` brings every active agent to IDLE.

Agents see the platform as it stood when the round opened and do not meet within it, so the result depends
neither on their order nor on which answer arrives first.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from prism_mesa.social.behavior import IDLE, ROUND_ENDS
from prism_mesa.social.content.writer import write
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.collect import collect, record_moves
from prism_mesa.social.round.columns import AgentColumns, scorer_of
from prism_mesa.social.round.engagements import open_round
from prism_mesa.social.round.feeds import rank_feeds
from prism_mesa.social.round.follows import open_follows
from prism_mesa.social.round.opinions import open_opinions
from prism_mesa.social.round.presence import come_and_go, comes_online, session_lengths
from prism_mesa.social.round.publish import commit, publish
from prism_mesa.social.round.ticks import fire_on_active, run_ticks
from prism_mesa.social.state.population import GONE, MEMBER, Rows


def run_round(platform: Platform, tell: Callable[[dict[str, float]], object] | None = None) -> dict[str, float]:
    """Run one round, and return its row: the columns of the table `rounds`, and what the run has come to.

    Args:
        platform: The platform, which goes on by one round.
        tell: Called with the row when it is known, before the round closes.
    """
    platform.round += 1
    platform.tick = 0
    platform.counts.clear()
    platform.begin_events()
    platform.change_settings()
    remove_departed(platform)
    come_and_go(platform)
    open_follows(platform)
    open_opinions(platform)
    open_round(platform)
    comes = comes_online(platform)
    publish(platform, comes)
    run_ticks(platform, _rank(platform, comes))
    write(platform)
    commit(platform)
    row = collect(platform)
    if tell is not None:
        tell(row)
    _close(platform)
    return row


def remove_departed(platform: Platform) -> None:
    """Let those go who have left since the last round opened."""
    population, leaving = platform.population, list(platform.leaving)
    is_member = population.membership[leaving] == MEMBER
    population.membership[leaving] = np.where(is_member, MEMBER, GONE)  # who was not there comes no more
    population.present[leaving] = False
    population.scripted[leaving] = False
    population.state[leaving] = IDLE.code
    platform.leaving.clear()


def _rank(platform: Platform, comes: npt.NDArray[np.bool_]) -> Rows:
    """Rank feeds for those who will read one, as long as their sessions; return those of `comes` who come online."""
    population = platform.population
    idle = population.state == IDLE.code
    online = np.flatnonzero(comes & idle & population.present)
    reads = np.flatnonzero(population.present & ((comes & idle) | ~idle | population.scripted))
    population.n_feed[:] = 0
    population.n_read[:] = 0
    world = (population, platform.posts, platform.exposure, platform.network)
    hidden, groups = platform.relations.hidden_rows(len(population)), platform.groups
    for rows, params, own in platform.feeds.assign(reads, AgentColumns(platform, reads)):
        threads = 1 if own is not None and not own.is_expression else platform.params.threads  # it may bear no other
        rank_feeds(
            rows,
            *world,
            params,
            platform.streams,
            platform.round,
            threads=threads,
            own=scorer_of(platform, own),
            hidden=hidden,
            shown=platform.copies,
            groups=groups,
            depths=platform.depths,
            most=session_lengths(platform, rows),
        )
    platform.counts["online"] = len(online)
    return online


def _close(platform: Platform) -> None:
    platform.tick = platform.params.ticks_per_round + 1
    before = platform.counts.copy()
    fire_on_active(platform, ROUND_ENDS)
    platform.totals.update(platform.counts - before)  # a user's chart may leave a choice open here, after the rows
    record_moves(platform)
