"""Replies, comments and posts by an LLM, each in a turn of thinking and writing.

Turns run concurrently. Their results do not depend on the order in which answers arrive. Failed texts are counted and
left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import numpy as np

from prism_mesa.arrays import Rows
from prism_mesa.deliberation import (
    AgentErrorEvent,
    AgentTextEvent,
    Conversation,
    Event,
    Example,
    Limits,
    ReasoningResult,
    ToolFinishedEvent,
    ToolStartedEvent,
    TurnContext,
    run_turns,
    start_turn,
)
from prism_mesa.deliberation.conversation import quote_data
from prism_mesa.domain import ACTIONS
from prism_mesa.llm import LLMClient, RunPosition
from prism_mesa.reasoner import Reasoner
from prism_mesa.reasoner.prompt import profile_text
from prism_mesa.social.content.activity import (
    NAME_CAP,
    activity_line,
    author_and_text,
    recall_notes,
    recent_activities,
    strip_quotes,
)
from prism_mesa.social.content.tools import PlatformTools
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.questions import personalities
from prism_mesa.social.state.population import NO_POST

_SHORT: Final = "one or two short sentences in your own voice"
TASKS: Final = {
    "reply": f"Write your reply to the post: {_SHORT}, nothing but the reply.",
    "reshare": f"You pass the post on. Write the comment that goes with it: {_SHORT}, nothing but the comment.",
    "post": f"Write a post about what people talk about: {_SHORT}, nothing but the post.",
}
_THOUGHT_PARTS: Final = ("understanding", "needs", "plan")
_THOUGHTS: Final = (
    ("They are proud of a marathon.", "They want to be cheered on.", "Congratulate them."),
    ("They make fun of the late tram.", "They want somebody to laugh with.", "Agree, and joke."),
)
_EXAMPLE_POSTS: Final = (
    "Finally ran my first marathon, 42 kilometres in the rain.",
    "The new tram line opens on Monday, three years late.",
    "Does anyone still read printed newspapers?",
)
_RESPONSES: Final = {
    "reply": (
        "Congratulations, and in the rain too! How are your legs today?",
        "Better late than never. I will believe it when I sit in it.",
        "Every Sunday, with coffee. The screen is for the other six days.",
    ),
    "reshare": (
        "This is the kind of news that I like to wake up to.",
        "Three years. My grandmother's garden shed went up faster.",
        "Good question. I would like to know what all of you think.",
    ),
    "post": (
        "Everybody runs marathons now. I am happy with five kilometres before breakfast.",
        "Three years for one tram line! Who planned that?",
        "I miss the sound of a newspaper at breakfast. A phone does not rustle.",
    ),
}
EXAMPLES: Final = {
    action: tuple(
        Example(text, response, ReasoningResult(**dict(zip(_THOUGHT_PARTS, thought, strict=True))) if thought else None)
        for text, response, thought in zip_longest(_EXAMPLE_POSTS, responses, _THOUGHTS)
    )
    for action, responses in _RESPONSES.items()
}
"""Examples of thoughts and texts in prompts."""
N_ACTIVITIES: Final = 3
"""Number of an agent's activities in its prompts."""
N_CONCURRENT: Final = 4
"""Number of concurrent drafts under limits; it is fixed, so that a replay makes the same drafts."""


@dataclass(frozen=True)
class Draft:
    """A text to write: a reply to a post, a comment on it, or (`action` "post") a post about a text of the corpus.

    Attributes:
        post: The post to answer or reshare, or `NO_POST`.
        about: The text of this post, or the text of the corpus.
    """

    tick: int
    agent: int
    post: int
    action: str
    about: str


def draft_texts(platform: Platform, writer: LLMClient, tick: Rows, agent: Rows, post: Rows, action: Rows) -> list[str]:
    """Return words for replies and reshares, or "" if the LLM failed; the columns have the same length."""
    columns = zip(tick.tolist(), agent.tolist(), post.tolist(), action.tolist(), strict=True)
    drafts = [Draft(t, a, p, ACTIONS[code], author_and_text(platform, p)[1]) for t, a, p, code in columns]
    return _write_drafts(platform, writer, drafts)


def draft_posts(platform: Platform, writer: LLMClient, authors: Rows, texts: Rows) -> list[str]:
    """Return posts about texts of the corpus, or "" if the LLM failed."""
    subjects = [platform.posts.texts[text] for text in texts.tolist()]
    drafts = [Draft(0, a, NO_POST, "post", text) for a, text in zip(authors.tolist(), subjects, strict=True)]
    return _write_drafts(platform, writer, drafts)


def _write_drafts(platform: Platform, writer: LLMClient, drafts: Sequence[Draft]) -> list[str]:
    """Run the turns of all drafts concurrently, and return their texts.

    Under limits, only a few turns run at a time, by priority, so that turns that have begun can be completed.
    """
    events: list[list[Event]] = [[] for _ in drafts]
    words = [""] * len(drafts)
    for indices in _group_drafts(platform, writer, drafts):
        turns = [start_turn(drafts[i].about, Conversation(), _turn_context(platform, drafts[i])) for i in indices]
        log = [events[i] for i in indices]
        responses = run_turns(writer, turns, lambda turn, event, log=log: log[turn].append(event))  # type: ignore[misc]
        for i, response in zip(indices, responses, strict=True):
            words[i] = "" if response is None else strip_quotes(response)
    for text, draft_events in zip(words, events, strict=True):
        reasons = [event.reason for event in draft_events if isinstance(event, AgentErrorEvent)]
        platform.written["written" if text else "budget" if reasons[-1:] == ["budget"] else "failed"] += 1
    _record_events(platform, drafts, events)
    return words


def _group_drafts(platform: Platform, writer: LLMClient, drafts: Sequence[Draft]) -> list[list[int]]:
    indices = list(range(len(drafts)))
    if not writer.budget.is_limited:
        return [indices] if indices else []
    indices.sort(key=lambda i: (_priority(platform, drafts[i].agent), drafts[i].tick, drafts[i].agent))
    return [indices[i : i + N_CONCURRENT] for i in range(0, len(indices), N_CONCURRENT)]


def _priority(platform: Platform, row: int) -> float:
    reasoner = platform.reasoner
    by_followers = isinstance(reasoner, Reasoner) and reasoner.params.spend_on == "followed"
    return -float(platform.network.n_followers[row]) if by_followers else 0.0


def _turn_context(platform: Platform, draft: Draft) -> TurnContext:
    row, params = draft.agent, platform.params.deliberation
    tools = PlatformTools(platform, row, tick=draft.tick)
    people = platform.population
    [interests] = platform.topics.interest_names(people.interests[[row]])
    return TurnContext(
        tools=tools.registry(acts=draft.action != "post"),
        description=profile_text(people.names[row], interests, personalities(platform, np.array([row]))[0]),
        situation=_situation(platform, draft),
        task=TASKS[draft.action],
        examples=EXAMPLES[draft.action],
        accept=lambda text: _is_new(text, draft.about),
        accept_rule="own words",
        recall=lambda text: recall_notes(platform, row, text),
        limits=Limits(params.iterations, params.max_tool_calls, params.max_tokens),
        position=RunPosition(platform.round, row, draft.tick, *platform.llms.assigned_names(np.array([row]), people)),
        priority=_priority(platform, row),
    )


def _situation(platform: Platform, draft: Draft) -> str:
    activities = [activity_line(activity) for activity in recent_activities(platform, draft.agent, N_ACTIVITIES)]
    parts = ["What you did last:\n" + "\n".join(activities)] if activities else []
    if draft.post == NO_POST:
        parts.append("You are about to write a post. This is what people talk about.")
    else:
        author = int(platform.posts.author[draft.post])
        post_text = f"post {draft.post} by {quote_data(platform.population.names[author], NAME_CAP)} (agent {author})"
        task = f"reply to {post_text}" if draft.action == "reply" else f"pass on {post_text}"
        is_quoted = platform.posts.origin(draft.post) != draft.post
        quotes = f", which quotes {quote_data(author_and_text(platform, draft.post)[0], NAME_CAP)}" if is_quoted else ""
        parts.append(f"You are about to {task} of round {platform.posts.round[draft.post]}{quotes}.")
    return "\n\n".join(parts)


def _is_new(text: str, about: str) -> bool:
    """Return whether a text has letters and does not repeat its subject."""
    words = strip_quotes(text).casefold()
    return any(char.isalnum() for char in words) and words != strip_quotes(about).casefold()


def _record_events(platform: Platform, drafts: Sequence[Draft], events: Sequence[Sequence[Event]]) -> None:
    if platform.recorder is None:
        return
    rows = [(draft, *_event_text(event)) for draft, log in zip(drafts, events, strict=True) for event in log]
    rows = [row for row in rows if row[1]]
    if not rows:
        return
    columns = {"round": np.full(len(rows), platform.round, np.int32)}
    for name in ("tick", "agent", "post"):
        columns[name] = np.array([getattr(draft, name) for draft, _, _ in rows], np.int32)
    texts = {"action": [draft.action for draft, _, _ in rows], "event": [event for _, event, _ in rows]}
    texts["text"] = [text for _, _, text in rows]
    platform.recorder.write("thoughts", columns | {name: np.array(values, object) for name, values in texts.items()})


def _event_text(event: Event) -> tuple[str, str]:
    """Return the kind and the text of an event; both are empty for the start of a tool call."""
    match event:
        case AgentTextEvent():
            return event.type, event.text
        case ToolFinishedEvent():
            return "tool", event.model_dump_json(include={"tool_name", "parameters", "result"})
        case ToolStartedEvent():
            return "", ""
        case AgentErrorEvent():
            return "error", f"{event.reason}: {event.text}"
