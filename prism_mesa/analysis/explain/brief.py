"""The brief of an explanation: at most five lines on what an agent did in a round, and why."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from prism_mesa.analysis.explain.feed import about_lines
from prism_mesa.analysis.explain.follows import named, text_shown
from prism_mesa.analysis.explain.trace import Move, RoundOfAgent, TracedAgent
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.domain import Post
from prism_mesa.errors import counted
from prism_mesa.llm.params import STAND_INS
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.behavior import IGNORES, SEES_POST, goes_by_band
from prism_mesa.statechart import AgentState

MOST_LINES: Final = 5
DID: Final = {"like": "liked", "reply": "replied to", "reshare": "reshared", "post": "posted"}
_DECIDERS: Final = {"rule": "the rule", "distilled": "the distilled model"}
_BETTER: Final = "post.utility > agent.high_threshold"
_WORSE: Final = "post.utility < agent.low_threshold"


def values_read(values: Mapping[str, object]) -> str:
    """Return the fields that a guard reads and their values, in brackets; empty if it reads none."""
    read = [f"{name} = {f'{value:.3f}' if isinstance(value, float) else value}" for name, value in values.items()]
    return f" ({', '.join(read)})" if read else ""


def brief_lines(explanation: Explanation) -> list[str]:
    """Return what the agent did in the run, and in one round or with one post, and why."""
    agent, shown = explanation.agent, explanation.shown
    lines = [_run(agent, explanation.rounds)]
    if explanation.about is not None:
        feed_lines = about_lines((r.round, r.reasons) for r in explanation.rounds)
        lines += sorted(feed_lines, key=lambda line: ": in its feed" not in line)
    elif shown is not None:
        lines += _round(agent, shown)
    else:
        lines.append("It was not on the platform.")
    if len(lines) > MOST_LINES:
        lines[MOST_LINES - 1] += f" (and {len(lines) - MOST_LINES:,} more)"
    return lines[:MOST_LINES]


def _run(agent: TracedAgent, rounds: list[RoundOfAgent]) -> str:
    did = Counter(action for r in rounds for action in (*r.engaged, *(activity.action for activity in r.by_tool)))
    did["post"] += sum(len(r.posted) for r in rounds)
    often = {action: "once" if n == 1 else f"{n:,} times" for action, n in did.items() if n}
    deeds = ", ".join(f"{done.split()[0]} {often[action]}" for action, done in DID.items() if action in often)
    online = sum(r.came_online for r in rounds)
    there = f"{counted(len(rounds), 'round')} in which it was there" if agent.model.params.has_churn else ""
    came = f"came online in {online:,} of the {there or f'first {counted(len(rounds), "round")}'}"
    return f"{named(agent.model, agent.row)} {came} and {deeds or 'neither posted nor engaged with any post'}."


def _round(agent: TracedAgent, shown: RoundOfAgent) -> Iterator[str]:
    posted = "".join(f' It posted "{plain(text, 100)}".' for text in shown.posted[:1])
    if not shown.came_online:
        chance = f"its chance to come online was {shown.online_chance:.0%} in this round"
        yield f"In round {shown.round} it stayed offline: {chance}, and the draw went against it.{posted}"
        return
    n_read = sum(move.trigger == SEES_POST for move in shown.moves)
    n_passed = sum(len(posts) for _, posts in shown.passed)
    feed = f"Its feed had {counted(shown.feed, 'post')}: it stopped to read {n_read:,} and scrolled past {n_passed:,}"
    begins = "" if goes_by_band(agent.model.chart) else ", where its band begins"
    feed += f", each worth less than {agent.low_threshold:.3f} to it{begins}" if n_passed else ""
    feed += ", and did not get to the rest" if shown.feed > n_read + n_passed else ""
    yield f"In round {shown.round} it came online. {feed if shown.feed else 'Its feed was empty'}.{posted}"
    yield from (line for _, line in sorted(_deeds(agent, shown), key=lambda deed: deed[0]))


def _deeds(agent: TracedAgent, shown: RoundOfAgent) -> Iterator[tuple[int, str]]:
    """Yield what the agent did with each post that it read, with a rank: engagements come first."""
    for activity in shown.by_tool:
        post = agent.model.post(activity.post, agent.row)
        yield 0, f"It {DID[activity.action]}{f' {_post(agent, post)}' if post else ''} by a tool that it called."
    draft: Move | None = None
    for move in shown.moves:
        if move.post is None or move.target is None:
            continue
        deed = move.target.value.removeprefix("engaging_")
        if move.target is AgentState.COMPOSING:
            draft = move
        elif deed in DID and move.target is not move.state:
            yield 0, f"It {DID[deed]} {_post(agent, move.post)}, because {_why(agent, draft or move)}."
            draft = None
        elif move.state is AgentState.EVALUATING:
            rank = 2 if move.answer is None else 1
            yield rank, f"It read {_post(agent, move.post)} and went on, because {_why(agent, move)}."
        elif move.state is AgentState.COMPOSING:
            yield 1, f"It was about to engage with {_post(agent, move.post)}, but gave up on '{move.trigger}'."
            draft = None
    if draft and draft.post:
        yield 1, f"It was about to engage with {_post(agent, draft.post)} when the round ended."


def _why(agent: TracedAgent, move: Move) -> str:
    """Return why the agent changed state: an open choice was decided, or a guard was true."""
    worth = "" if move.post is None else f"the post was worth {move.post.utility:.3f} to it"
    if move.answer is not None:
        if move.answer.source in STAND_INS:
            return "the chart left it open, no answer came, and the fallback decided"
        who = _DECIDERS.get(move.answer.source, agent.llm or "the LLM")
        reason = f', and gave this reason: "{move.reason}"' if move.reason else ""
        return f"{worth}, the chart left it open, and {who} decided so{reason}"
    true_guards = {transition.guard_label: values for transition, value, values in move.considered if value == "true"}
    is_default = goes_by_band(agent.model.chart)
    if _BETTER in true_guards:
        edge = f"the {agent.high_threshold:.3f} above which it always engages"
        return f"{worth}, more than {edge if is_default else f'{agent.high_threshold:.3f}, where its band ends'}"
    if _WORSE in true_guards or move.trigger == IGNORES:
        edge = f"the {agent.low_threshold:.3f} below which it always ignores a post"
        return f"{worth}, less than {edge if is_default else f'{agent.low_threshold:.3f}, where its band begins'}"
    for guard, values in true_guards.items():
        return f"{guard} was true{values_read(values)}"
    return f"the chart says so on '{move.trigger}'"


def _post(agent: TracedAgent, post: Post) -> str:
    how = "reshared in post" if post.kind == "reshare" else "post"
    return f"{text_shown(agent.model, post, 60)} ({how} {post.post_id} by {plain(post.author_name, NAME_CAP)})"
