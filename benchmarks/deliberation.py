"""What thinking before writing costs besides the LLM, which a function plays that answers at once.

A turn here is a thought that proposes two calls, the two calls out of ten tools, and a response. Measured, in this
order:

1. CPU of a turn in a talk (`Deliberation.chat_stream`), with a ledger on disk;
2. CPU of a turn where many run side by side (`run_turns`), with a ledger on disk;
3. whether anything grows with the length of a talk: prompts, the conversation, the notes.

It asserts results: the events of each turn, what the ledger holds, and that nothing grows. Targets are printed as met
or not.

    uv run python benchmarks/deliberation.py
    uv run python benchmarks/deliberation.py --turns 50 --talk 300
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from measuring import Times, cpu_s, machine, verdict

from prism_mesa.deliberation import (
    Conversation,
    Deliberation,
    Event,
    Limits,
    Note,
    Notebook,
    ToolRegistry,
    TurnContext,
    run_turns,
    start_turn,
)
from prism_mesa.llm import FunctionClient, Ledger, LLMClient, RunPosition

TURN_MS: Final = 2.0
N_TOOLS: Final = 10
EACH: Final = ["AgentTextEvent", *["ToolStartedEvent", "ToolFinishedEvent"] * 2, "AgentTextEvent"]
REPEATS: Final = 5
NOTES: Final = 50
SHORT: Final = 100
"""Turns after which nothing may grow any more."""


def thought(n: int) -> str:
    """Return a thought that proposes two calls."""
    calls = [
        {"tool_name": f"look_{(n + i) % N_TOOLS}", "parameters": {"post": n, "depth": "2"}, "reasoning": "It may help."}
        for i in range(2)
    ]
    said = {
        "understanding": "They ask whether the library stays open on Saturdays.",
        "needs": "They hope that it does, and want to be told plainly.",
        "connection": "They asked something like it before.",
        "plan": "Look it up, then answer.",
    }
    return json.dumps(said | {"proposed_tools": calls})


def llm(prompt: str) -> str:
    """Play an LLM whose answers depend on the prompt."""
    n = sum(prompt.encode()) % 1000
    if prompt.endswith("as JSON:"):
        return thought(n)
    if prompt.endswith("The summary:"):
        return f"They spoke {n} times of the library and of Saturdays. " * 10
    return f"It does, says post {n}, at least until the end of the year; after that nobody knows yet."


def tools(timeout_s: float | None = None) -> ToolRegistry:
    """Return ten tools; made anew for each agent, as a run does."""
    registry = ToolRegistry(timeout_s=timeout_s)
    for number in range(N_TOOLS):
        registry.add(look, name=f"look_{number}")
    return registry


def look(post: int, depth: int = 1) -> str:
    """Look at a post and what stands below it.

    Args:
        post: its number.
        depth: how many levels below it.
    """
    assert depth == 2
    return f"Post {post}: the library stays open on Saturdays, says the council. " * 4


def recorded(ledger: Ledger, run: str) -> LLMClient:
    """Return a client that writes all down."""
    client = LLMClient(FunctionClient(llm, "toy"))
    client.record(ledger, f"benchmark/{run}")
    return client


def check(events: list[Event]) -> None:
    """See to it that a turn did all that a turn is here."""
    assert [type(event).__name__ for event in events] == EACH, events


def one_talk(turns: int, ledger: Ledger, timeout_s: float | None = None) -> None:
    """Talk with an agent for some turns."""
    with recorded(ledger, "talk") as client:
        for place in range(turns):
            context = TurnContext(tools=tools(timeout_s), description="You are Ada Kaya.", limits=Limits(iterations=1))
            agent = Deliberation(client, context)
            check(list(agent.chat_stream(f"Is the library open on Saturday {place}?")))


def side_by_side(turns: int, ledger: Ledger) -> None:
    """Let many agents think and write at the same time."""
    events: list[list[Event]] = [[] for _ in range(turns)]
    with recorded(ledger, "run_turns") as client:
        begun = [
            start_turn(
                f"Is the library open on Saturday {agent}?",
                Conversation(),
                TurnContext(
                    tools=tools(),
                    description="You are Ada Kaya.",
                    limits=Limits(iterations=1),
                    position=RunPosition(1, agent),
                ),
            )
            for agent in range(turns)
        ]
        responses = run_turns(client, begun, lambda turn, event: events[turn].append(event))
    assert all(responses)
    for own in events:
        check(own)


def measured(what: str, turns: int, work: Callable[[int, Ledger], None], target: float | None = TURN_MS) -> None:
    """Print the CPU of a turn, and see to it that the ledger holds what was asked."""
    times = Times(warm_up=1)
    for _ in range(REPEATS + 1):
        with TemporaryDirectory() as folder, Ledger(Path(folder) / "decisions.sqlite") as ledger:
            times.all.append(cpu_s(lambda ledger=ledger: work(turns, ledger)) / turns * 1000)  # type: ignore[misc]
            sources = Counter(row.source for row in ledger.asked())
            assert sources == {"llm": 2 * turns}, sources
            assert len(ledger.answers()) == 2 * turns
    told = "" if target is None else f" (target {target:g} ms: {verdict(times.median <= target)})"
    print(f"{what}: median (minimum) of {REPEATS}: {times} ms CPU a turn{told}")


def nothing_grows(turns: int) -> None:
    """Print how long prompts, a conversation and a notebook are after few and after many turns of one talk."""
    longest, notebook, sizes = 0, Notebook(max_notes=NOTES), {}

    def noting(prompt: str) -> str:
        nonlocal longest
        longest = max(longest, len(prompt))
        return llm(prompt)

    def recall(text: str) -> list[str]:
        return [note.text for note in notebook.recall(1, None, hour=place, max_notes=3)]

    context = TurnContext(tools=tools(), recall=recall, limits=Limits(iterations=2))
    with Deliberation(noting, context) as agent:
        for place in range(turns):
            for _ in agent.chat_stream(f"Saturday {place:05}: " + "is the library open? " * 10):
                pass
            notebook.add(1, Note(f"Saturday {place:05}: {agent.response}", hour=place, importance=1 + place % 10))
            if place + 1 in (SHORT, turns):
                told = sum(len(message.model_dump_json()) for message in agent.conversation.messages)
                sizes[place + 1] = (longest, len(agent.conversation.messages), told, len(notebook))
    for after, (prompt, messages, told, notes) in sizes.items():
        print(
            f"after {after:,} turns of one talk: longest prompt {prompt:,} characters, conversation {messages} "
            f"messages ({told:,} characters of JSON), {notes} notes"
        )
    few, many = sizes[SHORT], sizes[turns]
    assert many[0] <= few[0] * 1.02, "prompts grow"
    assert max(many[1], few[1]) <= 6, "the conversation grows"
    assert many[2] <= 2 * few[2], "messages grow"
    assert few[3] == many[3] == NOTES, "notes grow"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--talk", type=int, default=1000)
    given = parser.parse_args()
    print(machine("pydantic"))
    measured(f"talks of a turn each, {given.turns} of them", given.turns, one_talk)
    measured(
        "the same with tools in threads of their own (a time-out)",
        given.turns,
        lambda turns, ledger: one_talk(turns, ledger, timeout_s=10.0),
        target=None,
    )
    measured(f"{given.turns} turns side by side", given.turns, side_by_side)
    nothing_grows(given.talk)


if __name__ == "__main__":
    main()
