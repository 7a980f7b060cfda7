"""Follows that begin and end, mutes, blocks and reports: what is noted in a round, what of it counts, and its effects.

What is noted in a round counts when the round is committed, and holds from the next one on; what a script notes between
two rounds holds from the one that opens then. Of what contradicts itself this counts:

1. A block by either of two ends all follows between them, and none begins. Each follow that it ends is a row too.
2. What a script or a tool says about a pair counts, and rules say nothing about that pair then. A script's last word on
   following counts; to follow and to unfollow in one round is to do neither, and so for mutes and blocks that are
   taken back.
3. Of what the rules say about a pair the strongest counts: block, mute, unfollow, follow; reports go beside them.

Who sees something of another one again is shown what that one writes from the round on in which it was decided, as long
as feeds can show it; what was written before stays as if read.
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
from prism_mesa.social.state.relations import NO_KEYS, Keys, among, distinct, first_of_each, pair_keys, pairs_of

_OPPOSITE: Final = {FOLLOW: UNFOLLOW, MUTE: UNMUTE, BLOCK: UNBLOCK}
_OPPOSITE.update({taken_back: event for event, taken_back in _OPPOSITE.items()})


def other_row(platform: Platform, row: int, other: int, where: str) -> int:
    """Return the row of another agent about whom one decides.

    Raises:
        AgentError: If there is no such row, one of the two has left, or they are one; `where` is told.
    """
    n, present = len(platform.population), platform.population.present
    if not 0 <= other < n:
        raise AgentError(f"{where}: {other} is no agent (rows: 0 .. {n - 1})")
    for one in (row, other):
        if one in platform.leaving or not present[one]:
            raise AgentError(f"{where}: agent {one} {absence(platform, one)}")
    if other == row:
        raise AgentError(f"{where}: agent {row} cannot do that to itself")
    return int(other)


def absence(platform: Platform, row: int) -> str:
    """Return in words why an agent is not there, if it is not."""
    people = platform.population
    waits = not people.present[row] and people.membership[row] == WAITS
    return "has not joined yet" if waits else "has left"


def note_decision(platform: Platform, row: int, other: int, event: int, why: int, post: int = NO_POST) -> bool:
    """Note what an agent decides about another one, or about a post, and return whether that is new.

    Raises:
        AgentError: If it would follow one of whom a block keeps it apart.
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
    """Note something, or take back that its opposite was noted; return False where it is so already."""
    noted = platform.events.decided
    if noted.pop((row, other, _OPPOSITE[event]), None) is not None:
        return True
    if is_so or (row, other, event) in noted:
        return False
    noted[row, other, event] = (NO_POST, why)
    return True


def _key(one: int, other: int) -> Keys:
    return pair_keys(np.array([one]), np.array([other]))


def noted_decisions(platform: Platform) -> Decisions:
    """Return what scripts and tools have noted since the last commit, of who is still there, and forget it."""
    noted, platform.events.decided = platform.events.decided, {}
    agent, other, event = np.array(list(noted), np.int64).reshape(-1, 3).T
    post, why = np.array(list(noted.values()), np.int64).reshape(-1, 2).T
    other = other.copy()
    is_report = event == REPORT
    other[is_report] = platform.posts.author[post[is_report]]
    present = platform.population.present
    return Decisions(agent, other, event, post, why).where(present[agent] & present[other])


def settled(platform: Platform, noted: Decisions, ruled: Decisions) -> Decisions:
    """Return what counts of what was noted and of what rules say, by agent, other, event and post."""
    found = joined(noted, _strongest(platform, noted, ruled))
    blocks = found.where(found.event == BLOCK)
    if len(blocks):
        apart = distinct(np.append(blocks.pairs, pair_keys(blocks.other, blocks.agent)))
        is_follow = (found.event == FOLLOW) | (found.event == UNFOLLOW)
        found = found.where(~(is_follow & among(apart, found.pairs)))
        agent, other = pairs_of(apart)
        ends = platform.network.holds(agent, other)
        found = joined(found, decisions(agent[ends], other[ends], UNFOLLOW, NO_POST, BLOCKED))
    return found.where(_in_order(found.pairs, found.event << 32 | found.post + 1))


def _strongest(platform: Platform, noted: Decisions, ruled: Decisions) -> Decisions:
    """Return what counts of the rules: the strongest about each pair of which nothing was noted, and new reports."""
    if not len(ruled):
        return ruled
    is_report = ruled.event == REPORT
    told = np.sort(noted.pairs[noted.event != REPORT])
    pairs = ruled.where(~is_report & ~among(told, ruled.pairs))
    pairs = pairs.where(_in_order(pairs.pairs, (BLOCK - pairs.event) << 40 | pairs.why << 32 | pairs.post + 1))
    pairs = pairs.where(first_of_each(pairs.pairs))
    reports = ruled.where(is_report)
    reports = reports.where(_in_order(_reported(platform, reports), reports.post))
    roots = _reported(platform, reports)
    also = np.sort(_reported(platform, noted.where(noted.event == REPORT)))
    is_new = first_of_each(roots) & ~among(also, roots) & ~among(platform.relations.reported, roots)
    return joined(pairs, reports.where(is_new))


def _in_order(keys: Keys, then: Rows) -> Rows:
    """Return the order by some numbers, most of which differ, and then by others."""
    order = np.argsort(keys)
    same = np.diff(keys[order]) == 0
    if same.any():
        ties = np.flatnonzero(np.append(same, False) | np.append(False, same))
        tied = order[ties]
        order[ties] = tied[np.lexsort((then[tied], keys[tied]))]
    return order


def _reported(platform: Platform, reports: Decisions) -> Keys:
    """Return the pair of agent and root of each report, as one number."""
    return pair_keys(reports.agent, platform.posts.root[reports.post])


def let_hold(platform: Platform, found: Decisions, round_: int) -> Keys:
    """Let decisions hold, and return the pairs that see nothing of each other from now on; they are recorded.

    Args:
        platform: The platform.
        found: What counts, by agent and other (`settled`).
        round_: The round in which they were decided; -1: before the first.
    """
    _record(platform, found, round_)
    if not len(found):
        return NO_KEYS
    platform.depths.forget(np.append(found.agent, found.other))  # a block concerns both
    relations = platform.relations
    pairs = {event: found.pairs[found.event == event] for event in range(len(FOLLOW_EVENTS))}
    reported = distinct(_reported(platform, found.where(found.event == REPORT)))
    relations.counts.update({FOLLOW_EVENTS[event]: n for event, n in enumerate(np.bincount(found.event).tolist()) if n})
    relations.forget(muted=pairs[UNMUTE], blocked=pairs[UNBLOCK])
    hidden = relations.note(muted=pairs[MUTE], blocked=pairs[BLOCK], reported=reported)
    if len(pairs[FOLLOW]) or len(pairs[UNFOLLOW]):
        platform.network = platform.network.changed(pairs[FOLLOW], pairs[UNFOLLOW])
    if platform.params.network.dynamics == "live":
        relations.new_follows = distinct(np.append(relations.new_follows, pairs[FOLLOW]))
    return hidden


def hidden_roots(platform: Platform, hidden: Keys, first: int) -> tuple[Rows, Rows]:
    """Return agents, and roots by others of whom they see nothing: known, so that no feed shows a copy of them.

    Args:
        platform: The platform.
        hidden: Pairs of an agent and another one, as numbers.
        first: The first post whose root matters.
    """
    agent, other = pairs_of(hidden)
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
    """Let what was decided since the last commit hold from the round that opens on."""
    if platform.events.decided:
        found = settled(platform, noted_decisions(platform), NO_DECISIONS)
        hidden = let_hold(platform, found, platform.round - 1)
        if len(hidden):
            first = platform.posts.first_visible(platform.round, platform.params.feed.window)
            platform.exposure.add(*hidden_roots(platform, hidden, first))


def commit_follows(platform: Platform, ruled: Decisions) -> tuple[Rows, Rows]:
    """Let what was decided in this round hold from the next one on; return agents, and roots that are as if read.

    These are what is written by others of whom they see nothing: in this round, or earlier by those who are new there.
    """
    new, relations = NO_KEYS, platform.relations
    if platform.params.network.dynamics == "live" or platform.events.decided:
        found = settled(platform, noted_decisions(platform), ruled)
        relations.new_follows = NO_KEYS
        new = let_hold(platform, found, platform.round)
    if not len(relations.hidden):
        return NO_KEYS, NO_KEYS
    visible = platform.posts.first_visible(platform.round + 1, platform.params.feed.window)
    parts = [hidden_roots(platform, *of) for of in ((relations.hidden, platform.first_of_round), (new, visible))]
    agents, roots = (np.concatenate(column) for column in zip(*parts, strict=True))
    return agents, roots


def _record(platform: Platform, found: Decisions, round_: int) -> None:
    """Give rows of the table `follows` to the recorder; in a network that moves also that there are none."""
    is_live = platform.params.network.dynamics == "live"
    if platform.recorder is None or not (is_live or len(found)) or not platform.records("follows"):
        return
    columns = {"round": np.full(len(found), round_, np.int32)}
    columns |= {name: getattr(found, name).astype(np.int32) for name in ("agent", "other")}
    named = {
        name: pd.Categorical.from_codes(codes.astype(np.int8), list(names))
        for name, codes, names in (("event", found.event, FOLLOW_EVENTS), ("why", found.why, FOLLOW_REASONS))
    }
    post = {"post": found.post.astype(np.int32)}
    platform.recorder.write("follows", columns | {"event": named["event"]} | post | {"why": named["why"]})
