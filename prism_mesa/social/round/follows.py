"""Note follows, mutes, blocks and reports in a round, settle conflicts, and apply them.

Decisions of a round are committed at its end and take effect in the next round. Decisions of a script between two
rounds take effect in the next round, too. Conflicts are settled as follows:

1. A block ends all follows between two agents and prevents new follows. Each ended follow is an unfollow in the table.
2. A decision by a script or tool overrides rules about the same pair. Two opposite decisions in a round cancel out.
3. Of several decisions by rules about a pair, the strongest counts: block, mute, unfollow, follow. Reports are
   separate.

After an unmute or unblock, feeds show later posts of the other; its earlier posts count as read.
"""

from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Keys, Rows
from prism_mesa.domain import FOLLOW_EVENTS, FOLLOW_REASONS
from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.round import follow_rules as rules
from prism_mesa.social.round.follow_rules import NO_DECISIONS, Decisions, concatenate, decisions
from prism_mesa.social.state.population import NO_POST, SUSPENDED, WAITING
from prism_mesa.social.state.relations import NO_KEYS, is_first, is_in_keys, pair_keys, sorted_unique, split_keys

_OPPOSITE: Final = {rules.FOLLOW: rules.UNFOLLOW, rules.MUTE: rules.UNMUTE, rules.BLOCK: rules.UNBLOCK}
_OPPOSITE.update({opposite: event for event, opposite in _OPPOSITE.items()})


def other_row(platform: Platform, row: int, other: int, where: str) -> int:
    """Check and return the row of the other agent of a decision.

    Raises:
        AgentError: If there is no such row, if one of the two agents is absent, or if they are the same agent.
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
    return "has not joined yet" if not population.present[row] and population.membership[row] == WAITING else "has left"


def note_decision(platform: Platform, row: int, other: int, event: int, why: int, post: int = NO_POST) -> bool:
    """Note an agent's decision about another agent or a post, and return whether it is new.

    Raises:
        AgentError: For a follow if one of the two agents has blocked the other.
    """
    pending, relations = platform.events.decided, platform.relations
    if event == rules.REPORT:
        root = int(platform.posts.root[post])
        is_new = (row, root, rules.REPORT) not in pending and not is_in_keys(relations.reported, _key(row, root))[0]
        if is_new:
            pending[row, root, rules.REPORT] = (post, why)
        return is_new
    if event in (rules.FOLLOW, rules.UNFOLLOW):
        return _note_following(platform, row, other, event, why)
    pairs = relations.muted if event in (rules.MUTE, rules.UNMUTE) else relations.blocked
    is_in_effect = bool(is_in_keys(pairs, _key(row, other))[0])
    return _note_or_cancel(platform, row, other, event, why, is_in_effect == (event in (rules.MUTE, rules.BLOCK)))


def _note_following(platform: Platform, row: int, other: int, event: int, why: int) -> bool:
    pending = platform.events.decided
    pair = np.array([row]), np.array([other])
    is_blocked = (row, other, rules.BLOCK) in pending or platform.relations.are_blocked(*pair)[0]
    if is_blocked and event == rules.FOLLOW:
        raise AgentError(f"agent {row} cannot follow agent {other}: one of the two has blocked the other")
    follows = bool(platform.network.contains(*pair)[0])
    return not is_blocked and _note_or_cancel(platform, row, other, event, why, follows == (event == rules.FOLLOW))


def _note_or_cancel(platform: Platform, row: int, other: int, event: int, why: int, is_in_effect: bool) -> bool:
    """Note a decision, or cancel its opposite; return False if nothing changes."""
    pending = platform.events.decided
    if pending.pop((row, other, _OPPOSITE[event]), None) is not None:
        return True
    if is_in_effect or (row, other, event) in pending:
        return False
    pending[row, other, event] = (NO_POST, why)
    return True


def _key(agent: int, other: int) -> Keys:
    return pair_keys(np.array([agent]), np.array([other]))


def noted_decisions(platform: Platform) -> Decisions:
    """Return and remove the decisions by scripts and tools about agents that have not left, but may be suspended."""
    pending, platform.events.decided = platform.events.decided, {}
    agent, other, event = np.array(list(pending), np.int64).reshape(-1, 3).T
    post, why = np.array(list(pending.values()), np.int64).reshape(-1, 2).T
    other = other.copy()
    is_report = event == rules.REPORT
    other[is_report] = platform.posts.author[post[is_report]]
    is_here = platform.population.present | (platform.population.membership == SUSPENDED)
    return Decisions(agent, other, event, post, why).select(is_here[agent] & is_here[other])


def settle(platform: Platform, explicit: Decisions, rule_decisions: Decisions) -> Decisions:
    """Return the decisions that take effect, sorted by agent, other agent, event and post."""
    settled = concatenate(explicit, _strongest_decisions(platform, explicit, rule_decisions))
    blocks = settled.select(settled.event == rules.BLOCK)
    if len(blocks):
        blocked_pairs = sorted_unique(np.append(blocks.pairs, pair_keys(blocks.other, blocks.agent)))
        is_follow = (settled.event == rules.FOLLOW) | (settled.event == rules.UNFOLLOW)
        settled = settled.select(~(is_follow & is_in_keys(blocked_pairs, settled.pairs)))
        agent, other = split_keys(blocked_pairs)
        is_ended = platform.network.contains(agent, other)
        unfollows = decisions(agent[is_ended], other[is_ended], rules.UNFOLLOW, NO_POST, rules.BLOCKED)
        settled = concatenate(settled, unfollows)
    return settled.select(_sort_order(settled.pairs, settled.event << 32 | settled.post + 1))


def _strongest_decisions(platform: Platform, explicit: Decisions, rule_decisions: Decisions) -> Decisions:
    """Return new reports and the rules' strongest decision about each pair without an explicit decision."""
    if not len(rule_decisions):
        return rule_decisions
    is_report = rule_decisions.event == rules.REPORT
    noted_pairs = np.sort(explicit.pairs[explicit.event != rules.REPORT])
    pairs = rule_decisions.select(~is_report & ~is_in_keys(noted_pairs, rule_decisions.pairs))
    pairs = pairs.select(_sort_order(pairs.pairs, (rules.BLOCK - pairs.event) << 40 | pairs.why << 32 | pairs.post + 1))
    pairs = pairs.select(is_first(pairs.pairs))
    reports = rule_decisions.select(is_report)
    reports = reports.select(_sort_order(_reported(platform, reports), reports.post))
    roots = _reported(platform, reports)
    noted_reports = np.sort(_reported(platform, explicit.select(explicit.event == rules.REPORT)))
    is_new = is_first(roots) & ~is_in_keys(noted_reports, roots) & ~is_in_keys(platform.relations.reported, roots)
    return concatenate(pairs, reports.select(is_new))


def _sort_order(keys: Keys, second_keys: Rows) -> Rows:
    """Return the order by `keys` (mostly distinct) and then by `second_keys`."""
    order = np.argsort(keys)
    is_tie = np.diff(keys[order]) == 0
    if is_tie.any():
        ties = np.flatnonzero(np.append(is_tie, False) | np.append(False, is_tie))
        tied_rows = order[ties]
        order[ties] = tied_rows[np.lexsort((second_keys[tied_rows], keys[tied_rows]))]
    return order


def _reported(platform: Platform, reports: Decisions) -> Keys:
    return pair_keys(reports.agent, platform.posts.root[reports.post])


def apply_decisions(platform: Platform, settled: Decisions, round_: int) -> tuple[Rows, Rows]:
    """Apply and record the decisions of round `round_` (-1: before the first).

    Returns:
        Pairs of an agent and a root that lists must contain from now on: roots by newly hidden authors, and roots that
        depths no longer cover because an agent's follows, mutes or blocks have changed.
    """
    _record(platform, settled, round_)
    if not len(settled):
        return NO_KEYS, NO_KEYS
    affected = np.append(settled.agent, settled.other)  # a block works in both directions
    passed_roots = platform.depths.reset(affected, platform.network, platform.posts, platform.round)
    relations = platform.relations
    pairs = {event: settled.pairs[settled.event == event] for event in range(len(FOLLOW_EVENTS))}
    reported = sorted_unique(_reported(platform, settled.select(settled.event == rules.REPORT)))
    relations.counts.update({FOLLOW_EVENTS[code]: n for code, n in enumerate(np.bincount(settled.event).tolist()) if n})
    relations.remove_pairs(muted=pairs[rules.UNMUTE], blocked=pairs[rules.UNBLOCK])
    hidden = relations.add_pairs(muted=pairs[rules.MUTE], blocked=pairs[rules.BLOCK], reported=reported)
    if len(pairs[rules.FOLLOW]) or len(pairs[rules.UNFOLLOW]):
        platform.network = platform.network.with_changes(pairs[rules.FOLLOW], pairs[rules.UNFOLLOW])
    if platform.params.network.dynamics == "live":
        relations.new_follows = sorted_unique(np.append(relations.new_follows, pairs[rules.FOLLOW]))
    first = platform.posts.first_visible(round_ + 1, platform.params.feed.window)
    agents, roots = hidden_roots(platform, hidden, first)
    return np.append(passed_roots.agents, agents), np.append(passed_roots.roots, roots)


def hidden_roots(platform: Platform, hidden: Keys, first: int) -> tuple[Rows, Rows]:
    """Return pairs of an agent and a root, from post `first` on, whose author is hidden from the agent.

    `hidden` has pairs as numbers (`pair_keys`).
    """
    agent, other = split_keys(hidden)
    is_hidden = np.zeros(len(platform.population), np.bool_)
    is_hidden[other] = True
    roots = platform.posts.root[first:]
    roots = sorted_unique(roots[is_hidden[platform.posts.author[roots]]])
    author = platform.posts.author[roots]
    order = np.argsort(author, kind="stable")
    roots, author = roots[order], author[order]
    starts, stops = (np.searchsorted(author, other, side) for side in ("left", "right"))
    lengths = stops - starts
    indices = np.repeat(starts - np.append(0, np.cumsum(lengths)[:-1]), lengths) + np.arange(int(lengths.sum()))
    return np.repeat(agent, lengths), roots[indices]


def open_follows(platform: Platform) -> None:
    """Apply the decisions since the last commit as a round opens."""
    if platform.events.decided:
        settled = settle(platform, noted_decisions(platform), NO_DECISIONS)
        platform.exposure.add(*apply_decisions(platform, settled, platform.round - 1))


def commit_follows(platform: Platform, rule_decisions: Decisions) -> tuple[Rows, Rows]:
    """Apply the decisions of this round, and return pairs of an agent and a root that counts as read.

    These are new roots by hidden authors, and the pairs from `apply_decisions`.
    """
    passed_roots: tuple[Rows, Rows] = NO_KEYS, NO_KEYS
    relations = platform.relations
    if platform.params.network.dynamics == "live" or platform.events.decided:
        settled = settle(platform, noted_decisions(platform), rule_decisions)
        relations.new_follows = NO_KEYS
        passed_roots = apply_decisions(platform, settled, platform.round)
    if not len(relations.hidden):
        return passed_roots
    written = hidden_roots(platform, relations.hidden, platform.first_of_round)
    return np.append(written[0], passed_roots[0]), np.append(written[1], passed_roots[1])


def _record(platform: Platform, settled: Decisions, round_: int) -> None:
    is_live = platform.params.network.dynamics == "live"
    if platform.recorder is None or not (is_live or len(settled)) or not platform.records("follows"):
        return
    columns = {"round": np.full(len(settled), round_, np.int32)}
    columns |= {name: getattr(settled, name).astype(np.int32) for name in ("agent", "other")}
    event, why = (
        pd.Categorical.from_codes(codes.astype(np.int8), list(names))
        for codes, names in ((settled.event, FOLLOW_EVENTS), (settled.why, FOLLOW_REASONS))
    )
    columns |= {"event": event, "post": settled.post.astype(np.int32), "why": why}
    platform.recorder.write("follows", columns)
