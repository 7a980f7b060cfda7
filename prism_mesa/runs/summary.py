"""The summary of a run of a platform: its results in numbers, as ``prism run --json`` prints them."""

from collections import Counter
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import CHURN_EVENTS, FOLLOW_EVENTS, NOTHING_HAPPENED
from prism_mesa.errors import counted
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.measures import activity_summary, attention_summary, cascade_summary
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.choices import shortfall
from prism_mesa.social.state.opinions import measure_spread
from prism_mesa.social.state.posts import POST, REPLY, RESHARE
from prism_mesa.statechart import STATES


def platform_summary(model: SocialModel, trees: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """Return the summary of a model after `rounds` rounds; `trees` are its `social.state.outcomes.cascades`."""
    shares, joined = model.agent_ticks / max(1, int(model.agent_ticks.sum())), model.population.has_joined
    totals, kind = model.totals, model.posts.kind
    elsewhere = (model.reasoner.note, shortfall(model.platform))  # other lines of the summary have these
    posted = np.bincount(model.posts.author[kind == POST], minlength=len(model.population))
    return {
        "seed": model.params.seed,
        "agents": int(model.population.present.sum()),
        "follows": model.network.n_edges,
        "direction": model.params.network.edges and (model.params.network.direction or "null"),
        "most_followers": _first(model, "followers", model.network.n_followers),
        "follows_most": _first(model, "follows", model.network.n_followees),
        **_network_changes(model),
        **_churn(model),
        **_opinions(model),
        "rounds": rounds,
        "state_shares": {state.value: float(share) for state, share in zip(STATES, shares, strict=True)},
        "engagement": {name: totals[name] for name in ("likes", "replies", "reshares", "posts")},
        "reshares_of_replies": int(np.count_nonzero((kind == RESHARE) & (kind[model.posts.root] == REPLY))),
        "impressions": totals["impressions"],
        "cascades": cascade_summary(trees[kind[trees["root"]] == POST]),
        "activity": activity_summary((posted + model.recorded.n_engaged)[joined]),
        "attention": attention_summary(model.outcomes.attention[joined]),
        "seeded": model.seeded.as_facts(model.posts),
        "decisions": {
            "open": totals["open"],
            "by_source": dict(sorted(model.sources.items())),
            "rates": _rates(model, rounds),
            "fallback_reasons": dict(sorted(getattr(model.reasoner, "reasons", {}).items())),
            "llm": _spent(model, rounds),
            **_by_llm(model.reasoner),
            "fallback": model.reasoner.params.fallback if isinstance(model.reasoner, Reasoner) else None,
            "decided_by": model.reasoner.label,
            "note": model.reasoner.note,
        },
        "content": model.params.content,
        "writing": _writing(model),
        "guard_errors": dict(model.chart.guard_errors),
        "guards_by_row": sorted(model.row_by_row_guards),
        "notes": [
            *(note for note in model.notes if note not in elsewhere),
            *_repeated(model),
            *_unwritten(model),
            *_unseen(model, rounds),
        ],
        "recorded": model.recorded.as_facts(),
    }


def _network_changes(model: SocialModel) -> dict[str, Any]:
    """Return the follows before and after, and the events between; nothing for a fixed network."""
    events = {event: model.relations.counts[event] for event in FOLLOW_EVENTS}
    if model.params.network.dynamics == "fixed" and not any(events.values()):
        return {}
    before, after = model.first_network.n_edges, model.network.n_edges
    return {"network_changes": {"follows_before": before, "follows_after": after, "events": events}}


def _churn(model: SocialModel) -> dict[str, Any]:
    """Return how many agents were there first, last and on average, and how many came and went."""
    totals = model.totals
    if not model.params.has_churn and not any(totals[event] for event in CHURN_EVENTS):
        return {}
    counts = {
        "rows": len(model.population),
        "there_first": totals["there_first"],
        "there_last": int(model.population.present.sum()),
        "there_mean": totals["there"] / max(1, model.round + 1),
        "never_joined": int(np.count_nonzero(~model.population.has_joined)),
    }
    return {"churn": counts | {"events": {event: totals[event] for event in CHURN_EVENTS}}}


def _agent_rounds(model: SocialModel, rounds: int) -> int:
    """Return the sum over rounds of the agents that are there."""
    return max(1, model.totals["there"] if model.params.has_churn else len(model.population) * rounds)


def _unwritten(model: SocialModel) -> list[str]:
    """Return a note on posts of a file, or seeded ones, that did not appear, if any."""
    n = model.totals["unwritten"]
    return [f"{counted(n, 'post')} of posts.file or posts.seeded did not appear: the author was not there"] if n else []


def _unseen(model: SocialModel, rounds: int) -> list[str]:
    """Return a note with the reason if no post was seen at all: then nothing else can have happened."""
    totals, feed = model.totals, model.params.feed
    if not rounds or any(totals[name] for name in ("impressions", "likes", "replies", "reshares")):
        return []
    if not len(model.posts):
        why = "no post appeared (agents.post_rate, posts.*)"
    elif not totals["online"]:
        why = "no agent came online (agents.activity, agents.hours)"
    elif not model.network.n_edges:
        why = f"nobody follows anybody (network.*), and feed.mode={feed.mode} brought nothing from outside"
    else:
        why = "nothing had come into the feed of an agent by the time it came online (rounds, feed.*)"
    return [f"{NOTHING_HAPPENED}: no post was seen in {counted(rounds, 'round')}, as {why}"]


def _opinions(model: SocialModel) -> dict[str, Any]:
    """Return the spread of opinions before the first round and now, and what moved them; nothing if they are fixed."""
    name = model.params.opinions.of
    if name is None:
        return {}
    column, attribute = model.platform.attributes.known.of_agents(name)
    after = measure_spread(model.population.attributes[:, column], model.population.present, attribute).numbers
    before = dict(zip(after, model.opinions.first.tolist(), strict=True))
    spread = {
        when: {key: x if isfinite(x) else None for key, x in numbers.items()}
        for when, numbers in (("before", before), ("after", after))
    }
    moved = {key: model.totals[key] for key in ("drawn_on", "pushed_away")}
    return {"opinions": {"of": name, **spread, **moved}}


def _repeated(model: SocialModel) -> list[str]:
    """Return a note on moves to an engaging state that did not count, if any."""
    n = model.totals["repeated"]
    once = "an agent likes and reshares a root once, and answers a post once a round"
    return [f"{n} moves to an engaging state did not count: {once}"] if n else []


def _first(model: SocialModel, what: str, counts: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Return the row, id and count of the first agent with the highest count."""
    row = int(counts.argmax())
    return {"agent": row, "id": model.population.ids[row], what: int(counts[row])}


def _spent(model: SocialModel, rounds: int) -> dict[str, float]:
    """Return calls and tokens of the LLM, in all and for 1,000 agent-rounds."""
    usage = getattr(model.reasoner, "usage", Counter())
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    thousands = _agent_rounds(model, rounds) / 1000
    return {
        "calls": usage["calls"],
        "tokens": tokens,
        "calls_per_1000_agent_rounds": usage["calls"] / thousands,
        "tokens_per_1000_agent_rounds": tokens / thousands,
    }


def _by_llm(asked: Any) -> dict[str, Any]:
    """Return cost and answers of each of several LLMs; nothing for one LLM."""
    llms: dict[str, dict[str, int]] = {}
    for llm, counts in sorted(getattr(asked, "by_llm", {}).items()):
        tokens, failed = counts["prompt_tokens"] + counts["completion_tokens"], counts["fallback"] + counts["failed"]
        llms[llm] = {"calls": counts["calls"], "tokens": tokens, "answered": counts["llm"] + counts["cache"]}
        llms[llm] |= {"fallbacks": failed, "budget": counts["budget"]}
    llms.pop("", None)
    return {"llms": llms} if llms else {}


def _writing(model: SocialModel) -> dict[str, Any] | None:
    """Return the outcomes and cost of texts that an LLM writes; None if it writes none."""
    if model.writer is None:
        return None
    usage, written = model.writer.usage, model.written
    return {
        "by": model.writer.label,
        **{name: written[name] for name in ("written", "failed", "budget")},
        "reasons": dict(sorted(model.writer.reasons.items())),
        "by_source": dict(sorted(model.writer.counts.items())),
        "calls": usage["calls"],
        "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        **_by_llm(model.writer),
    }


def _rates(model: SocialModel, rounds: int) -> dict[str, float]:
    """Return open choices per agent and round, and the shares that were fallbacks, cached, or over a budget."""
    asked = max(1, model.totals["open"])
    return {
        "open": model.totals["open"] / _agent_rounds(model, rounds),
        "fallback": model.totals["fallback"] / asked,
        "cache": model.sources["cache"] / asked,
        "budget": model.sources["budget"] / asked,
    }
