"""The reasoner: asks an LLM which of the open options an agent takes, and says who answered.

It works on frozen questions only and asks each key once in its life. It never changes an agent, and it
never replaces an answer in silence: a fallback is logged, counted with its reason, and recorded.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary, finalize

from prism_mesa.errors import ConfigError, OracleError, did_you_mean
from prism_mesa.reasoner.client import ChatClient, Completion, PromptFunction, as_client
from prism_mesa.reasoner.ledger import AskedRow, Ledger, StoredAnswer, answer_key
from prism_mesa.reasoner.loops import LoopThread, PerLoop, of_this_loop
from prism_mesa.reasoner.params import Fallback
from prism_mesa.reasoner.parse import UselessAnswerError, parse_reasoner_response
from prism_mesa.reasoner.profile import question_of
from prism_mesa.reasoner.prompt import answer_schema, question_prompt
from prism_mesa.reasoner.question import Answer, Ask, Source
from prism_mesa.reasoner.rule import RuleReasoner
from prism_mesa.statechart import AgentState

logger = logging.getLogger("prism_mesa.reasoner")

_FALLBACKS: tuple[Fallback, ...] = ("first", "rule", "stay")


@dataclass(frozen=True)
class _Sheet:
    """An ask, written out for the LLM."""

    ask: Ask
    prompt: str
    key: str


@dataclass(frozen=True)
class _Outcome:
    """What one call brought: a choice and the completion it was read from, or the reason why not."""

    choice: AgentState | None = None
    completion: Completion | None = None
    reason: str = ""


class Reasoner:
    """Lets an LLM answer open choices.

    **Who answered.** Questions with equal keys (prompt, options, LLM, decoding) are asked once. Within a
    batch the first of them, in the order of asks, counts as `llm` and the others as `cache`; so do all
    that meet the key in a later batch. If the call fails, all of them in the batch are `fallback`, and
    the next batch asks again.

    Args:
        client: What is asked; a function ``(prompt) -> str``, plain or async, will do.
        ledger: Where questions and answers are recorded; whoever opened it closes it.
        fallback: What stands in for an answer that did not come: `first` option, `rule`, or `stay`.
        max_concurrency: How many questions are out at the same time, at least 1.
        rule: The rule behind the fallback `rule`.

    Attributes:
        counts: Answers so far by source.
        reasons: Fallbacks so far by reason.
    """

    def __init__(
        self,
        client: ChatClient | PromptFunction,
        *,
        ledger: Ledger | None = None,
        fallback: Fallback = "first",
        max_concurrency: int = 4,
        rule: RuleReasoner | None = None,
    ) -> None:
        if fallback not in _FALLBACKS:
            near = did_you_mean(fallback, _FALLBACKS)
            raise ConfigError(f"reasoner.fallback: {fallback!r} is none of {', '.join(_FALLBACKS)}.{near}")
        if max_concurrency < 1:
            raise ConfigError(f"reasoner.max_concurrency: {max_concurrency} is below 1")
        self.client = as_client(client)
        self.ledger = ledger
        self.fallback = fallback
        self.max_concurrency = max_concurrency
        self.rule = rule or RuleReasoner()
        self.counts: Counter[Source] = Counter()
        self.reasons: Counter[str] = Counter()
        self._known: dict[str, AgentState] = {}
        self._slots: PerLoop[asyncio.Semaphore] = WeakKeyDictionary()
        self._background: LoopThread | None = None

    @property
    def label(self) -> str:
        """What a summary calls it."""
        return str(getattr(self.client, "label", self.client.name))

    @property
    def fallback_share(self) -> float:
        """Share of fallbacks among all answers so far, 0..1."""
        return self.counts["fallback"] / max(self.counts.total(), 1)

    async def decide(
        self,
        agent: Any,
        current_state: AgentState,
        trigger: str,
        options: Sequence[AgentState],
        context: Any = None,
    ) -> AgentState:
        """Return which of the options one agent takes; a single option is returned without asking.

        The agent is read by attribute (see `question_of`) and never changed. `context` is the post at hand,
        a mapping, or anything else that can be told.

        Raises:
            ValueError: If there are no options.
        """
        question = question_of(agent, current_state, trigger, options, context)
        [answer] = await self.answer_all([Ask(question)])
        return question.state if answer.choice is None else answer.choice

    async def answer_all(self, asks: Sequence[Ask]) -> list[Answer]:
        """Return the answers to a tick's questions, in the order of `asks`, and record them.

        Raises:
            ValueError: If a question has no options.
        """
        sheets = [self._sheet(ask) for ask in asks]
        new: dict[str, _Sheet] = {}
        for sheet in sheets:
            if sheet.key and sheet.key not in self._known:
                new.setdefault(sheet.key, sheet)
        outcomes = dict(zip(new, await self._ask_all(new.values()), strict=True))
        for key, outcome in outcomes.items():
            if outcome.choice is not None:
                self._known.setdefault(key, outcome.choice)
        answers = [self._answer(sheet, outcomes, new) for sheet in sheets]
        self._record(sheets, answers, outcomes)
        return answers

    def answer(self, asks: Sequence[Ask]) -> list[Answer]:
        """Do what `answer_all` does, for callers that cannot await, inside a running loop or not."""
        if self._background is None:
            self._background = LoopThread()
            finalize(self, self._background.stop)
        return self._background.run(self.answer_all(asks))

    def _sheet(self, ask: Ask) -> _Sheet:
        options = ask.question.options
        if not options:
            raise ValueError(f"no options for {ask.question.trigger!r} in {ask.question.state!s}")
        if len(options) == 1:
            return _Sheet(ask, "", "")
        prompt = question_prompt(ask.question)
        digest = str(getattr(self.client, "digest", ""))
        return _Sheet(ask, prompt, answer_key(prompt, options, self.client.name, digest, self.client.decoding))

    async def _ask_all(self, sheets: Iterable[_Sheet]) -> list[_Outcome]:
        """Ask all at once, but never more than `max_concurrency` in this loop, whoever else asks in it."""
        slots = of_this_loop(self._slots, lambda: asyncio.Semaphore(self.max_concurrency))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(sheet, slots)) for sheet in sheets]
        return [task.result() for task in tasks]

    async def _ask(self, sheet: _Sheet, slots: asyncio.Semaphore) -> _Outcome:
        options = sheet.ask.question.options
        try:
            async with slots:
                completion = await self.client.chat(sheet.prompt, answer_schema(options))
            return _Outcome(parse_reasoner_response(completion.text, options), completion)
        except (OracleError, UselessAnswerError) as error:
            return self._failed(sheet.ask, error.reason, error)
        except TimeoutError as error:
            return self._failed(sheet.ask, "timeout", error)
        except Exception as error:  # a client or function of a user's own may fail in any way: named, counted
            return self._failed(sheet.ask, type(error).__name__, error)

    def _failed(self, ask: Ask, reason: str, error: Exception) -> _Outcome:
        question = ask.question
        foreseen = isinstance(error, OracleError | UselessAnswerError | TimeoutError)
        logger.warning(
            "%s, %s in %s: fallback '%s' (%s: %s)",
            question.persona.name,
            question.trigger,
            question.state.value,
            self.fallback,
            reason,
            error,
            exc_info=None if foreseen else error,
        )
        return _Outcome(reason=reason)

    def _answer(self, sheet: _Sheet, outcomes: dict[str, _Outcome], new: dict[str, _Sheet]) -> Answer:
        if not sheet.key:
            return Answer(sheet.ask.question.options[0], "rule")
        attempts = int(new.get(sheet.key) is sheet)
        choice = self._known.get(sheet.key)
        if choice is not None:
            asked_now = attempts and outcomes[sheet.key].choice is not None
            return Answer(choice, "llm" if asked_now else "cache", attempts=attempts, key=sheet.key)
        reason = outcomes[sheet.key].reason
        return Answer(self._stand_in(sheet.ask), "fallback", reason, attempts, sheet.key)

    def _stand_in(self, ask: Ask) -> AgentState | None:
        if self.fallback == "rule":
            return self.rule.answer([ask])[0].choice
        return ask.question.options[0] if self.fallback == "first" else None

    def _record(self, sheets: list[_Sheet], answers: list[Answer], outcomes: dict[str, _Outcome]) -> None:
        """Count the answers that an LLM was wanted for, and write them to the ledger in the order of asks."""
        rows: list[AskedRow] = []
        stored: list[StoredAnswer] = []
        for sheet, answer in zip(sheets, answers, strict=True):
            if not sheet.key:
                continue
            self.counts[answer.source] += 1
            if answer.source == "fallback":
                self.reasons[answer.reason] += 1
            if answer.source == "llm":
                stored.append(self._stored(sheet, outcomes[sheet.key]))
            place = (int(sheet.ask.round), int(sheet.ask.tick), int(sheet.ask.agent))
            rows.append(AskedRow(*place, sheet.key, answer.source, answer.reason, answer.attempts))
        if self.ledger is not None and rows:
            self.ledger.write(stored, rows)

    def _stored(self, sheet: _Sheet, outcome: _Outcome) -> StoredAnswer:
        completion = outcome.completion or Completion("")
        return StoredAnswer(
            key=sheet.key,
            prompt=sheet.prompt,
            options=json.dumps([option.value for option in sheet.ask.question.options]),
            llm=self.client.name,
            digest=str(getattr(self.client, "digest", "")),
            decoding=json.dumps(self.client.decoding, sort_keys=True),
            raw=completion.text,
            choice=self._known[sheet.key].value,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            latency_ms=completion.latency_ms,
        )

    def close(self) -> None:
        """End the background thread and its connections; doing it twice does no harm."""
        if self._background is not None:
            self._background.stop()
            self._background = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
