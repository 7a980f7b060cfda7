"""Follows that begin and end, mutes, blocks and reports: noting them in a round, settling conflicts, and their effects.

What is noted in a round counts when the round is committed, and holds from the next round on; what a script notes
between two rounds holds from the one that opens then. Conflicts are settled as follows:

1. A block by one of two agents ends all follows between them, and none begins. Each follow that ends has a row too.
2. What a script or a tool decides about a pair counts, and rules decide nothing about that pair then. A script's last
   word on following counts; to follow and to unfollow in one round is to do neither, and so for mutes and blocks.
3. Of what rules decide about a pair the strongest counts: block, mute, unfollow, follow. Reports go beside them.

After an unmute or unblock, feeds show what the other writes from that round on; what it wrote before stays as if read.
"""

from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.domain import FOLLOW_EVENTS, FOLLOW_REASONS
from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.follow_rules import (
    BLOCK,
    BLOCKED,
    FOLLOW,
    MUTE,
    NO_DECISIONS,
    REPORT,
    UNBLOCK,
    UNFOLLOW,
    UNMUTE,
    Decisions,
    decisions,
    joined,
)
from prism_mesa.social.state.population import NO_POST, WAITS, Rows
from prism_mesa.social.state.relations import NO_KEYS, Keys, among, distinct, first_of_each, pair_keys, split_keys

_OPPOSITE: Final = {FOLLOW: UNFOLLOW, MUTE: UNMUTE, BLOCK: UNBLOCK}
_OPPOSITE.update({taken_back: event for event, taken_back in _OPPOSITE.items()})


def other_row(platform: Platform, row: int, other: int, where: str) -> int:
    """Return the row of another agent about whom an agent decides.

    Raises:
        AgentError: If there is no such row, one of the two has left, or they are the same; it begins with `where`.
    """
    n, present = len(platform.population), platform.population.present
    if not 0 <= other < n:
        raise AgentError(f"{where}: {other} is no agent (rows: 0 .. {n - 1})")
    for agent in (row, other):
        if agent in platform.leaving or not present[agent]:
            raise AgentError(f"{where}: agent {agent} {absence(platform, agent)}")
    if other == row:
        raise AgentError(f"{where}: agent {row} cannot do that to itself")
    return int(other)


def absence(platform: Platform, row: int) -> str:
    """Return why an agent is not there, for errors."""
    people = platform.population
    waits = not people.present[row] and people.membership[row] == WAITS
    return "has not joined yet" if waits else "has left"


def note_decision(platform: Platform, row: int, other: int, event: int, why: int, post: int = NO_POST) -> bool:
    """Note an agent's decision about another agent or a post, and return whether it is new.

    Raises:
        AgentError: If it would follow an agent and one of the two has blocked the other.
    """
    noted, relations = platform.events.decided, platform.relations
    if event == REPORT:
        root = int(platform.posts.root[post])
        is_new = (row, root, REPORT) not in noted and not among(relations.reported, _key(row, root))[0]
        if is_new:
            noted[row, root, REPORT] = (post, why)
        return is_new
    if event in (FOLLOW, UNFOLLOW):
        return _note_following(platform, row, other, event, why)
    known = relations.muted if event in (MUTE, UNMUTE) else relations.blocked
    is_so = bool(among(known, _key(row, other))[0])
    return _note_or_take_back(platform, row, other, event, why, is_so == (event in (MUTE, BLOCK)))


def _note_following(platform: Platform, row: int, other: int, event: int, why: int) -> bool:
    noted = platform.events.decided
    apart = (row, other, BLOCK) in noted or platform.relations.are_apart(np.array([row]), np.array([other]))[0]
    if apart and event == FOLLOW:
        raise AgentError(f"agent {row} cannot follow agent {other}: one of the two has blocked the other")
    follows = bool(platform.network.holds(np.array([row]), np.array([other]))[0])
    return not apart and _note_or_take_back(platform, row, other, event, why, follows == (event == FOLLOW))


def _note_or_take_back(platform: Platform, row: int, other: int, event: int, why: int, is_so: bool) -> bool:
    """Note a decision, or cancel its opposite; return False where nothing changes."""
    noted = platform.events.decided
    if noted.pop((row, other, _OPPOSITE[event]), None) is not None:
        return True
    if is_so or (row, other, event) in noted:
        return False
    noted[row, other, event] = (NO_POST, why)
    return True


def _key(agent: int, other: int) -> Keys:
    return pair_keys(np.array([agent]), np.array([other]))


def noted_decisions(platform: Platform) -> Decisions:
    """Return what scripts and tools have noted since the last commit about agents that are still there; forget it."""
    noted, platform.events.decided = platform.events.decided, {}
    agent, other, event = np.array(list(noted), np.int64).reshape(-1, 3).T
    post, why = np.array(list(noted.values()), np.int64).reshape(-1, 2).T
    other = other.copy()
    is_report = event == REPORT
    other[is_report] = platform.posts.author[post[is_report]]
    present = platform.population.present
    return Decisions(agent, other, event, post, why).where(present[agent] & present[other])


def settle(platform: Platform, noted: Decisions, ruled: Decisions) -> Decisions:
    """Return the decisions that count, by agent, other, event and post."""
    settled = joined(noted, _strongest(platform, noted, ruled))
    blocks = settled.where(settled.event == BLOCK)
    if len(blocks):
        apart = distinct(np.append(blocks.pairs, pair_keys(blocks.other, blocks.agent)))
        is_follow = (settled.event == FOLLOW) | (settled.event == UNFOLLOW)
        settled = settled.where(~(is_follow & among(apart, settled.pairs)))
        agent, other = split_keys(apart)
        ends = platform.network.holds(agent, other)
        settled = joined(settled, decisions(agent[ends], other[ends], UNFOLLOW, NO_POST, BLOCKED))
    return settled.where(_in_order(settled.pairs, settled.event << 32 | settled.post + 1))


def _strongest(platform: Platform, noted: Decisions, ruled: Decisions) -> Decisions:
    """Return the rules' strongest decision about each pair without a noted one, and new reports."""
    if not len(ruled):
        return ruled
    is_report = ruled.event == REPORT
    decided = np.sort(noted.pairs[noted.event != REPORT])
    pairs = ruled.where(~is_report & ~among(decided, ruled.pairs))
    pairs = pairs.where(_in_order(pairs.pairs, (BLOCK - pairs.event) << 40 | pairs.why << 32 | pairs.post + 1))
    pairs = pairs.where(first_of_each(pairs.pairs))
    reports = ruled.where(is_report)
    reports = reports.where(_in_order(_reported(platform, reports), reports.post))
    roots = _reported(platform, reports)
    also = np.sort(_reported(platform, noted.where(noted.event == REPORT)))
    is_new = first_of_each(roots) & ~among(also, roots) & ~among(platform.relations.reported, roots)
    return joined(pairs, reports.where(is_new))


def _in_order(keys: Keys, then: Rows) -> Rows:
    """Return the order by `keys`, most of which differ, and then by `then`."""
    order = np.argsort(keys)
    same = np.diff(keys[order]) == 0
    if same.any():
        ties = np.flatnonzero(np.append(same, False) | np.append(False, same))
        tied = order[ties]
        order[ties] = tied[np.lexsort((then[tied], keys[tied]))]
    return order


def _reported(platform: Platform, reports: Decisions) -> Keys:
    return pair_keys(reports.agent, platform.posts.root[reports.post])


def apply_decisions(platform: Platform, decided: Decisions, round_: int) -> tuple[Rows, Rows]:
    """Apply and record decisions; return agents, and roots that count as read from now on.

    These are by others that are hidden now, and what depths tell no more of agents whose follows or mutes change.

    Args:
        platform: The platform.
        decided: The decisions that count (`settle`).
        round_: The round of the decisions; -1 for before the first.
    """
    _record(platform, decided, round_)
    if not len(decided):
        return NO_KEYS, NO_KEYS
    both = np.append(decided.agent, decided.other)  # a block works in both directions
    passed = platform.depths.forget(both, platform.network, platform.posts, platform.round)
    relations = platform.relations
    pairs = {event: decided.pairs[decided.event == event] for event in range(len(FOLLOW_EVENTS))}
    reported = distinct(_reported(platform, decided.where(decided.event == REPORT)))
    relations.counts.update(
        {FOLLOW_EVENTS[event]: n for event, n in enumerate(np.bincount(decided.event).tolist()) if n}
    )
    relations.forget(muted=pairs[UNMUTE], blocked=pairs[UNBLOCK])
    hidden = relations.note(muted=pairs[MUTE], blocked=pairs[BLOCK], reported=reported)
    if len(pairs[FOLLOW]) or len(pairs[UNFOLLOW]):
        platform.network = platform.network.changed(pairs[FOLLOW], pairs[UNFOLLOW])
    if platform.params.network.dynamics == "live":
        relations.new_follows = distinct(np.append(relations.new_follows, pairs[FOLLOW]))
    agents, roots = hidden_roots(
        platform, hidden, platform.posts.first_visible(round_ + 1, platform.params.feed.window)
    )
    return np.append(passed.agents, agents), np.append(passed.roots, roots)


def hidden_roots(platform: Platform, hidden: Keys, first: int) -> tuple[Rows, Rows]:
    """Return agents, and the roots of the posts from `first` on by others that are hidden from them.

    Feeds show no copy of these. `hidden` are pairs of an agent and another one, as numbers.
    """
    agent, other = split_keys(hidden)
    is_hidden = np.zeros(len(platform.population), np.bool_)
    is_hidden[other] = True
    roots = platform.posts.root[first:]
    roots = distinct(roots[is_hidden[platform.posts.author[roots]]])
    author = platform.posts.author[roots]
    order = np.argsort(author, kind="stable")
    roots, author = roots[order], author[order]
    begin, end = (np.searchsorted(author, other, side) for side in ("left", "right"))
    many = end - begin
    which = np.repeat(begin - np.append(0, np.cumsum(many)[:-1]), many) + np.arange(int(many.sum()))
    return np.repeat(agent, many), roots[which]


def open_follows(platform: Platform) -> None:
    """Apply what was decided since the last commit to the round that opens."""
    if platform.events.decided:
        decided = settle(platform, noted_decisions(platform), NO_DECISIONS)
        platform.exposure.add(*apply_decisions(platform, decided, platform.round - 1))


def commit_follows(platform: Platform, ruled: Decisions) -> tuple[Rows, Rows]:
    """Apply what was decided in this round to the next ones; return agents, and roots that count as read.

    These roots are by others that are hidden from the agents, written in this round, or earlier by newly hidden ones.
    """
    passed: tuple[Rows, Rows] = NO_KEYS, NO_KEYS
    relations = platform.relations
    if platform.params.network.dynamics == "live" or platform.events.decided:
        decided = settle(platform, noted_decisions(platform), ruled)
        relations.new_follows = NO_KEYS
        passed = apply_decisions(platform, decided, platform.round)
    if not len(relations.hidden):
        return passed
    written = hidden_roots(platform, relations.hidden, platform.first_of_round)
    return np.append(written[0], passed[0]), np.append(written[1], passed[1])


def _record(platform: Platform, decided: Decisions, round_: int) -> None:
    is_live = platform.params.network.dynamics == "live"
    if platform.recorder is None or not (is_live or len(decided)) or not platform.records("follows"):
        return
    columns = {"round": np.full(len(decided), round_, np.int32)}
    columns |= {name: getattr(decided, name).astype(np.int32) for name in ("agent", "other")}
    named = {
        name: pd.Categorical.from_codes(codes.astype(np.int8), list(names))
        for name, codes, names in (("event", decided.event, FOLLOW_EVENTS), ("why", decided.why, FOLLOW_REASONS))
    }
    post = {"post": decided.post.astype(np.int32)}
    platform.recorder.write("follows", columns | {"event": named["event"]} | post | {"why": named["why"]})
