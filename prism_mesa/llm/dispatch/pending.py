"""What waits for an LLM: a question on its way to its recorded answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.formats.request import RunPosition
from prism_mesa.llm.ledger.database import AskedRow, StoredAnswer, decoding_text
from prism_mesa.llm.params import Source

type Identity = tuple[str, str, Mapping[str, Any]]
"""Name, digest and decoding of an LLM: by which a ledger knows it."""


@dataclass(eq=False, slots=True)
class PendingQuestion[Q, A]:
    """A question on its way to its answer: what is asked, and what has come of it so far.

    It has a `raw` answer in the end, which may be of no use, or the `reason` why there is none.

    Attributes:
        question: What is asked, as whoever asks put it; `options` is what could be answered.
        place: Where in the run it belongs.
        priority: What a limit is spent on first: lower comes first. It stands once the question is `taken` from the
            queue.
        is_submitted: Whether nobody waits for it, so that it is given out as soon as it is done.
        is_left: Whether whoever waited for it does so no more.
        key: The ledger's key; empty if no LLM is asked.
        identity: Name, digest and decoding of the LLM that is asked.
        others: Equal questions that wait for the answer to this one.
        calls: Calls of one attempt; `most_tokens`: the most tokens of one attempt.
        attempts: Attempts so far.
        tokens: What all attempts cost: tokens of prompts, and of what was said.
        waited_s: Seconds that it waited because busy servers asked for it; these refusals are no attempts.
        said: The last answer that was none to the question.
        completion: What the LLM said that is one.
        error: What the last attempt raised.
        past: What came of it in the run that is replayed.
        is_first: Whether it counts as the one of equal questions that was asked.
        done: Whether it is known what comes of it.
        answer: What whoever asks is given.
    """

    question: Q
    prompt: str
    options: Sequence[str]
    place: RunPosition
    priority: tuple[float, int, int]
    is_submitted: bool = False
    is_left: bool = False
    key: str = ""
    identity: Identity = ("", "", {})
    others: list["PendingQuestion[Q, A]"] = field(default_factory=list)
    calls: int = 1
    most_tokens: int = 0
    taken: bool = False
    attempts: int = 0
    tokens: tuple[int, int] = (0, 0)
    waited_s: float = 0.0
    said: str = ""
    completion: Completion | None = None
    raw: str | None = None
    reason: str = ""
    error: Exception | None = None
    past: AskedRow | None = None
    is_first: bool = False
    done: bool = False
    answer: A | None = None

    @property
    def own_attempts(self) -> int:
        """How often the LLM was asked for its sake: only the first of equal questions counts."""
        return self.attempts if self.is_first else 0

    def wait_for(self, asked: "PendingQuestion[Q, A]") -> None:
        """Wait for an equal question that is out, which becomes as urgent as the most urgent that waits for it."""
        asked.others.append(self)
        if not asked.taken:
            asked.priority = min(asked.priority, self.priority)

    def share(self) -> list["PendingQuestion[Q, A]"]:
        """Let all that wait for it have what came of it, and return them and it, by tick and agent."""
        equal = sorted([self, *self.others], key=lambda one: (one.place.tick, one.place.agent))
        equal[0].is_first = True
        for one in equal:
            one.raw, one.reason, one.error = self.raw, self.reason, self.error
            one.attempts, one.tokens, one.done = self.attempts, self.tokens, True
        return equal

    def row(self, source: Source, run: str) -> AskedRow:
        """Return what is written down of it: who asked, and what came of it."""
        place = self.place
        own = (place.round, place.tick, place.agent, self.key, source, self.reason, self.own_attempts, run)
        return AskedRow(*own, *(self.tokens if self.is_first else (0, 0)))

    def stored(self, said: Completion, choice: str, probabilities: str) -> StoredAnswer:
        """Return what the ledger keeps of what the LLM said."""
        llm, digest, decoding = self.identity
        return StoredAnswer(
            key=self.key,
            prompt=self.prompt,
            options=json.dumps(list(self.options)),
            llm=llm,
            digest=digest,
            decoding=decoding_text(decoding),
            raw=said.text,
            choice=choice,
            probabilities=probabilities,
            prompt_tokens=said.prompt_tokens,
            completion_tokens=said.completion_tokens,
            latency_ms=said.latency_ms,
        )
