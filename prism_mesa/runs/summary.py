"""What a run comes to, in numbers: what ``prism run --json`` prints."""

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
from prism_mesa.social.round.shortfalls import shortfall
from prism_mesa.social.state.opinions import measure_spread
from prism_mesa.social.state.posts import POST, REPLY, RESHARE
from prism_mesa.statechart import STATES


def summarised(model: SocialModel, trees: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """Return the summary of a model after `rounds` rounds.

    Args:
        model: The model.
        trees: Its cascades (`social.cascades.cascades`).
        rounds: Rounds that came to their end.
    """
    shares, joined = model.agent_ticks / max(1, int(model.agent_ticks.sum())), model.population.has_joined
    totals, kind = model.totals, model.posts.kind
    elsewhere = (model.reasoner.note, shortfall(model.platform))  # other lines say who decided, and how the run ended
    own = np.bincount(model.posts.author[kind == POST], minlength=len(model.population))
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
        "activity": activity_summary((own + model.recorded.n_engaged)[joined]),
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
    """Return how many follows there were and are, and what led from one to the other; nothing if nothing could."""
    events = {event: model.relations.counts[event] for event in FOLLOW_EVENTS}
    if model.params.network.dynamics == "fixed" and not any(events.values()):
        return {}
    before, after = model.first_network.n_edges, model.network.n_edges
    return {"network_changes": {"follows_before": before, "follows_after": after, "events": events}}


def _churn(model: SocialModel) -> dict[str, Any]:
    """Return how many agents were there at the beginning, at the end and on average, and who came and went."""
    totals = model.totals
    if not model.params.has_churn and not any(totals[event] for event in CHURN_EVENTS):
        return {}
    told = {
        "rows": len(model.population),
        "there_first": totals["there_first"],
        "there_last": int(model.population.present.sum()),
        "there_mean": totals["there"] / max(1, model.round + 1),
        "never_joined": int(np.count_nonzero(~model.population.has_joined)),
    }
    return {"churn": told | {"events": {event: totals[event] for event in CHURN_EVENTS}}}


def _agent_rounds(model: SocialModel, rounds: int) -> int:
    """Return rounds times agents, in each those who are there."""
    return max(1, model.totals["there"] if model.params.has_churn else len(model.population) * rounds)


def _unwritten(model: SocialModel) -> list[str]:
    """Return in words how many posts of a file, or placed ones, did not appear, if any."""
    n = model.totals["unwritten"]
    return [f"{counted(n, 'post')} of posts.file or posts.seeded did not appear: the author was not there"] if n else []


def _unseen(model: SocialModel, rounds: int) -> list[str]:
    """Return in words why no post was seen in a run, if none was: then nothing else can have happened."""
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
    """Return how opinions were spread before the first round and are now, and what moved them; nothing without any."""
    of = model.params.opinions.of
    if of is None:
        return {}
    place, own = model.platform.attributes.known.of_agents(of)
    now = measure_spread(model.population.attributes[:, place], model.population.present, own).numbers
    first = dict(zip(now, model.opinions.first.tolist(), strict=True))
    told = {
        when: {name: _known(x) for name, x in numbers.items()} for when, numbers in (("before", first), ("after", now))
    }
    return {"opinions": {"of": of, **told, **{name: model.totals[name] for name in ("drawn_on", "pushed_away")}}}


def _known(number: float) -> float | None:
    return number if isfinite(number) else None


def _repeated(model: SocialModel) -> list[str]:
    """Return in words what the chart entered an engaging state for without anything coming of it, if it did."""
    n = model.totals["repeated"]
    once = "an agent likes and reshares a root once, and answers a post once a round"
    return [f"{n} moves to an engaging state did not count: {once}"] if n else []


def _first(model: SocialModel, what: str, counts: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Return the agent with the highest count, the first one of several: its row, its id, and the count."""
    row = int(counts.argmax())
    return {"agent": row, "id": model.population.ids[row], what: int(counts[row])}


def _spent(model: SocialModel, rounds: int) -> dict[str, float]:
    """Return calls and tokens of the LLM, and how many that is for 1,000 agent-rounds."""
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
    """Return the cost and answers of each of several LLMs; nothing if one LLM serves all."""
    llms: dict[str, dict[str, int]] = {}
    for llm, counts in sorted(getattr(asked, "by_llm", {}).items()):
        tokens, failed = counts["prompt_tokens"] + counts["completion_tokens"], counts["fallback"] + counts["failed"]
        llms[llm] = {"calls": counts["calls"], "tokens": tokens, "answered": counts["llm"] + counts["cache"]}
        llms[llm] |= {"fallbacks": failed, "budget": counts["budget"]}
    llms.pop("", None)
    return {"llms": llms} if llms else {}


def _writing(model: SocialModel) -> dict[str, Any] | None:
    """Return what came of the texts that an LLM was to write, and what it cost; None where none was."""
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
    """Return open choices per agent and round, and the shares of them that were fallbacks, known, or beyond a limit."""
    asked = max(1, model.totals["open"])
    return {
        "open": model.totals["open"] / _agent_rounds(model, rounds),
        "fallback": model.totals["fallback"] / asked,
        "cache": model.sources["cache"] / asked,
        "budget": model.sources["budget"] / asked,
    }
