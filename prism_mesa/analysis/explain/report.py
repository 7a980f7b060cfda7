"""The report of `why`, line by line. Texts by users or an LLM are on one line, without control characters."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prism_mesa.analysis.explain.feed import traced_post_lines
from prism_mesa.analysis.explain.follows import follow_lines, named, opinion_lines, text_shown, turn_lines
from prism_mesa.analysis.explain.trace import AgentRound, Move, Thought, ToolActivity, TracedAgent, folded
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.deliberation import ReasoningResult
from prism_mesa.deliberation.conversation import reasoning_text
from prism_mesa.domain import Post
from prism_mesa.errors import DataError, counted
from prism_mesa.llm import StoredAnswer
from prism_mesa.llm.params import STAND_INS
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.reasoner import Answer, AnyReasoner, DistilledReasoner, Question, Reasoner, RuleReasoner
from prism_mesa.reasoner.oracle import read_reason
from prism_mesa.reasoner.pmi import band_position
from prism_mesa.social.behavior import IGNORES, SEES_POST, TRIGGER_RULES, goes_by_band
from prism_mesa.social.content.activity import cleaned
from prism_mesa.social.round.presence import local_hours
from prism_mesa.social.state.posts import WORDS_CAP
from prism_mesa.statechart import TIMEOUT, AgentState

_PAST_VERBS = {"like": "liked", "reply": "replied", "reshare": "reshared", "post": "posted"}
_VERBS = {"like": "likes", "reply": "replies to", "reshare": "reshares"}
_QUOTED = {"post": "post {} by", "reply": "post {} by", "reshare": "reshared in post {} by"}
_WORDED = {**_QUOTED, "reply": "said in reply, post {} by", "reshare": "comment on a reshared post, post {} by"}
_EVENTS = {"thought": "it thought", "tool": "it called", "text": "it wrote", "error": "that failed"}
_WIDTH, _RAW_CAP = 106, 2000
_MAX_PASSED = 20  # posts that are named when the agent scrolls past more in a tick
_MAX_LOG_RATIO = 700.0  # more overflows a float


@dataclass(frozen=True, repr=False)
class Report:
    """The actions of an agent or nation and their reasons; ``str`` gives the text.

    Attributes:
        brief: The report in at most five lines.
        lines: The full report, which begins with `brief`.
        explanation: The data behind the report of an agent; None for a nation.
    """

    brief: tuple[str, ...]
    lines: tuple[str, ...]
    explanation: Explanation | None = None

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__


def report_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the agent's profile, its activity in the run, and one round in full."""
    agent = explanation.agent
    yield from _agent(explanation)
    if explanation.post is not None:
        if (post := agent.model.post(explanation.post, agent.row)) is not None:
            yield from ("", f"{_post(agent, post)} in the rounds in which it came online:")
        yield from traced_post_lines((r.round, r.reasons) for r in explanation.rounds)
    elif explanation.shown is not None:
        yield ""
        yield from round_lines(explanation, explanation.shown)
    elif agent.model.params.has_churn:
        yield f"Round {agent.model.round}: it was not on the platform."


def _agent(explanation: Explanation) -> Iterator[str]:
    agent = explanation.agent
    interests = plain(", ".join(agent.interests), 400) or "nothing in particular"
    yield f"{plain(agent.name, NAME_CAP)} (agent {agent.row}) likes {interests}; {agent.personality}."
    low, high = f"{agent.low_threshold:.3f}", f"{agent.high_threshold:.3f}"
    band_text = f"It ignores posts below {low} and engages above {high}; between them the choice is open."
    if not goes_by_band(agent.model.chart):
        band_text = f"Its band is {low} to {high}; the chart of this run decides how it uses the band."
    yield f"{_VALUE_TEXTS[agent.model.params.utility.sensitivity > 0]} {band_text}"
    for verb, rounds in _engagements(explanation.rounds).items():
        yield f"  {verb} in round {', '.join(f'{r} ({n} times)' if n > 1 else str(r) for r, n in rounds.items())}"
    yield from turn_lines(agent.model, agent.churn_events, len(explanation.rounds))
    yield from opinion_lines(agent.model, agent.row, agent.influences)
    yield from follow_lines(agent.follow_events)


def _engagements(rounds: list[AgentRound]) -> dict[str, Counter[int]]:
    counts: dict[str, Counter[int]] = {}
    for r in rounds:
        tool_activities = [f"{_PAST_VERBS[activity.action]} by a tool" for activity in r.tool_activities]
        for verb in (*["posted"] * len(r.posted), *(_PAST_VERBS[action] for action in r.engaged), *tool_activities):
            counts.setdefault(verb, Counter())[r.round] += 1
    return counts


def _posted(shown: AgentRound) -> Iterator[str]:
    for text in shown.posted:
        yield f'Round {shown.round}: at its start it posted "{plain(text, WORDS_CAP)}" (drawn by its posting rate).'


def round_lines(explanation: Explanation, shown: AgentRound) -> Iterator[str]:
    """Yield the agent's actions in one round with reasons, in full."""
    agent = explanation.agent
    minutes = round(60 * local_hours(agent.model.platform, shown.round)[agent.row]) % 1440
    clock = "" if agent.model.params.agents.time_zone is None else f" ({minutes // 60}:{minutes % 60:02} by its clock)"
    hour = "" if shown.online_chance == agent.activity else f", {shown.online_chance:.3f} at this hour{clock}"
    arrival = (
        f"its draw was {shown.online_draw:.3f}, its activity {agent.activity:.3f}{hour}: online if the draw is lower"
    )
    yield from _posted(shown)
    if not shown.came_online:
        yield f"Round {shown.round}: it did not come online ({arrival})."
        yield from _thoughts(agent, shown.thoughts)
        return
    yield f"Round {shown.round}: it came online ({arrival}) and had {counted(shown.n_feed, 'post')} in its feed."
    if shown.n_feed and shown.reasons is not None:
        yield f"  Its feed is {shown.reasons.criterion}."
    moves = list(shown.moves)
    for tick, passed in shown.passed:
        while moves and moves[0].tick < tick:
            yield from _move(explanation, moves.pop(0))
        posts = "a post that is" if len(passed) == 1 else f"{len(passed)} posts that are"
        yield f"  tick {tick}: it scrolls past {posts} worth less than {agent.low_threshold:.3f} to it"
        reasons = {} if shown.reasons is None else shown.reasons.posts
        yield from (f"      post {post}, {reasons[post]}" for post in passed[:_MAX_PASSED] if post in reasons)
    for part, times in folded(moves, lambda move: (move.state, move.target) if move.trigger == TIMEOUT else id(move)):
        if times == 1:
            yield from _move(explanation, part[0])
            continue
        path = " -> ".join([part[0].state.value, *(move.target.value for move in part if move.target)])
        yield f"  from tick {part[0].tick} on: {path}, {times} times, each on '{TIMEOUT}'"
    yield from _thoughts(agent, shown.thoughts)
    yield "  At the end of the round it goes idle."


def moment_lines(explanation: Explanation, tick: int) -> Iterator[str]:
    """Yield the agent's actions at a tick of the displayed round; tick 0 opens the round."""
    shown = explanation.shown
    if shown is None:
        return
    if tick == 0:
        yield from _posted(shown)
    if tick == 0 or not shown.came_online:
        arrival = "came online" if shown.came_online else "did not come online"
        draw = (
            f"its draw was {shown.online_draw:.3f}, its chance {shown.online_chance:.3f}: online if the draw is lower"
        )
        yield f"Round {shown.round}: it {arrival} ({draw}), {shown.n_feed} posts in its feed."
    for passed_tick, passed in shown.passed:
        if passed_tick == tick:
            worth = f"worth less than {explanation.agent.low_threshold:.3f} to it"
            yield f"  tick {tick}: it scrolls past {counted(len(passed), 'post')} of its feed, {worth}"
    for move in shown.moves:
        if move.tick == tick:
            yield from _move(explanation, move)


def _thoughts(agent: TracedAgent, thoughts: list[Thought]) -> Iterator[str]:
    before = None
    for thought in thoughts:
        if (thought.tick, thought.action) != before:
            kind = "comment" if thought.action == "reshare" else thought.action
            yield f"  Writing its {kind} (tick {thought.tick}):"
        before = (thought.tick, thought.action)
        text = thought.text
        if thought.event == "thought":
            text = reasoning_text(ReasoningResult.model_validate_json(text))
        yield f"    {_EVENTS[thought.event]}: {plain(text, _RAW_CAP)}"
        if thought.activity is not None:
            yield f"      With this tool it {_activity(agent, thought.activity)}."


def _activity(agent: TracedAgent, activity: ToolActivity) -> str:
    words = f'"{cleaned(activity.words)}"'
    if activity.action == "post":
        return f"posts {words}"
    post = agent.model.post(activity.post, agent.row)
    post_text = "" if post is None else f" {_post(agent, post)}"
    return f"{_VERBS[activity.action]}{post_text}" + (f", saying {words}" if activity.words else "")


def _move(explanation: Explanation, move: Move) -> Iterator[str]:
    change = "stays" if move.target is None or move.target is move.state else f"-> {move.target.value}"
    yield f"  tick {move.tick}: {move.state.value} {change}, on '{move.trigger}'{_meaning(explanation.agent, move)}"
    if move.trigger == SEES_POST and move.place:
        yield f"      In its feed: {move.place}."
    if move.trigger == SEES_POST and move.log_odds:
        utility, relevance = explanation.agent.model.params.utility, 0.0 if move.post is None else move.post.relevance
        terms = ", ".join(f"{value:+.2f} {what}" for what, value in move.log_odds.items() if value)
        sensitivity = f"{utility.sensitivity:g} x log-odds ({terms})"
        yield f"      Its utility: {utility.weight:g} x relevance {relevance:.3f} + {sensitivity}."
    is_drawn = move.trigger == "compose_done" and move.answer is None  # the draw was explained before
    for transition, value, fields in move.candidates:
        if value and not is_drawn:
            target = transition.target.value if transition.target else "open"
            yield f"      to {target} if {transition.guard_label}: {value}{values_read(fields)}"
    if move.answer is not None and move.question is not None:
        yield from _open_choice(explanation, move, move.answer, move.question)
    if move.action is not None:
        shares = ", ".join(f"{action} {share:.2f}" for action, share in explanation.agent.propensities.items())
        drawn = f"with these stacked from 0 to 1, its draw of {move.action_draw:.3f} falls on {move.action}"
        yield f"      Its action is drawn from its habits ({shares}): {drawn}."


def _meaning(agent: TracedAgent, move: Move) -> str:
    if move.trigger == SEES_POST and move.post is not None:
        return f": it reads {_post(agent, move.post)}"
    if move.trigger == TIMEOUT:
        return f": it stays at most {move.waited} ticks in this state"
    rule = next((r for r in TRIGGER_RULES if (r.state, r.trigger) == (move.state, move.trigger)), None)
    if rule is not None and rule.when is not None:
        values = "" if move.post is None else f" ({move.post.utility:.3f})"
        return f", because {rule.when}{values}"
    if move.target is not None and move.target.value.startswith("engaging_") and move.post is not None:
        words = f', saying "{plain(move.words, WORDS_CAP)}"' if move.words else ""
        return f": it {_VERBS[move.target.value.removeprefix('engaging_')]} {_post(agent, move.post)}{words}"
    return ""


def _post(agent: TracedAgent, post: Post) -> str:
    template = (_WORDED if post.words else _QUOTED)[post.kind]
    source = f"{template.format(post.post_id)} {plain(post.author_name, NAME_CAP)}"
    utility = "" if post.utility == post.relevance else f", utility {post.utility:.3f}"
    return f"{text_shown(agent.model, post, 70)} ({source}, relevance {post.relevance:.3f}{utility})"


_VALUE_TEXTS = {
    False: "Relevance is the similarity of a post's topics and its interests, 0 to 1.",
    True: "Utility is the value of a post to it: relevance (the similarity of topics and interests, 0 to 1), plus "
    "weighted log-odds of engaging from appeal, age, closeness, mood and the distance to its author.",
}


def _open_choice(explanation: Explanation, move: Move, answer: Answer, question: Question) -> Iterator[str]:
    names = [option.value for option in question.options]
    yield f"      The guards leave it open: {' or '.join(names)}?"
    reasoner, llm = explanation.agent.model.reasoner, explanation.agent.llm
    chosen = "it stays" if answer.choice is None else answer.choice.value
    chances = answer.probabilities
    if isinstance(reasoner, RuleReasoner):
        yield "      Decided by the rule: no LLM was asked in this run."
        yield _odds(reasoner.log_odds(question))
        chances = reasoner.chances(question)
    elif isinstance(reasoner, DistilledReasoner) or answer.source in ("distilled", "rule"):
        yield from _answered_in_batch(reasoner, answer, question)
    elif answer.source in STAND_INS:
        no_answer = f"{llm or 'The LLM'} gave no answer ({answer.reason})"
        why = f"No budget was left to ask {llm or 'the LLM'}" if answer.source == "budget" else no_answer
        yield f"      {why}; the fallback '{reasoner.params.fallback}' stood in: {chosen}."
        return
    else:
        yield f"      Decided by {llm or explanation.decided_by}."
        if move.stored_answer is not None:
            if move.post is not None and question.post is not None and move.post.text != question.post.text:
                yield "      The LLM is asked about the text in the corpus; the post has other words."
            yield from _asked(explanation, reasoner, question, move.stored_answer)
        if 1.0 in chances:
            yield f"      It chose {chosen}."
            return
    shares = ", ".join(f"{name} {chance:.1%}" for name, chance in zip(names, chances, strict=True))
    drawn = f"with these stacked from 0 to 1, its draw of {move.draw:.3f} falls on {chosen}"
    yield f"      So the chances are {shares}; {drawn}."


def _answered_in_batch(reasoner: AnyReasoner, answer: Answer, question: Question) -> Iterator[str]:
    if answer.source == "rule":
        yield "      Decided by the rule, because the distilled model does not know these options."
        return
    by = "" if reasoner.batch_reasoner is None else f" the {reasoner.batch_reasoner.label}"
    yield f"      Decided by{by}; no LLM was asked."
    match = f"the cosine of the post and the nearest known interest ({question.match:.2f})"
    yield f"      One of its features is {match}."


def _asked(
    explanation: Explanation, reasoner: Reasoner, question: Question, stored_answer: StoredAnswer
) -> Iterator[str]:
    if question.persona.archetype >= 0:
        archetype, likes = question.persona.archetype, ", ".join(question.persona.interests)
        known = reasoner.params.archetypes * max(1, len(reasoner.llms))
        yield f"      The question describes the agent as archetype {archetype} of {known}: {likes}."
        yield from _shared(explanation, stored_answer.key)
    is_scored = stored_answer.raw.startswith('{"pmi"')
    yield "      How well does the rest go with the first line?" if is_scored else "      It was told:"
    for line in stored_answer.prompt.splitlines():
        yield from (f"        | {part}" for part in textwrap.wrap(line, _WIDTH) or [""])
    if is_scored:
        yield from _scores(stored_answer.raw)
        yield _odds(reasoner.rule.log_odds(question, band_position(stored_answer.raw)))
    else:
        yield f"      It answered: {plain(stored_answer.raw, _RAW_CAP)}"
        if reason := read_reason(stored_answer.raw):
            yield f"      Its reason: {reason}"


def _shared(explanation: Explanation, key: str) -> Iterator[str]:
    """Yield the number of agents that share the answer of an archetype, and the agent that asked first."""
    rows, agent = explanation.asked.get(key, ()), explanation.agent.row
    if others := len({row.agent for row in rows} - {agent}):
        first = next((row for row in rows if row.source == "llm"), None)
        is_other = first is not None and first.agent != agent
        by = f"; agent {first.agent} asked first, in round {first.round}" if first and is_other else ""
        yield f"      The answer is shared with {counted(others, 'other agent')} of the archetype in this run{by}."


def _scores(raw: str) -> Iterator[str]:
    """Yield how a post changes the probability of each interest; raises DataError if the ledger is damaged."""
    try:
        scores = {str(name): min(float(score), _MAX_LOG_RATIO) for name, score in json.loads(raw)["of"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"the ledger is damaged: {raw[:80]!r} is not a set of scores") from None
    for interest, score in scores.items():
        times = f"{math.exp(score):.2g} times as likely as without it"
        yield f"      With the post, '{plain(interest, NAME_CAP)}' is {times}."


def _odds(terms: dict[str, float]) -> str:
    parts = ", ".join(f"{value:+.2f} {what}" for what, value in terms.items())
    return f"      Its log-odds of engaging: {parts}: {sum(terms.values()):+.2f} in all."


# -- the brief ---------------------------------------------------------------------------------------

MAX_LINES: Final = 5
_PAST: Final = {**_PAST_VERBS, "reply": "replied to"}
_DECIDERS: Final = {"rule": "the rule", "distilled": "the distilled model"}
_BETTER: Final = "post.utility > agent.high_threshold"
_WORSE: Final = "post.utility < agent.low_threshold"


def values_read(values: Mapping[str, object]) -> str:
    """Return the values that a guard reads in parentheses, or an empty string."""
    read = [f"{name} = {f'{value:.3f}' if isinstance(value, float) else value}" for name, value in values.items()]
    return f" ({', '.join(read)})" if read else ""


def brief_lines(explanation: Explanation) -> list[str]:
    """Return the agent's actions in the run, and in a round or with a post, with their reasons."""
    agent, shown = explanation.agent, explanation.shown
    lines = [_brief_run(agent, explanation.rounds)]
    if explanation.post is not None:
        feed_lines = traced_post_lines((r.round, r.reasons) for r in explanation.rounds)
        lines += sorted(feed_lines, key=lambda line: ": in its feed" not in line)
    elif shown is not None:
        lines += _brief_round(agent, shown)
    else:
        lines.append("It was not on the platform.")
    if len(lines) > MAX_LINES:
        lines[MAX_LINES - 1] += f" (and {len(lines) - MAX_LINES:,} more)"
    return lines[:MAX_LINES]


def _brief_run(agent: TracedAgent, rounds: list[AgentRound]) -> str:
    counts = Counter(action for r in rounds for action in (*r.engaged, *(a.action for a in r.tool_activities)))
    counts["post"] += sum(len(r.posted) for r in rounds)
    times = {action: "once" if n == 1 else f"{n:,} times" for action, n in counts.items() if n}
    actions = ", ".join(f"{done.split()[0]} {times[action]}" for action, done in _PAST.items() if action in times)
    online = sum(r.came_online for r in rounds)
    n_present = f"{counted(len(rounds), 'round')} in which it was a member" if agent.model.params.has_churn else ""
    online_text = f"came online in {online:,} of the {n_present or f'first {counted(len(rounds), "round")}'}"
    return f"{named(agent.model, agent.row)} {online_text} and {actions or 'neither posted nor engaged with any post'}."


def _brief_round(agent: TracedAgent, shown: AgentRound) -> Iterator[str]:
    posted = "".join(f' It posted "{plain(text, 100)}".' for text in shown.posted[:1])
    if not shown.came_online:
        chance = f"its chance to come online was {shown.online_chance:.0%} in this round"
        yield f"In round {shown.round} it stayed offline: {chance}, and the draw went against it.{posted}"
        return
    n_read = sum(move.trigger == SEES_POST for move in shown.moves)
    n_passed = sum(len(posts) for _, posts in shown.passed)
    feed = f"Its feed had {counted(shown.n_feed, 'post')}: it stopped to read {n_read:,} and scrolled past {n_passed:,}"
    begins = "" if goes_by_band(agent.model.chart) else ", where its band begins"
    feed += f", each worth less than {agent.low_threshold:.3f} to it{begins}" if n_passed else ""
    feed += ", and did not get to the rest" if shown.n_feed > n_read + n_passed else ""
    yield f"In round {shown.round} it came online. {feed if shown.n_feed else 'Its feed was empty'}.{posted}"
    yield from (line for _, line in sorted(_actions(agent, shown), key=lambda action: action[0]))


def _actions(agent: TracedAgent, shown: AgentRound) -> Iterator[tuple[int, str]]:
    """Yield the agent's action with each post, and a rank by which engagements come first."""
    for activity in shown.tool_activities:
        post = agent.model.post(activity.post, agent.row)
        yield 0, f"It {_PAST[activity.action]}{f' {_short_post(agent, post)}' if post else ''} with a tool."
    draft: Move | None = None
    for move in shown.moves:
        if move.post is None or move.target is None:
            continue
        verb = move.target.value.removeprefix("engaging_")
        if move.target is AgentState.COMPOSING:
            draft = move
        elif verb in _PAST and move.target is not move.state:
            yield 0, f"It {_PAST[verb]} {_short_post(agent, move.post)}, because {_why(agent, draft or move)}."
            draft = None
        elif move.state is AgentState.EVALUATING:
            rank = 2 if move.answer is None else 1
            yield rank, f"It read {_short_post(agent, move.post)} and went on, because {_why(agent, move)}."
        elif move.state is AgentState.COMPOSING:
            yield 1, f"It was about to engage with {_short_post(agent, move.post)}, but stopped on '{move.trigger}'."
            draft = None
    if draft and draft.post:
        yield 1, f"It was about to engage with {_short_post(agent, draft.post)} when the round ended."


def _why(agent: TracedAgent, move: Move) -> str:
    """Return the reason for a change of state: a decided open choice, or a true guard."""
    value = "" if move.post is None else f"the post was worth {move.post.utility:.3f} to it"
    if move.answer is not None:
        if move.answer.source in STAND_INS:
            return "the chart left it open, the LLM did not answer, and the fallback decided"
        source = _DECIDERS.get(move.answer.source, agent.llm or "the LLM")
        reason = f', and gave this reason: "{move.reason}"' if move.reason else ""
        return f"{value}, the chart left it open, and {source} chose this{reason}"
    true_guards = {transition.guard_label: values for transition, result, values in move.candidates if result == "true"}
    is_default = goes_by_band(agent.model.chart)
    if _BETTER in true_guards:
        bound = f"{agent.high_threshold:.3f}, above which it always engages"
        return f"{value}, more than {bound if is_default else f'{agent.high_threshold:.3f}, where its band ends'}"
    if _WORSE in true_guards or move.trigger == IGNORES:
        bound = f"{agent.low_threshold:.3f}, below which it always ignores a post"
        return f"{value}, less than {bound if is_default else f'{agent.low_threshold:.3f}, where its band begins'}"
    for guard, values in true_guards.items():
        return f"{guard} was true{values_read(values)}"
    return f"the chart does this on '{move.trigger}'"


def _short_post(agent: TracedAgent, post: Post) -> str:
    template = "reshared in post" if post.kind == "reshare" else "post"
    return f"{text_shown(agent.model, post, 60)} ({template} {post.post_id} by {plain(post.author_name, NAME_CAP)})"
