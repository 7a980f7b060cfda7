"""An explanation (`why`) in plain words, line by line.

What users or an LLM wrote is shown as in a prompt: on one line, without control characters.
"""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from prism_mesa.analysis.explain.brief import values_read
from prism_mesa.analysis.explain.feed import about_lines
from prism_mesa.analysis.explain.follows import follow_lines, opinion_lines, text_shown, turn_lines
from prism_mesa.analysis.explain.trace import ActivityByTool, Move, RoundOfAgent, Thought, TracedAgent, folded
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.deliberation import ReasoningResult
from prism_mesa.deliberation.conversation import thought_in_words
from prism_mesa.domain import Post
from prism_mesa.errors import DataError
from prism_mesa.llm import StoredAnswer
from prism_mesa.llm.params import STAND_INS
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.reasoner import Answer, AnyReasoner, DistilledReasoner, Question, Reasoner, RuleReasoner
from prism_mesa.reasoner.oracle import reason_in
from prism_mesa.reasoner.pmi import band_position
from prism_mesa.social.behavior import SEES_POST, TRIGGER_RULES, goes_by_band
from prism_mesa.social.content.activity import cleaned
from prism_mesa.social.round.presence import local_hours
from prism_mesa.social.state.posts import WORDS_CAP
from prism_mesa.statechart import TIMEOUT

_DONE = {"like": "liked", "reply": "replied", "reshare": "reshared", "post": "posted"}
_DOES = {"like": "likes", "reply": "replies to", "reshare": "reshares"}
_QUOTED = {"post": "post {} by", "reply": "post {} by", "reshare": "reshared in post {} by"}
_WORDED = {**_QUOTED, "reply": "said in reply, post {} by", "reshare": "said of a reshared post, post {} by"}
_EVENTS = {"thought": "it thought", "tool": "it called", "text": "it wrote", "error": "that failed"}
_WIDTH, _RAW_CAP = 106, 2000
_MOST_PASSED = 20
"""Posts that are told of those that it scrolls past in a tick."""
_MOST_TOLD = 700.0
"""Above that a log-ratio is none of an LLM's, and too large for a number."""


@dataclass(frozen=True, repr=False)
class Report:
    """What an agent or nation did and why, in words: its text is the report.

    Attributes:
        brief: At most five lines: what it did, and why.
        lines: The whole report, which begins with these.
        explanation: What it tells of an agent of a platform; None for a nation.
    """

    brief: tuple[str, ...]
    lines: tuple[str, ...]
    explanation: Explanation | None = None

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__


def report_lines(explanation: Explanation) -> Iterator[str]:
    """Yield who the agent is, what it did in the run, and one round in full."""
    yield from _agent(explanation)
    if explanation.about is not None:
        if (post := explanation.agent.model.post(explanation.about, explanation.agent.row)) is not None:
            yield ""
            yield f"{_post(explanation.agent, post)} in the rounds in which it came online:"
        yield from about_lines((r.round, r.told) for r in explanation.rounds)
    elif explanation.shown is not None:
        yield ""
        yield from round_lines(explanation, explanation.shown)
    elif explanation.agent.model.params.has_churn:
        yield f"Round {explanation.agent.model.round}: it was not there."


def _agent(explanation: Explanation) -> Iterator[str]:
    who = explanation.agent
    likes = plain(", ".join(who.interests), 400) or "nothing in particular"
    yield f"{plain(who.name, NAME_CAP)} (agent {who.row}) likes {likes}; {who.personality}."
    low, high = f"{who.low_threshold:.3f}", f"{who.high_threshold:.3f}"
    does = f"It ignores posts below {low} and engages above {high}; between them the choice is open."
    if not goes_by_band(who.model.chart):
        does = f"Its band is {low} to {high}; this run's own chart says what it does with a post."
    yield f"{_COMPARED[who.model.params.utility.sensitivity > 0]} {does}"
    for done, rounds in _engagements(explanation.rounds).items():
        times = Counter(rounds)
        yield f"  {done} in round {', '.join(f'{r} ({n} times)' if n > 1 else str(r) for r, n in times.items())}"
    yield from turn_lines(who.model, who.turns, len(explanation.rounds))
    yield from opinion_lines(who.model, who.row, who.moved)
    yield from follow_lines(who.model, who.row, who.decided)


def _engagements(rounds: list[RoundOfAgent]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for r in rounds:
        if r.posted:
            found.setdefault("posted", []).extend([r.round] * len(r.posted))
        for done in (*(_DONE[action] for action in r.engaged), *(f"{_DONE[d.action]} by a tool" for d in r.by_tool)):
            found.setdefault(done, []).append(r.round)
    return found


def _posted(shown: RoundOfAgent) -> Iterator[str]:
    """Yield what the agent posted when the round opened."""
    for text in shown.posted:
        yield f'Round {shown.round}: when it opened it posted "{plain(text, WORDS_CAP)}", by its own rate of posting.'


def round_lines(explanation: Explanation, shown: RoundOfAgent) -> Iterator[str]:
    """Yield what the agent did in one round, and why, in full."""
    agent = explanation.agent
    minutes = round(60 * local_hours(agent.model.platform, shown.round)[agent.row]) % 1440
    clock = "" if agent.model.params.agents.time_zone is None else f" ({minutes // 60}:{minutes % 60:02} by its clock)"
    hour = "" if shown.online_chance == agent.activity else f", {shown.online_chance:.3f} at this hour{clock}"
    how = f"its draw {shown.online_draw:.3f} and its activity {agent.activity:.3f}{hour}"
    if not shown.came_online:
        yield from _posted(shown)
        yield f"Round {shown.round}: it did not come online ({how}: it comes when the draw is below)."
        yield from _thoughts(explanation.agent, shown.thoughts)
        return
    yield from _posted(shown)
    posts = "1 post" if shown.feed == 1 else f"{shown.feed} posts"
    yield f"Round {shown.round}: it came online ({how}: it comes when the draw is below) and had {posts} in its feed."
    if shown.feed and shown.told is not None:
        yield f"  Its feed is {shown.told.how}."
    moves = list(shown.moves)
    for tick, passed in shown.passed:
        while moves and moves[0].tick < tick:
            yield from _move(explanation, moves.pop(0))
        posts = "a post that is" if len(passed) == 1 else f"{len(passed)} posts that are"
        yield f"  tick {tick}: it scrolls past {posts} worth less than {agent.low_threshold:.3f} to it"
        told = {} if shown.told is None else shown.told.posts
        yield from (f"      post {post}, {told[post]}" for post in passed[:_MOST_PASSED] if post in told)
    for part, times in folded(moves, lambda move: (move.state, move.target) if move.trigger == TIMEOUT else id(move)):
        if times == 1:
            yield from _move(explanation, part[0])
            continue
        way = " -> ".join([part[0].state.value, *(move.target.value for move in part if move.target)])
        yield f"  from tick {part[0].tick} on: {way}, {times} times, each on '{TIMEOUT}'"
    yield from _thoughts(agent, shown.thoughts)
    yield "  At the end of the round it goes idle."


def moment_lines(explanation: Explanation, tick: int) -> Iterator[str]:
    """Yield what the agent did at one tick of the round that is shown; 0 opens the round."""
    shown = explanation.shown
    if shown is None:
        return
    if tick == 0:
        yield from _posted(shown)
    if tick == 0 or not shown.came_online:
        comes = "came online" if shown.came_online else "did not come online"
        yield (
            f"Round {shown.round}: it {comes} (its draw {shown.online_draw:.3f}, its chance "
            f"{shown.online_chance:.3f}: it comes when the draw is below), {shown.feed} posts in its feed."
        )
    for at, passed in shown.passed:
        if at == tick:
            below = f"{explanation.agent.low_threshold:.3f}"
            yield f"  tick {tick}: it scrolls past {len(passed)} of its feed, worth less than {below} to it"
    for move in shown.moves:
        if move.tick == tick:
            yield from _move(explanation, move)


def _thoughts(agent: TracedAgent, thoughts: list[Thought]) -> Iterator[str]:
    """Yield what the agent thought, called, did by tools and said when it wrote."""
    before = None
    for one in thoughts:
        if (one.tick, one.action) != before:
            yield f"  Writing its {'comment' if one.action == 'reshare' else one.action} (tick {one.tick}):"
        before = (one.tick, one.action)
        said = thought_in_words(ReasoningResult.model_validate_json(one.text)) if one.event == "thought" else one.text
        yield f"    {_EVENTS[one.event]}: {plain(said, _RAW_CAP)}"
        if one.activity is not None:
            yield f"      By this tool it {_activity(agent, one.activity)}."


def _activity(agent: TracedAgent, activity: ActivityByTool) -> str:
    words = f'"{cleaned(activity.words)}"'
    if activity.action == "post":
        return f"posts {words}"
    post = agent.model.post(activity.post, agent.row)
    about = "" if post is None else f" {_post(agent, post)}"
    return f"{_DOES[activity.action]}{about}" + (f", saying {words}" if activity.words else "")


def _move(explanation: Explanation, move: Move) -> Iterator[str]:
    goes = "stays" if move.target is None or move.target is move.state else f"-> {move.target.value}"
    yield f"  tick {move.tick}: {move.state.value} {goes}, on '{move.trigger}'{_meaning(explanation.agent, move)}"
    drawn = move.trigger == "compose_done" and move.answer is None  # what was drawn is told where it was
    if move.trigger == SEES_POST and move.told:
        yield f"      In its feed: {move.told}."
    if move.trigger == SEES_POST and move.log_odds:
        yield f"      {_worth(explanation, move)}"
    guarded = [entry for entry in move.considered if entry[1] and not drawn]
    for transition, said, values in guarded:
        to = transition.target.value if transition.target else "open"
        yield f"      to {to} if {transition.guard_label}: {said}{values_read(values)}"
    if move.answer is not None:
        yield from _open_choice(explanation, move)
    if move.action is not None:
        yield f"      {_action(explanation.agent, move)}"


def _meaning(agent: TracedAgent, move: Move) -> str:
    if move.trigger == SEES_POST and move.post is not None:
        return f": it reads {_post(agent, move.post)}"
    if move.trigger == TIMEOUT:
        return f": {move.waited} ticks in this state are as long as it stays"
    rule = next((r for r in TRIGGER_RULES if (r.state, r.trigger) == (move.state, move.trigger)), None)
    if rule is not None and rule.when is not None:
        values = "" if move.post is None else f" ({move.post.utility:.3f})"
        return f", because {rule.when}{values}"
    if move.target is not None and move.target.value.startswith("engaging_") and move.post is not None:
        words = f', saying "{plain(move.words, WORDS_CAP)}"' if move.words else ""
        return f": it {_DOES[move.target.value.removeprefix('engaging_')]} {_post(agent, move.post)}{words}"
    return ""


def _post(agent: TracedAgent, post: Post) -> str:
    how = (_WORDED if post.words else _QUOTED)[post.kind]
    who = f"{how.format(post.post_id)} {plain(post.author_name, NAME_CAP)}"
    worth = "" if post.utility == post.relevance else f", utility {post.utility:.3f}"
    return f"{text_shown(agent.model, post, 70)} ({who}, relevance {post.relevance:.3f}{worth})"


def _worth(explanation: Explanation, move: Move) -> str:
    """Return what the utility of the post that is read is made of."""
    own, post = explanation.agent.model.params.utility, move.post
    relevance = 0.0 if post is None else post.relevance
    made_of = ", ".join(f"{value:+.2f} {what}" for what, value in move.log_odds.items() if value)
    return f"Its utility: {own.weight:g} x relevance {relevance:.3f} + {own.sensitivity:g} x log-odds ({made_of})."


_COMPARED = {
    False: "Relevance is the similarity of a post's topics and its interests, 0 to 1.",
    True: "Utility is what a post is worth to it: its relevance (the similarity of topics and interests, 0 to 1), and "
    "log-odds of engaging from its appeal, age, closeness, mood and how unlike its author is, each with its weight.",
}


def _open_choice(explanation: Explanation, move: Move) -> Iterator[str]:
    answer, question = move.answer, move.question
    if answer is None or question is None:
        return
    names = [option.value for option in question.options]
    yield f"      The guards leave it open: {' or '.join(names)}?"
    reasoner = explanation.agent.model.reasoner
    chosen = "it stays" if answer.choice is None else answer.choice.value
    if isinstance(reasoner, RuleReasoner):
        yield "      Decided by the rule: no LLM was asked in this run."
        yield _odds(reasoner.log_odds(question))
        yield from _drawn(names, reasoner.chances(question), move.draw, chosen)
    elif isinstance(reasoner, DistilledReasoner) or answer.source in ("distilled", "rule"):
        yield from _answered_in_batch(reasoner, answer, question)
        yield from _drawn(names, answer.probabilities, move.draw, chosen)
    elif answer.source in STAND_INS:
        left_over = answer.source == "budget"
        llm = explanation.agent.llm
        no_answer = f"{llm or 'The LLM'} gave no answer ({answer.reason})"
        why = f"No limit was left to ask {llm or 'the LLM'}" if left_over else no_answer
        yield f"      {why}; the fallback '{reasoner.params.fallback}' stood in: {chosen}."
    else:
        yield f"      Decided by {explanation.agent.llm or explanation.decided_by}."
        if move.stored is not None:
            if move.post is not None and question.post is not None and move.post.text != question.post.text:
                yield "      The LLM is asked about the text as the corpus has it; the post says it in other words."
            yield from _asked(explanation, reasoner, question, move.stored)
        if 1.0 in answer.probabilities:
            yield f"      It chose {chosen}."
        else:
            yield from _drawn(names, answer.probabilities, move.draw, chosen)


def _answered_in_batch(reasoner: AnyReasoner, answer: Answer, question: Question) -> Iterator[str]:
    """Yield who decided without an LLM, and what it went by."""
    if answer.source == "rule":
        yield "      Decided by the rule: the distilled model was never asked about these options."
        return
    by = "" if reasoner.batch_reasoner is None else f" the {reasoner.batch_reasoner.label}"
    yield f"      Decided by{by}; no LLM was asked."
    yield (
        f"      What it goes by, among others: how near the post is to the nearest interest told, {question.match:.2f} "
        "(a cosine: 1 the same topics, 0 nothing in common, -1 the opposite)."
    )


def _asked(explanation: Explanation, reasoner: Reasoner, question: Question, stored: StoredAnswer) -> Iterator[str]:
    """Yield what the LLM was told and what it said."""
    if question.persona.archetype >= 0:
        archetype, likes = question.persona.archetype, ", ".join(question.persona.interests)
        known = reasoner.params.archetypes * max(1, len(reasoner.llms))
        yield f"      The agent is asked about as archetype {archetype} of {known}: {likes}."
        yield from _shared(explanation, stored.key)
    scored = stored.raw.startswith('{"pmi"')
    yield "      How well does what follows go with the first line?" if scored else "      It was told:"
    for line in stored.prompt.splitlines():
        yield from (f"        | {part}" for part in textwrap.wrap(line, _WIDTH) or [""])
    if scored:
        yield from _scores(stored.raw)
        yield _odds(reasoner.rule.log_odds(question, band_position(stored.raw)))
    else:
        yield f"      It answered: {plain(stored.raw, _RAW_CAP)}"
        if reason := reason_in(stored.raw):
            yield f"      Its reason: {reason}"


def _shared(explanation: Explanation, key: str) -> Iterator[str]:
    """Yield whose answer it was, if it was one for several agents of an archetype."""
    rows, agent = explanation.asked.get(key, ()), explanation.agent.row
    first = next((row for row in rows if row.source == "llm"), None)
    others = len({row.agent for row in rows} - {agent})
    if not others:
        return
    by = (
        ""
        if first is None or first.agent == agent
        else f", asked for first by agent {first.agent} in round {first.round}"
    )
    more = "1 other agent" if others == 1 else f"{others:,} other agents"
    yield f"      The answer is shared with {more} of the archetype in this run{by}."


def _scores(raw: str) -> Iterator[str]:
    """Yield how much likelier a post makes each interest; the best counts.

    Raises:
        DataError: If the ledger says nothing of that.
    """
    try:
        scores = {str(interest): min(float(score), _MOST_TOLD) for interest, score in json.loads(raw)["of"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"the ledger is damaged: {raw[:80]!r} holds no scores of interests") from None
    for interest, score in scores.items():
        times = f"{math.exp(score):.2g} times as likely as without it"
        yield f"      With the post '{plain(interest, NAME_CAP)}' is {times}."


def _odds(terms: dict[str, float]) -> str:
    made_of = ", ".join(f"{value:+.2f} {what}" for what, value in terms.items())
    return f"      Its log-odds of engaging: {made_of}: {sum(terms.values()):+.2f} in all."


def _drawn(names: list[str], chances: tuple[float, ...], draw: float, chosen: str) -> Iterator[str]:
    told = ", ".join(f"{name} {chance:.1%}" for name, chance in zip(names, chances, strict=True))
    yield f"      So the chances are {told}; one after the other from 0 to 1, its draw, {draw:.3f}, falls on {chosen}."


def _action(agent: TracedAgent, move: Move) -> str:
    shares = ", ".join(f"{action} {share:.2f}" for action, share in agent.propensities.items())
    drawn = f"one after the other from 0 to 1, its draw, {move.action_draw:.3f}, falls on {move.action}"
    return f"What it will do with the post is drawn from its habits ({shares}): {drawn}."
