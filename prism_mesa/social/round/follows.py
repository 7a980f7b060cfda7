"""Note follows, mutes, blocks and reports in a round, settle conflicts, and apply them.

Decisions of a round are committed with it and take effect in the next round; those of a script between two rounds, in
the round that opens next. Conflicts are settled as follows:

1. A block ends all follows between two agents, each with a row of its own, and prevents new ones.
2. A decision by a script or tool overrides rules about the same pair. Two opposite decisions in a round cancel.
3. Of decisions by rules about a pair the strongest counts: block, mute, unfollow, follow. Reports are independent.

After an unmute or unblock, feeds show later posts of the other; its earlier posts count as read.
"""

from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.domain import FOLLOW_EVENTS, FOLLOW_REASONS
from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.round import follow_rules as rules
from prism_mesa.social.round.follow_rules import NO_DECISIONS, Decisions, concatenated, decisions
from prism_mesa.social.state.population import NO_POST, WAITS, Rows
from prism_mesa.social.state.relations import NO_KEYS, Keys, are_in, distinct, is_first, pair_keys, split_keys

_OPPOSITE: Final = {rules.FOLLOW: rules.UNFOLLOW, rules.MUTE: rules.UNMUTE, rules.BLOCK: rules.UNBLOCK}
_OPPOSITE.update({taken_back: event for event, taken_back in _OPPOSITE.items()})


def other_row(platform: Platform, row: int, other: int, where: str) -> int:
    """Return the row of the other agent of a decision.

    Raises:
        AgentError: If there is no such row, one of the two is absent, or they are the same.
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
    """Return why an agent is absent, for errors."""
    population = platform.population
    is_waiting = not population.present[row] and population.membership[row] == WAITS
    return "has not joined yet" if is_waiting else "has left"


def note_decision(platform: Platform, row: int, other: int, event: int, why: int, post: int = NO_POST) -> bool:
    """Note an agent's decision about another agent or a post, and return whether it is new.

    Raises:
        AgentError: For a follow where one of the two has blocked the other.
    """
    noted, relations = platform.events.decided, platform.relations
    if event == rules.REPORT:
        root = int(platform.posts.root[post])
        is_new = (row, root, rules.REPORT) not in noted and not are_in(relations.reported, _key(row, root))[0]
        if is_new:
            noted[row, root, rules.REPORT] = (post, why)
        return is_new
    if event in (rules.FOLLOW, rules.UNFOLLOW):
        return _note_following(platform, row, other, event, why)
    pairs = relations.muted if event in (rules.MUTE, rules.UNMUTE) else relations.blocked
    holds_already = bool(are_in(pairs, _key(row, other))[0])
    return _note_or_take_back(platform, row, other, event, why, holds_already == (event in (rules.MUTE, rules.BLOCK)))


def _note_following(platform: Platform, row: int, other: int, event: int, why: int) -> bool:
    noted = platform.events.decided
    apart = (row, other, rules.BLOCK) in noted or platform.relations.are_apart(np.array([row]), np.array([other]))[0]
    if apart and event == rules.FOLLOW:
        raise AgentError(f"agent {row} cannot follow agent {other}: one of the two has blocked the other")
    follows = bool(platform.network.holds(np.array([row]), np.array([other]))[0])
    return not apart and _note_or_take_back(platform, row, other, event, why, follows == (event == rules.FOLLOW))


def _note_or_take_back(platform: Platform, row: int, other: int, event: int, why: int, holds_already: bool) -> bool:
    """Note a decision, or cancel its opposite; return False where nothing changes."""
    noted = platform.events.decided
    if noted.pop((row, other, _OPPOSITE[event]), None) is not None:
        return True
    if holds_already or (row, other, event) in noted:
        return False
    noted[row, other, event] = (NO_POST, why)
    return True


def _key(agent: int, other: int) -> Keys:
    return pair_keys(np.array([agent]), np.array([other]))


def noted_decisions(platform: Platform) -> Decisions:
    """Return and remove the decisions by scripts and tools about agents that are still present."""
    noted, platform.events.decided = platform.events.decided, {}
    agent, other, event = np.array(list(noted), np.int64).reshape(-1, 3).T
    post, why = np.array(list(noted.values()), np.int64).reshape(-1, 2).T
    other = other.copy()
    is_report = event == rules.REPORT
    other[is_report] = platform.posts.author[post[is_report]]
    present = platform.population.present
    return Decisions(agent, other, event, post, why).select(present[agent] & present[other])


def settle(platform: Platform, noted: Decisions, ruled: Decisions) -> Decisions:
    """Return the decisions that take effect, sorted by agent, other agent, event and post."""
    settled = concatenated(noted, _strongest(platform, noted, ruled))
    blocks = settled.select(settled.event == rules.BLOCK)
    if len(blocks):
        blocked_pairs = distinct(np.append(blocks.pairs, pair_keys(blocks.other, blocks.agent)))
        is_follow = (settled.event == rules.FOLLOW) | (settled.event == rules.UNFOLLOW)
        settled = settled.select(~(is_follow & are_in(blocked_pairs, settled.pairs)))
        agent, other = split_keys(blocked_pairs)
        ends = platform.network.holds(agent, other)
        settled = concatenated(settled, decisions(agent[ends], other[ends], rules.UNFOLLOW, NO_POST, rules.BLOCKED))
    return settled.select(_in_order(settled.pairs, settled.event << 32 | settled.post + 1))


def _strongest(platform: Platform, noted: Decisions, ruled: Decisions) -> Decisions:
    """Return the rules' strongest decision about each pair without a noted decision, and new reports."""
    if not len(ruled):
        return ruled
    is_report = ruled.event == rules.REPORT
    noted_pairs = np.sort(noted.pairs[noted.event != rules.REPORT])
    pairs = ruled.select(~is_report & ~are_in(noted_pairs, ruled.pairs))
    pairs = pairs.select(_in_order(pairs.pairs, (rules.BLOCK - pairs.event) << 40 | pairs.why << 32 | pairs.post + 1))
    pairs = pairs.select(is_first(pairs.pairs))
    reports = ruled.select(is_report)
    reports = reports.select(_in_order(_reported(platform, reports), reports.post))
    roots = _reported(platform, reports)
    noted_reports = np.sort(_reported(platform, noted.select(noted.event == rules.REPORT)))
    is_new = is_first(roots) & ~are_in(noted_reports, roots) & ~are_in(platform.relations.reported, roots)
    return concatenated(pairs, reports.select(is_new))


def _in_order(keys: Keys, second_keys: Rows) -> Rows:
    """Return the order by `keys`, which are mostly distinct, and then by `second_keys`."""
    order = np.argsort(keys)
    is_tie = np.diff(keys[order]) == 0
    if is_tie.any():
        ties = np.flatnonzero(np.append(is_tie, False) | np.append(False, is_tie))
        tied_rows = order[ties]
        order[ties] = tied_rows[np.lexsort((second_keys[tied_rows], keys[tied_rows]))]
    return order


def _reported(platform: Platform, reports: Decisions) -> Keys:
    return pair_keys(reports.agent, platform.posts.root[reports.post])


def apply_decisions(platform: Platform, decided: Decisions, round_: int) -> tuple[Rows, Rows]:
    """Apply and record the decisions of round `round_` (-1: before the first).

    Returns:
        Agents, and the roots that lists must hold for them from now on: roots by authors that are hidden now, and roots
        that depths no longer cover because an agent's follows or mutes change.
    """
    _record(platform, decided, round_)
    if not len(decided):
        return NO_KEYS, NO_KEYS
    both = np.append(decided.agent, decided.other)  # a block works in both directions
    passed = platform.depths.forget(both, platform.network, platform.posts, platform.round)
    relations = platform.relations
    pairs = {event: decided.pairs[decided.event == event] for event in range(len(FOLLOW_EVENTS))}
    reported = distinct(_reported(platform, decided.select(decided.event == rules.REPORT)))
    relations.counts.update(
        {FOLLOW_EVENTS[event]: n for event, n in enumerate(np.bincount(decided.event).tolist()) if n}
    )
    relations.forget(muted=pairs[rules.UNMUTE], blocked=pairs[rules.UNBLOCK])
    hidden = relations.note(muted=pairs[rules.MUTE], blocked=pairs[rules.BLOCK], reported=reported)
    if len(pairs[rules.FOLLOW]) or len(pairs[rules.UNFOLLOW]):
        platform.network = platform.network.changed(pairs[rules.FOLLOW], pairs[rules.UNFOLLOW])
    if platform.params.network.dynamics == "live":
        relations.new_follows = distinct(np.append(relations.new_follows, pairs[rules.FOLLOW]))
    agents, roots = hidden_roots(
        platform, hidden, platform.posts.first_visible(round_ + 1, platform.params.feed.window)
    )
    return np.append(passed.agents, agents), np.append(passed.roots, roots)


def hidden_roots(platform: Platform, hidden: Keys, first: int) -> tuple[Rows, Rows]:
    """Return agents and roots that feeds must not show them: posts from `first` on by authors hidden from the agents.

    `hidden` has pairs as numbers (`pair_keys`).
    """
    agent, other = split_keys(hidden)
    is_hidden = np.zeros(len(platform.population), np.bool_)
    is_hidden[other] = True
    roots = platform.posts.root[first:]
    roots = distinct(roots[is_hidden[platform.posts.author[roots]]])
    author = platform.posts.author[roots]
    order = np.argsort(author, kind="stable")
    roots, author = roots[order], author[order]
    starts, stops = (np.searchsorted(author, other, side) for side in ("left", "right"))
    lengths = stops - starts
    indices = np.repeat(starts - np.append(0, np.cumsum(lengths)[:-1]), lengths) + np.arange(int(lengths.sum()))
    return np.repeat(agent, lengths), roots[indices]


def open_follows(platform: Platform) -> None:
    """Apply the decisions since the last commit to the round that opens."""
    if platform.events.decided:
        decided = settle(platform, noted_decisions(platform), NO_DECISIONS)
        platform.exposure.add(*apply_decisions(platform, decided, platform.round - 1))


def commit_follows(platform: Platform, ruled: Decisions) -> tuple[Rows, Rows]:
    """Apply the decisions of this round, and return agents and roots that count as read.

    The authors of these roots are hidden from the agents; roots of earlier rounds are by newly hidden authors.
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
