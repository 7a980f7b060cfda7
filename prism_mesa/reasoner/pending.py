"""A question on its way to an LLM: how urgent it is, what a raw answer means to it, what is kept and said of it."""

import json
import logging
from dataclasses import dataclass, field

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.dispatch.dispatcher import NO_BUDGET, Call
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.ledger.database import AskedRow, Ledger, StoredAnswer
from prism_mesa.llm.params import Source
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.reasoner.oracle import Oracle
from prism_mesa.reasoner.question import Answer, PlacedQuestion, Question

logger = logging.getLogger("prism_mesa.reasoner")

type Answered = tuple[PlacedQuestion, Answer]


@dataclass(frozen=True)
class PendingQuestion:
    """An ask, written out for the LLM, and where its answer goes."""

    ask: PlacedQuestion
    prompt: str
    key: str
    out: list[Answered] = field(repr=False, compare=False)

    @property
    def place(self) -> tuple[int, int]:
        """Tick and agent: of those that wait for one call the first, in this order, counts as asked."""
        return self.ask.tick, self.ask.agent


def priority_of(ask: PlacedQuestion, spend_on: str) -> tuple[float, int, int]:
    """Return what a question is sorted by where calls are few, the most urgent first (`ReasonerParams.spend_on`)."""
    if spend_on == "followed":
        return (-float(ask.followers), ask.tick, ask.agent)
    persona, post = ask.question.persona, ask.question.post
    half = (persona.high - persona.low) / 2
    off = 0.0 if post is None or half <= 0 else abs(post.relevance - (persona.low + persona.high) / 2) / half
    return (round(off, 9), ask.tick, ask.agent)


def read_answer(oracle: Oracle, pending: PendingQuestion, raw: str, source: Source, attempts: int = 0) -> Answer:
    """Return the answer that a raw text holds for one agent, by its own draw.

    Raises:
        UselessAnswerError: If the text is no answer to the question.
    """
    question = pending.ask.question
    probabilities = oracle.read(question, raw)
    before = 0.0
    choice = question.options[max(i for i, p in enumerate(probabilities) if p > 0)]
    for option, probability in zip(question.options, probabilities, strict=True):
        before += probability
        if pending.ask.draw < before:
            choice = option
            break
    return Answer(choice, source, "", attempts, pending.key, probabilities)


def stored_answer(oracle: Oracle, call: Call[Question], completion: Completion) -> StoredAnswer:
    """Return what the ledger keeps of an answer."""
    question = call.question
    probabilities = oracle.read(question, completion.text)
    certain = 1.0 in probabilities
    return StoredAnswer(
        key=call.key,
        prompt=call.prompt,
        options=json.dumps([option.value for option in question.options]),
        llm=oracle.name,
        digest=oracle.digest,
        decoding=json.dumps(dict(oracle.decoding), sort_keys=True),
        raw=completion.text,
        choice=question.options[probabilities.index(1.0)].value if certain else "",
        probabilities="" if certain else json.dumps([round(p, 6) for p in probabilities]),
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
        latency_ms=completion.latency_ms,
    )


def missing_answer(pending: PendingQuestion, past: AskedRow | None, ledger: Ledger | None) -> str:
    """Return in words that a ledger that is replayed has no answer; `past` is what stands at its place instead."""
    ask, question = pending.ask, pending.ask.question
    name = plain(question.persona.name, NAME_CAP)
    where = "" if ledger is None else f" {ledger.path}"
    options = " or ".join(option.value for option in question.options)
    other = "" if past is None else "; another question stands there: has the configuration or a file changed?"
    return (
        f"the ledger{where} holds no answer for round {ask.round}, tick {ask.tick}, agent {ask.agent} "
        f"({name}): {question.trigger} in {question.state.value}, {options}{other}"
    )


def warn_of_fallback(call: Call[Question], fallback: str) -> None:
    """Log that a fallback stands in for an answer; that no limit was left is no news."""
    if call.reason == NO_BUDGET:
        return
    question, error = call.question, call.error
    foreseen = isinstance(error, OracleError | UselessAnswerError | TimeoutError)
    logger.warning(
        "%s, %s in %s: fallback '%s' (%s: %s)",
        plain(question.persona.name, NAME_CAP),
        plain(question.trigger, NAME_CAP),
        question.state.value,
        fallback,
        call.reason,
        error,
        exc_info=None if foreseen else error,
    )
