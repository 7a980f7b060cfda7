"""The summary of a platform's run, as ``prism run --json`` prints it."""

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from prism_mesa.arrays import Int32
from prism_mesa.domain import CHURN_EVENTS, FOLLOW_EVENTS, NOTHING_HAPPENED
from prism_mesa.errors import format_count
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.measures import activity_summary, attention_summary, cascade_summary
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.acts import act_key
from prism_mesa.social.round.choices import shortfall
from prism_mesa.social.state.opinions import measure_spread
from prism_mesa.social.state.posts import POST, REPLY, RESHARE
from prism_mesa.social.tables import DONE


def platform_summary(model: SocialModel, trees: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """Return the summary of a model after `rounds` rounds; `trees` comes from `social.state.outcomes.cascades`."""
    shares, has_joined = model.agent_ticks / max(1, int(model.agent_ticks.sum())), model.population.has_joined
    totals, kind = model.totals, model.posts.kind
    shown_elsewhere = (model.reasoner.note, shortfall(model.platform))
    n_posts = np.bincount(model.posts.author[kind == POST], minlength=len(model.population))
    return {
        "seed": model.params.seed,
        "agents": int(model.population.present.sum()),
        "follows": model.network.n_edges,
        "direction": model.params.network.edges and (model.params.network.direction or "null"),
        "most_followers": _find_largest(model, "followers", model.network.n_followers),
        "follows_most": _find_largest(model, "follows", model.network.n_followees),
        **_network_changes(model),
        **_churn_summary(model),
        **_opinion_summary(model),
        "rounds": rounds,
        "state_shares": {state.value: float(share) for state, share in zip(model.platform.states, shares, strict=True)},
        "engagement": {name: totals[name] for name in ("likes", "replies", "reshares", "posts")},
        "reshares_of_replies": int(np.count_nonzero((kind == RESHARE) & (kind[model.posts.root] == REPLY))),
        "impressions": totals["impressions"],
        "cascades": cascade_summary(trees[kind[trees["root"]] == POST]),
        "activity": activity_summary((n_posts + model.recorded.n_engaged)[has_joined]),
        "attention": attention_summary(model.outcomes.attention[has_joined]),
        "seeded": model.seeded.to_facts(model.posts),
        "decisions": {
            "open": totals["open"],
            "by_source": dict(sorted(model.sources.items())),
            "rates": _decision_rates(model, rounds),
            "fallback_reasons": dict(sorted(getattr(model.reasoner, "reasons", {}).items())),
            "llm": _llm_costs(model, rounds),
            **_counts_by_llm(model.reasoner),
            "fallback": model.reasoner.params.fallback if isinstance(model.reasoner, Reasoner) else None,
            "decided_by": model.reasoner.label,
            "note": model.reasoner.note,
        },
        "content": model.params.content,
        "writing": _writing_summary(model),
        "guard_errors": dict(sum((chart.guard_errors for chart in model.platform.charts), Counter())),
        "guards_by_row": sorted(model.row_by_row_guards),
        "notes": [
            *(note for note in model.notes if note not in shown_elsewhere),
            *_count_notes(model),
            *_act_notes(model),
            *_no_views_note(model, rounds),
        ],
        "recorded": model.recorded.to_facts(),
    }


def _network_changes(model: SocialModel) -> dict[str, Any]:
    events = {event: model.relations.counts[event] for event in FOLLOW_EVENTS}
    if model.params.network.dynamics == "fixed" and not any(events.values()):
        return {}
    before, after = model.first_network.n_edges, model.network.n_edges
    return {"network_changes": {"follows_before": before, "follows_after": after, "events": events}}


def _churn_summary(model: SocialModel) -> dict[str, Any]:
    totals = model.totals
    if not model.params.has_churn and not any(totals[event] for event in CHURN_EVENTS):
        return {}
    counts = {
        "rows": len(model.population),
        "present_first": totals["present_first"],
        "present_last": int(model.population.present.sum()),
        "present_mean": totals["present"] / max(1, model.round + 1),
        "never_joined": int(np.count_nonzero(~model.population.has_joined)),
    }
    return {"churn": counts | {"events": {event: totals[event] for event in CHURN_EVENTS}}}


def _agent_rounds(model: SocialModel, rounds: int) -> int:
    return max(1, model.totals["present"] if model.params.has_churn else len(model.population) * rounds)


def _count_notes(model: SocialModel) -> Iterator[str]:
    if n := model.totals["repeated"]:
        rule = "an agent likes and reshares a root once, and answers a post once a round"
        yield f"{n} moves to an engaging state did not count: {rule}"
    if n := model.totals["unwritten"]:
        yield f"{format_count(n, 'post')} of posts.file or posts.seeded did not appear: the author was not there"


def _act_notes(model: SocialModel) -> Iterator[str]:
    """Yield a note on what each intervention did, or that it did nothing."""
    for index, act in enumerate(model.platform.configured.interventions):
        key, kind = act_key(index, act), act.kind
        counts = {done: model.totals[f"acts {done} {key}"] for done in DONE}
        done_text = ", ".join(f"{DONE[done]}: {n:,}" for done, n in counts.items() if n)
        if done_text or kind not in ("set", "hide", "filter", "downrank"):
            yield f"interventions: {key}: {done_text or f'{kind}: nothing happened'}"


def _no_views_note(model: SocialModel, rounds: int) -> list[str]:
    """Return a note with the reason if no post was seen, in which case no agent can have acted."""
    totals, feed = model.totals, model.params.feed
    if not rounds or any(totals[name] for name in ("impressions", "likes", "replies", "reshares")):
        return []
    if not len(model.posts):
        why = "no post appeared (agents.post_rate, posts.*)"
    elif not totals["online"]:
        why = "no agent came online (agents.activity, agents.hours)"
    elif not model.network.n_edges:
        why = f"no agent follows another (network.*), and feed.mode={feed.mode} adds no posts from outside"
    else:
        why = "feeds were empty when agents came online (rounds, feed.*)"
    return [f"{NOTHING_HAPPENED}: no post was seen in {format_count(rounds, 'round')}, as {why}"]


def _opinion_summary(model: SocialModel) -> dict[str, Any]:
    name = model.params.opinions.of
    if name is None:
        return {}
    column, attribute = model.platform.attributes.schema.agent_attribute(name)
    after = measure_spread(model.population.attributes[:, column], model.population.present, attribute).numbers
    before = dict(zip(after, model.opinions.first.tolist(), strict=True))
    spread = {
        time: {key: x if isfinite(x) else None for key, x in numbers.items()}
        for time, numbers in (("before", before), ("after", after))
    }
    n_moved = {key: model.totals[key] for key in ("drawn_on", "pushed_away")}
    return {"opinions": {"of": name, **spread, **n_moved}}


def _find_largest(model: SocialModel, count_name: str, counts: Int32) -> dict[str, Any]:
    row = int(counts.argmax())
    return {"agent": row, "id": model.population.ids[row], count_name: int(counts[row])}


def _llm_costs(model: SocialModel, rounds: int) -> dict[str, float]:
    usage = getattr(model.reasoner, "usage", Counter())
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    thousands = _agent_rounds(model, rounds) / 1000
    totals = {"calls": usage["calls"], "tokens": tokens}
    return totals | {f"{name}_per_1000_agent_rounds": n / thousands for name, n in totals.items()}


def _counts_by_llm(gateway: Any) -> dict[str, Any]:
    llms: dict[str, dict[str, int]] = {}
    for llm, counts in sorted(getattr(gateway, "by_llm", {}).items()):
        tokens, failed = counts["prompt_tokens"] + counts["completion_tokens"], counts["fallback"] + counts["failed"]
        llms[llm] = {"calls": counts["calls"], "tokens": tokens, "answered": counts["llm"] + counts["cache"]}
        llms[llm] |= {"fallbacks": failed, "budget": counts["budget"]}
    llms.pop("", None)
    return {"llms": llms} if llms else {}


def _writing_summary(model: SocialModel) -> dict[str, Any] | None:
    if model.writer is None:
        return None
    usage, outcome_counts = model.writer.usage, model.written
    return {
        "by": model.writer.label,
        **{name: outcome_counts[name] for name in ("written", "failed", "budget")},
        "reasons": dict(sorted(model.writer.reasons.items())),
        "by_source": dict(sorted(model.writer.counts.items())),
        "calls": usage["calls"],
        "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        **_counts_by_llm(model.writer),
    }


def _decision_rates(model: SocialModel, rounds: int) -> dict[str, float]:
    n_open = max(1, model.totals["open"])
    rates = {"open": model.totals["open"] / _agent_rounds(model, rounds), "fallback": model.totals["fallback"] / n_open}
    return rates | {source: model.sources[source] / n_open for source in ("cache", "budget")}
