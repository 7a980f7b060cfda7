"""The report of `why`, line by line. Texts by users or an LLM are on one line, without control characters."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prism_mesa.analysis.explain.feed import traced_post_lines
from prism_mesa.analysis.explain.follows import agent_label, churn_lines, follow_lines, opinion_lines, post_quote
from prism_mesa.analysis.explain.trace import AgentRound, Move, Thought, ToolActivity, TracedAgent, fold_repeats
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.deliberation import ReasoningResult
from prism_mesa.deliberation.conversation import reasoning_text
from prism_mesa.domain import AgentState, Post
from prism_mesa.errors import DataError, format_count
from prism_mesa.llm import StoredAnswer
from prism_mesa.llm.params import STAND_INS
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.reasoner import Answer, AnyReasoner, DistilledReasoner, Question, Reasoner, RuleReasoner
from prism_mesa.reasoner.oracle import read_reason
from prism_mesa.reasoner.pmi import band_position
from prism_mesa.social.behavior import IGNORES, SEES_POST, TRIGGER_RULES, follows_band
from prism_mesa.social.content.activity import strip_quotes
from prism_mesa.social.round.presence import local_hours
from prism_mesa.social.state.posts import WORDS_CAP
from prism_mesa.statechart import TIMEOUT

_PAST_VERBS = {"like": "liked", "reply": "replied", "reshare": "reshared", "post": "posted"}
_VERBS = {"like": "likes", "reply": "replies to", "reshare": "reshares"}
_AUTHOR_TEMPLATES = {"post": "post {} by", "reply": "post {} by", "reshare": "reshared in post {} by"}
_COMMENT_TEMPLATES = {"reply": "said in reply, post {} by", "reshare": "comment on a reshared post, post {} by"}
_EVENT_TEXTS = {"thought": "it thought", "tool": "it called", "text": "it wrote", "error": "that failed"}
_WIDTH, _ANSWER_CAP = 106, 2000
_MAX_PASSED_POSTS = 20  # the number of posts to name if the agent scrolls past more in a tick
_MAX_LOG_RATIO = 700.0  # the exponential of a larger value overflows a float


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
    yield from _profile_lines(explanation)
    if explanation.post is not None:
        if (post := agent.model.post(explanation.post, agent.row)) is not None:
            yield from ("", f"{_post_text(agent, post)} in the rounds in which it came online:")
        yield from traced_post_lines((r.round, r.reasons) for r in explanation.rounds)
    elif explanation.reported_round is not None:
        yield ""
        yield from round_lines(explanation, explanation.reported_round)
    elif agent.model.params.has_churn:
        yield f"Round {agent.model.round}: it was not on the platform."


def _profile_lines(explanation: Explanation) -> Iterator[str]:
    agent = explanation.agent
    interests = clean_text(", ".join(agent.interests), 400) or "nothing in particular"
    yield f"{clean_text(agent.name, NAME_CAP)} (agent {agent.row}) likes {interests}; {agent.personality}."
    low, high = f"{agent.low_threshold:.3f}", f"{agent.high_threshold:.3f}"
    band_text = f"It ignores posts below {low} and engages above {high}; between them the choice is open."
    if not follows_band(agent.chart):
        band_text = f"Its band is {low} to {high}; the chart of this run decides how it uses the band."
    yield f"{_VALUE_TEXTS[agent.model.params.utility.sensitivity > 0]} {band_text}"
    for verb, rounds in _engagement_rounds(explanation.rounds).items():
        yield f"  {verb} in round {', '.join(f'{r} ({n} times)' if n > 1 else str(r) for r, n in rounds.items())}"
    yield from churn_lines(agent.model, agent.churn_events, len(explanation.rounds))
    yield from opinion_lines(agent.model, agent.row, agent.influences)
    yield from follow_lines(agent.follow_events)


def _engagement_rounds(rounds: list[AgentRound]) -> dict[str, Counter[int]]:
    counts: dict[str, Counter[int]] = {}
    for r in rounds:
        tool_verbs = [f"{_PAST_VERBS[activity.action]} by a tool" for activity in r.tool_activities]
        for verb in (*["posted"] * len(r.new_posts), *(_PAST_VERBS[action] for action in r.engagements), *tool_verbs):
            counts.setdefault(verb, Counter())[r.round] += 1
    return counts


def _new_post_lines(agent_round: AgentRound) -> Iterator[str]:
    for text in agent_round.new_posts:
        words = clean_text(text, WORDS_CAP)
        yield f'Round {agent_round.round}: it posted "{words}" as the round began (drawn from its posting rate).'


def round_lines(explanation: Explanation, agent_round: AgentRound) -> Iterator[str]:
    """Yield all actions of the agent in one round, with reasons."""
    agent = explanation.agent
    minutes = round(60 * local_hours(agent.model.platform, agent_round.round)[agent.row]) % 1440
    clock = "" if agent.model.params.agents.time_zone is None else f" ({minutes // 60}:{minutes % 60:02} by its clock)"
    chance = agent_round.online_chance
    memory = " after its last sessions" if agent.model.params.agents.returns.online else ""
    hour_note = "" if chance == agent.activity else f", {chance:.3f} at this hour{clock}{memory}"
    chance_text = f"its activity {agent.activity:.3f}{hour_note}: online if the draw is lower"
    arrival = f"its draw was {agent_round.online_draw:.3f}, {chance_text}"
    yield from _new_post_lines(agent_round)
    if not agent_round.came_online:
        yield f"Round {agent_round.round}: it did not come online ({arrival})."
        yield from _thought_lines(agent, agent_round.thoughts)
        return
    feed_count = format_count(agent_round.n_feed, "post")
    yield f"Round {agent_round.round}: it came online ({arrival}) and had {feed_count} in its feed."
    if agent_round.n_feed and agent_round.reasons is not None:
        yield f"  Its feed is {agent_round.reasons.criterion}."
    moves = list(agent_round.moves)
    for tick, post_ids in agent_round.passed_posts:
        while moves and moves[0].tick < tick:
            yield from _move_lines(explanation, moves.pop(0))
        posts_text = "a post that is" if len(post_ids) == 1 else f"{len(post_ids)} posts that are"
        yield f"  tick {tick}: it scrolls past {posts_text} worth less than {agent.low_threshold:.3f} to it"
        reasons = {} if agent_round.reasons is None else agent_round.reasons.texts
        yield from (f"      post {post}, {reasons[post]}" for post in post_ids[:_MAX_PASSED_POSTS] if post in reasons)
    for part, n in fold_repeats(moves, lambda move: (move.state, move.target) if move.trigger == TIMEOUT else id(move)):
        if n == 1:
            yield from _move_lines(explanation, part[0])
            continue
        path = " -> ".join([part[0].state.value, *(move.target.value for move in part if move.target)])
        yield f"  from tick {part[0].tick} on: {path}, {n} times, each on '{TIMEOUT}'"
    yield from _thought_lines(agent, agent_round.thoughts)
    yield "  At the end of the round it goes idle."


def moment_lines(explanation: Explanation, tick: int) -> Iterator[str]:
    """Yield the agent's actions at a tick of the reported round; tick 0 opens the round."""
    agent_round = explanation.reported_round
    if agent_round is None:
        return
    if tick == 0:
        yield from _new_post_lines(agent_round)
    if tick == 0 or not agent_round.came_online:
        arrival = "came online" if agent_round.came_online else "did not come online"
        draw_text = f"its draw was {agent_round.online_draw:.3f}, its chance {agent_round.online_chance:.3f}"
        draw_text += ": online if the draw is lower"
        yield f"Round {agent_round.round}: it {arrival} ({draw_text}), {agent_round.n_feed} posts in its feed."
    for passed_tick, post_ids in agent_round.passed_posts:
        if passed_tick == tick:
            worth = f"worth less than {explanation.agent.low_threshold:.3f} to it"
            yield f"  tick {tick}: it scrolls past {format_count(len(post_ids), 'post')} of its feed, {worth}"
    for move in agent_round.moves:
        if move.tick == tick:
            yield from _move_lines(explanation, move)


def _thought_lines(agent: TracedAgent, thoughts: list[Thought]) -> Iterator[str]:
    last_heading = None
    for thought in thoughts:
        if (thought.tick, thought.action) != last_heading:
            kind = "comment" if thought.action == "reshare" else thought.action
            yield f"  Writing its {kind} (tick {thought.tick}):"
        last_heading = (thought.tick, thought.action)
        text = thought.text
        if thought.event == "thought":
            text = reasoning_text(ReasoningResult.model_validate_json(text))
        yield f"    {_EVENT_TEXTS[thought.event]}: {clean_text(text, _ANSWER_CAP)}"
        if thought.activity is not None:
            yield f"      With this tool it {_activity_text(agent, thought.activity)}."


def _activity_text(agent: TracedAgent, activity: ToolActivity) -> str:
    words = f'"{strip_quotes(activity.words)}"'
    if activity.action == "post":
        return f"posts {words}"
    post = agent.model.post(activity.post, agent.row)
    post_text = "" if post is None else f" {_post_text(agent, post)}"
    return f"{_VERBS[activity.action]}{post_text}" + (f", saying {words}" if activity.words else "")


def _move_lines(explanation: Explanation, move: Move) -> Iterator[str]:
    change = "stays" if move.target is None or move.target is move.state else f"-> {move.target.value}"
    meaning = _move_meaning(explanation.agent, move)
    yield f"  tick {move.tick}: {move.state.value} {change}, on '{move.trigger}'{meaning}"
    if move.given_up:
        yield f"      Abandoned: {move.given_up}."
    if move.trigger == SEES_POST and move.feed_note:
        yield f"      In its feed: {move.feed_note}."
    if move.trigger == SEES_POST and move.log_odds:
        utility, relevance = explanation.agent.model.params.utility, 0.0 if move.post is None else move.post.relevance
        terms = ", ".join(f"{value:+.2f} {term}" for term, value in move.log_odds.items() if value)
        log_odds_text = f"{utility.sensitivity:g} x log-odds ({terms})"
        yield f"      Its utility: {utility.weight:g} x relevance {relevance:.3f} + {log_odds_text}."
    is_drawn = move.trigger == "compose_done" and move.answer is None  # the draw was explained before
    for transition, value, fields in move.candidates:
        if value and not is_drawn:
            target = transition.target.value if transition.target else "open"
            yield f"      to {target} if {transition.guard_label}: {value}{guard_values_text(fields)}"
    if move.answer is not None and move.question is not None:
        yield from _open_choice_lines(explanation, move, move.answer, move.question)
    if move.action is not None:
        shares = ", ".join(f"{action} {share:.2f}" for action, share in move.action_shares.items())
        draw_text = f"with these stacked from 0 to 1, its draw of {move.action_draw:.3f} falls on {move.action}"
        yield f"      Its action is drawn from its habits ({shares}): {draw_text}."


def _move_meaning(agent: TracedAgent, move: Move) -> str:
    if move.trigger == SEES_POST and move.post is not None:
        return f": it reads {_post_text(agent, move.post)}"
    if move.trigger == TIMEOUT:
        return f": it stays at most {move.ticks_in_state} ticks in this state"
    rule = next((r for r in TRIGGER_RULES if (r.state, r.trigger) == (move.state, move.trigger)), None)
    if rule is not None and rule.when is not None:
        values = "" if move.post is None else f" ({move.post.utility:.3f})"
        return f", because {rule.when}{values}"
    if move.target is not None and move.target.value.startswith("engaging_") and move.post is not None:
        words = f', saying "{clean_text(move.words, WORDS_CAP)}"' if move.words else ""
        return f": it {_VERBS[move.target.value.removeprefix('engaging_')]} {_post_text(agent, move.post)}{words}"
    return ""


def _post_text(agent: TracedAgent, post: Post) -> str:
    template = (post.words and _COMMENT_TEMPLATES.get(post.kind)) or _AUTHOR_TEMPLATES[post.kind]
    source = f"{template.format(post.post_id)} {clean_text(post.author_name, NAME_CAP)}"
    utility = "" if post.utility == post.relevance else f", utility {post.utility:.3f}"
    return f"{post_quote(agent.model, post, 70)} ({source}, relevance {post.relevance:.3f}{utility})"


_VALUE_TEXTS = {
    False: "Relevance is the similarity of a post's topics and its interests, 0 to 1.",
    True: "Utility is the value of a post to it: relevance (the similarity of topics and interests, 0 to 1), plus "
    "weighted log-odds of engaging from appeal, age, closeness, mood and the distance to its author.",
}


def _open_choice_lines(explanation: Explanation, move: Move, answer: Answer, question: Question) -> Iterator[str]:
    option_names = [option.value for option in question.options]
    yield f"      The guards leave it open: {' or '.join(option_names)}?"
    reasoner, llm = explanation.agent.model.reasoner, explanation.agent.llm
    chosen_text = "it stays" if answer.choice is None else answer.choice.value
    probabilities = answer.probabilities
    if isinstance(reasoner, RuleReasoner):
        yield "      Decided by the rule: no LLM was asked in this run."
        yield _log_odds_line(reasoner.log_odds(question))
        probabilities = reasoner.chances(question)
    elif isinstance(reasoner, DistilledReasoner) or answer.source in ("distilled", "rule"):
        yield from _batch_answer_lines(reasoner, answer, question)
    elif answer.source in STAND_INS:
        no_answer = f"{llm or 'The LLM'} gave no answer ({answer.reason})"
        failure_text = f"No budget was left to ask {llm or 'the LLM'}" if answer.source == "budget" else no_answer
        yield f"      {failure_text}; the fallback '{reasoner.params.fallback}' stood in: {chosen_text}."
        return
    else:
        yield f"      Decided by {llm or explanation.decided_by}."
        if move.stored_answer is not None:
            if move.post is not None and question.post is not None and move.post.text != question.post.text:
                yield "      The LLM is asked about the text in the corpus; the post has other words."
            yield from _request_lines(explanation, reasoner, question, move.stored_answer)
        if 1.0 in probabilities:
            yield f"      It chose {chosen_text}."
            return
    shares = ", ".join(f"{name} {chance:.1%}" for name, chance in zip(option_names, probabilities, strict=True))
    draw_text = f"with these stacked from 0 to 1, its draw of {move.draw:.3f} falls on {chosen_text}"
    yield f"      So the chances are {shares}; {draw_text}."


def _batch_answer_lines(reasoner: AnyReasoner, answer: Answer, question: Question) -> Iterator[str]:
    if answer.source == "rule":
        yield "      Decided by the rule, because the distilled model does not know these options."
        return
    by = "" if reasoner.batch_reasoner is None else f" the {reasoner.batch_reasoner.label}"
    yield f"      Decided by{by}; no LLM was asked."
    match = f"the cosine of the post and the nearest known interest ({question.match:.2f})"
    yield f"      One of its features is {match}."


def _request_lines(
    explanation: Explanation, reasoner: Reasoner, question: Question, stored_answer: StoredAnswer
) -> Iterator[str]:
    if question.persona.archetype >= 0:
        archetype, likes = question.persona.archetype, ", ".join(question.persona.interests)
        n_archetypes = reasoner.params.archetypes * max(1, len(reasoner.llms))
        yield f"      The question describes the agent as archetype {archetype} of {n_archetypes}: {likes}."
        yield from _shared_answer_lines(explanation, stored_answer.key)
    is_scored = stored_answer.raw.startswith('{"pmi"')
    yield "      How well do the other lines fit the first line?" if is_scored else "      It was told:"
    for line in stored_answer.prompt.splitlines():
        yield from (f"        | {part}" for part in textwrap.wrap(line, _WIDTH) or [""])
    if is_scored:
        yield from _score_lines(stored_answer.raw)
        yield _log_odds_line(reasoner.rule.log_odds(question, band_position(stored_answer.raw)))
    else:
        yield f"      It answered: {clean_text(stored_answer.raw, _ANSWER_CAP)}"
        if reason := read_reason(stored_answer.raw):
            yield f"      Its reason: {reason}"


def _shared_answer_lines(explanation: Explanation, key: str) -> Iterator[str]:
    """Yield how many agents share the answer for an archetype, and which agent asked first."""
    rows, agent = explanation.requests.get(key, ()), explanation.agent.row
    if n_others := len({row.agent for row in rows} - {agent}):
        first = next((row for row in rows if row.source == "llm"), None)
        is_other = first is not None and first.agent != agent
        first_note = f"; agent {first.agent} asked first, in round {first.round}" if first and is_other else ""
        others_text = format_count(n_others, "other agent")
        yield f"      The answer is shared with {others_text} of the archetype in this run{first_note}."


def _score_lines(raw: str) -> Iterator[str]:
    """Yield how a post changes the probability of each interest; raises DataError if the ledger is damaged."""
    try:
        scores = {str(name): min(float(score), _MAX_LOG_RATIO) for name, score in json.loads(raw)["of"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"the ledger is damaged: {raw[:80]!r} is not a set of scores") from None
    for interest, score in scores.items():
        times = f"{math.exp(score):.2g} times as likely as without it"
        yield f"      With the post, '{clean_text(interest, NAME_CAP)}' is {times}."


def _log_odds_line(terms: dict[str, float]) -> str:
    parts = ", ".join(f"{value:+.2f} {term}" for term, value in terms.items())
    return f"      Its log-odds of engaging: {parts}: {sum(terms.values()):+.2f} in all."


# -- the brief ---------------------------------------------------------------------------------------

MAX_LINES: Final = 5
_PAST: Final = {**_PAST_VERBS, "reply": "replied to"}
_DECIDERS: Final = {"rule": "the rule", "distilled": "the distilled model"}
_ABOVE_BAND: Final = "post.utility > agent.high_threshold"
_BELOW_BAND: Final = "post.utility < agent.low_threshold"


def guard_values_text(values: Mapping[str, object]) -> str:
    """Return the values that a guard read, in parentheses; empty without values."""
    parts = [f"{name} = {f'{value:.3f}' if isinstance(value, float) else value}" for name, value in values.items()]
    return f" ({', '.join(parts)})" if parts else ""


def brief_lines(explanation: Explanation) -> list[str]:
    """Return a summary of the agent's actions in the run, and of a round or a post, with reasons."""
    agent, agent_round = explanation.agent, explanation.reported_round
    lines = [_run_summary(agent, explanation.rounds)]
    if explanation.post is not None:
        feed_lines = traced_post_lines((r.round, r.reasons) for r in explanation.rounds)
        lines += sorted(feed_lines, key=lambda line: ": in its feed" not in line)
    elif agent_round is not None:
        lines += _round_summary(agent, agent_round)
    else:
        lines.append("It was not on the platform.")
    if len(lines) > MAX_LINES:
        lines[MAX_LINES - 1] += f" (and {len(lines) - MAX_LINES:,} more)"
    return lines[:MAX_LINES]


def _run_summary(agent: TracedAgent, rounds: list[AgentRound]) -> str:
    counts = Counter(action for r in rounds for action in (*r.engagements, *(a.action for a in r.tool_activities)))
    counts["post"] += sum(len(r.new_posts) for r in rounds)
    times = {action: "once" if n == 1 else f"{n:,} times" for action, n in counts.items() if n}
    actions = ", ".join(f"{verb.split()[0]} {times[action]}" for action, verb in _PAST.items() if action in times)
    n_online = sum(r.came_online for r in rounds)
    span = f"{format_count(len(rounds), 'round')} in which it was a member" if agent.model.params.has_churn else ""
    online_text = f"came online in {n_online:,} of the {span or f'first {format_count(len(rounds), "round")}'}"
    actions = actions or "neither posted nor engaged with any post"
    return f"{agent_label(agent.model, agent.row)} {online_text} and {actions}."


def _round_summary(agent: TracedAgent, agent_round: AgentRound) -> Iterator[str]:
    post_note = "".join(f' It posted "{clean_text(text, 100)}".' for text in agent_round.new_posts[:1])
    if not agent_round.came_online:
        chance = f"its chance to come online was {agent_round.online_chance:.0%} in this round"
        yield f"In round {agent_round.round} it stayed offline: {chance}, and the draw went against it.{post_note}"
        return
    n_read = sum(move.trigger == SEES_POST for move in agent_round.moves)
    n_passed = sum(len(posts) for _, posts in agent_round.passed_posts)
    feed_count = format_count(agent_round.n_feed, "post")
    feed_text = f"Its feed had {feed_count}: it stopped to read {n_read:,} and scrolled past {n_passed:,}"
    band_note = "" if follows_band(agent.chart) else ", where its band begins"
    feed_text += f", each worth less than {agent.low_threshold:.3f} to it{band_note}" if n_passed else ""
    feed_text += ", and did not get to the rest" if agent_round.n_feed > n_read + n_passed else ""
    feed_text = feed_text if agent_round.n_feed else "Its feed was empty"
    yield f"In round {agent_round.round} it came online. {feed_text}.{post_note}"
    yield from (line for _, line in sorted(_ranked_actions(agent, agent_round), key=lambda action: action[0]))


def _ranked_actions(agent: TracedAgent, agent_round: AgentRound) -> Iterator[tuple[int, str]]:
    """Yield a rank and a sentence for each tool call and each post that was read; engagements have rank 0."""
    for activity in agent_round.tool_activities:
        post = agent.model.post(activity.post, agent.row)
        yield 0, f"It {_PAST[activity.action]}{f' {_short_post(agent, post)}' if post else ''} with a tool."
    draft: Move | None = None
    for move in agent_round.moves:
        if move.post is None or move.target is None:
            continue
        verb = move.target.resembled.value.removeprefix("engaging_")
        if move.target.resembled is AgentState.COMPOSING:
            draft = move
        elif verb in _PAST and move.target is not move.state:
            reason = _reason(agent, draft or move)
            yield 0, f"It {_PAST[verb]} {_short_post(agent, move.post)}, because {reason}."
            draft = None
        elif move.state.resembled is AgentState.EVALUATING:
            rank = 2 if move.answer is None else 1
            yield rank, f"It read {_short_post(agent, move.post)} and went on, because {_reason(agent, move)}."
        elif move.state.resembled is AgentState.COMPOSING:
            why = f"gave up: {move.given_up}" if move.given_up else f"stopped on '{move.trigger}'"
            yield 1, f"It was about to engage with {_short_post(agent, move.post)}, but {why}."
            draft = None
    if draft and draft.post:
        yield 1, f"It was about to engage with {_short_post(agent, draft.post)} when the round ended."


def _reason(agent: TracedAgent, move: Move) -> str:
    worth_text = "" if move.post is None else f"the post was worth {move.post.utility:.3f} to it"
    if move.answer is not None:
        if move.answer.source in STAND_INS:
            return "the chart left it open, the LLM did not answer, and the fallback decided"
        source = _DECIDERS.get(move.answer.source, agent.llm or "the LLM")
        reason = f', and gave this reason: "{move.reason}"' if move.reason else ""
        return f"{worth_text}, the chart left it open, and {source} chose this{reason}"
    true_guards = {transition.guard_label: values for transition, result, values in move.candidates if result == "true"}
    is_default = follows_band(agent.chart)
    if _ABOVE_BAND in true_guards:
        bound = f"{agent.high_threshold:.3f}, above which it always engages"
        return f"{worth_text}, more than {bound if is_default else f'{agent.high_threshold:.3f}, where its band ends'}"
    if _BELOW_BAND in true_guards or move.trigger == IGNORES:
        bound = f"{agent.low_threshold:.3f}, below which it always ignores a post"
        return f"{worth_text}, less than {bound if is_default else f'{agent.low_threshold:.3f}, where its band begins'}"
    for guard, values in true_guards.items():
        return f"{guard} was true{guard_values_text(values)}"
    return f"the chart does this on '{move.trigger}'"


def _short_post(agent: TracedAgent, post: Post) -> str:
    template = "reshared in post" if post.kind == "reshare" else "post"
    author = clean_text(post.author_name, NAME_CAP)
    return f"{post_quote(agent.model, post, 60)} ({template} {post.post_id} by {author})"
