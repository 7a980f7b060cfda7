"""The reasoner: asks an LLM which of the open options an agent takes, and says who answered.

A key that has an answer is not asked again. A fallback is logged, counted with its reason, and recorded.
"""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from prism_mesa.errors import ConfigError, LLMFailureException, OracleError, one_line, said_openly
from prism_mesa.llm.clients.base import ChatClient, Completion, PromptFunction
from prism_mesa.llm.dispatch.dispatcher import NO_BUDGET
from prism_mesa.llm.dispatch.gateway import LLMGateway
from prism_mesa.llm.dispatch.pending import Identity, PendingQuestion
from prism_mesa.llm.errors import MOST_USELESS, UselessAnswerError
from prism_mesa.llm.formats.request import RunPosition
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import AskedRow, Ledger, answer_key
from prism_mesa.llm.params import Source
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.reasoner.batch import Decider, drawn_one
from prism_mesa.reasoner.distilled import DistilledReasoner
from prism_mesa.reasoner.oracle import Oracle, as_oracle
from prism_mesa.reasoner.params import ReasonerParams, SpendOn, with_options
from prism_mesa.reasoner.question import Answer, PlacedQuestion
from prism_mesa.reasoner.rule import RuleReasoner
from prism_mesa.reasoner.useless import hopeless_text

logger = logging.getLogger("prism_mesa.reasoner")
type _Pending = PendingQuestion[PlacedQuestion, Answer]


class Reasoner(LLMGateway[PlacedQuestion, Answer, ReasonerParams], Decider):
    """Lets an LLM answer open choices.

    **Who answered.** Equal questions are asked once (see `LLMGateway`). If that fails, all questions that wait for it
    are `fallback`, and so are equal questions later in the round; the next round asks again. Questions beyond a limit
    are `budget`.

    **Useless answers.** If the first `MOST_USELESS` answers of an LLM or a function to a model's agents are all
    useless, it has most likely misunderstood the task. Then the reasoner raises an error instead of using fallbacks.

    Args:
        client: A client, an oracle, or a function ``(prompt) -> str``, plain or async. Several, ``{"a": f, "b": g}``,
            have equal shares of the agents unless `model` sets others; the first answers single decisions.
        ledger: The run's own ledger; whoever opened it closes it.
        params: Attempts, limits, fallback, ... (see `ReasonerParams`).
        store: See `LLMGateway`.
        rule: The rule behind the fallback `rule`.
        distilled: Who answers the open choices of a model that `llm_share` does not give to the LLM; whoever is
            asked here directly is the LLM.
        kind: See `LLMGateway`.
        note: See `LLMGateway`.
        options: Single parameters by name: ``fallback="rule"``, ``max_concurrency=8``.

    Attributes:
        batch_reasoner: The reasoner that answers whole columns in its place, or None.
        oracles: The oracles by the names of `llms`; a single oracle has the empty text as its name.
        heard: Called with every question and its answer, in the thread of the answers; None: no call.

    Raises:
        ConfigError: If a parameter is unknown or out of range.
    """

    changes = (*LLMGateway.changes, "_failed", "_failed_in")

    def __init__(
        self,
        client: Oracle | ChatClient | PromptFunction | Mapping[str, Oracle | ChatClient | PromptFunction],
        *,
        ledger: Ledger | None = None,
        params: ReasonerParams | None = None,
        store: AnswerStore | None = None,
        rule: RuleReasoner | None = None,
        distilled: DistilledReasoner | None = None,
        kind: str = "python",
        note: str = "",
        **options: Any,
    ) -> None:
        own = with_options(params or ReasonerParams(), options)
        clients = client if isinstance(client, Mapping) else {"": client}
        if "" not in clients and not own.llms:
            own = with_options(own, {"model": dict.fromkeys(clients, 1 / len(clients))})
        if set(own.llms or ("",)) != set(clients):
            raise ConfigError(f"Reasoner: model names {', '.join(own.llms) or 'one LLM'}, client: {', '.join(clients)}")
        super().__init__(own, store, kind=kind, note=note)
        self.oracles = {llm: as_oracle(each, own, llm) for llm, each in sorted(clients.items())}
        self.oracle, self.llms = next(iter(self.oracles.values())), own.llms
        if len({answer_key("", (), *self.identity(llm)) for llm in self.oracles}) < len(self.oracles):
            raise ConfigError("Reasoner: two clients have the same name, digest and decoding: give each its own name")
        self.store.own = ledger
        self.batch_reasoner = distilled
        self.heard: Callable[[PlacedQuestion, Answer], object] | None = None
        self.rule = rule or RuleReasoner(own.rule)
        self._failed: dict[str, str] = {}
        self._failed_in = -1

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {said_openly(self.label)}>"

    def identity(self, llm: str = "") -> Identity:
        """Return name, digest and decoding of the oracle of an LLM."""
        oracle = self._oracle(llm)
        return oracle.name, oracle.digest, oracle.decoding

    def _oracle(self, llm: str) -> Oracle:
        return self.oracles.get(llm, self.oracle)

    @property
    def label(self) -> str:
        """What a summary calls it."""
        labels = ", ".join(oracle.label for oracle in self.oracles.values())
        name = f"{labels}, replayed" if self.store.mode == "replay" else labels
        if self.batch_reasoner is None:
            return name
        return f"{name} for {self.params.llm_share:g} of the open choices, the rest: {self.batch_reasoner.label}"

    @property
    def llm_share(self) -> float:
        """Share of a model's open choices that come to the LLM."""
        return 1.0 if self.batch_reasoner is None else self.params.llm_share

    @property
    def n_archetypes(self) -> int:
        """Into how many archetypes agents are clustered; 0 if each one is asked for itself."""
        return self.params.archetypes if self.params.persona == "archetype" else 0

    def begin(self) -> None:
        """Begin anew for another model: what is still out is dropped, limits are full; what is known stays known."""
        super().begin()
        self._failed.clear()
        self._failed_in = -1

    def _prepare(self, question: PlacedQuestion) -> _Pending:
        asked = question.question
        place = RunPosition(int(question.round), int(question.agent), int(question.tick), question.llm)
        if not asked.options:
            raise ValueError(f"no options for {asked.trigger!r} in {asked.state!s}")
        priority = (_priority_of(question, self.params.spend_on), question.tick, question.agent)
        if len(asked.options) == 1:
            answer = Answer(asked.options[0], "rule")
            return PendingQuestion(question, "", asked.options, place, priority, done=True, answer=answer)
        if place.round != self._failed_in:
            self._failed.clear()
            self._failed_in = place.round
        oracle = self._oracle(question.llm)
        calls = getattr(oracle, "calls", 1)
        return PendingQuestion(question, oracle.write(asked), asked.options, place, priority, calls=calls)

    async def _ask(self, pending: _Pending) -> Completion:
        return await self._oracle(pending.place.llm).ask(pending.prompt, pending.question.question, pending.attempts)

    def _read(self, question: PlacedQuestion, raw: str) -> tuple[float, ...]:
        return self._oracle(question.llm).read(question.question, raw)

    def _answer(self, pending: _Pending, said: tuple[float, ...], source: Source) -> Answer:
        """Return the answer that probabilities hold for one agent, by its own draw."""
        choice = pending.question.question.options[drawn_one(said, pending.question.draw)]
        return Answer(choice, source, "", pending.own_attempts, pending.key, said)

    def _stand_in(self, pending: _Pending) -> tuple[Answer, Source]:
        """Return the fallback.

        Raises:
            OracleError: `not-recorded`, if what the ledger that is replayed holds is no answer.
        """
        ask, way, reason = pending.question, self.params.fallback, pending.reason
        if pending.raw is not None and self.store.mode == "replay":
            told = f"{self._not_recorded(pending)}; what stands there is none: {pending.error}"
            raise OracleError("not-recorded", told) from pending.error
        if pending.raw is not None:
            logger.warning("the ledger holds an answer that is none: fallback %r (%s)", way, pending.error)
        choice = self.rule.answer([ask])[0].choice if way == "rule" else None
        choice = ask.question.options[0] if way == "first" else choice
        source: Source = "budget" if reason == NO_BUDGET else "fallback"
        return Answer(choice, source, reason, pending.own_attempts, pending.key), source

    def _missing(self, pending: _Pending) -> str:
        place, question = pending.place, pending.question.question
        name = plain(question.persona.name, NAME_CAP)
        options = " or ".join(option.value for option in question.options)
        other = "; another question stands there: has the configuration or a file changed?"
        return (
            f"round {place.round}, tick {place.tick}, agent {place.agent} ({name}): {question.trigger} in "
            f"{question.state.value}, {options}{'' if pending.past is None else other}"
        )

    def _choice_and_probabilities(self, question: PlacedQuestion, raw: str) -> tuple[str, str]:
        options, probabilities = question.question.options, self._read(question, raw)
        if 1.0 in probabilities:
            return options[probabilities.index(1.0)].value, ""
        return "", json.dumps([round(p, 6) for p in probabilities])

    def _failed_before(self, pending: _Pending) -> str:
        """Return why it failed in this round; a single decision is asked again however often it fails."""
        return self._failed.get(pending.key, "") if pending.place.agent >= 0 else ""

    def _answer_is_useless(self, pending: _Pending) -> None:
        """Count it, if a model's agent asks; a single decision falls back however often it is asked for."""
        if any(one.place.agent >= 0 for one in (pending, *pending.others)) and self._is_hopeless(pending):
            told = hopeless_text(pending, self._oracle(pending.place.llm))
            raise LLMFailureException("useless", MOST_USELESS, "agents", told)

    def _answer_has_come(self, pending: _Pending) -> None:
        if pending.completion is None:
            self._failed[pending.key] = pending.reason
            _warn_of_fallback(pending, self.params.fallback)

    def _settle(self, pending: _Pending) -> AskedRow:
        row = super()._settle(pending)
        if self.heard is not None and pending.answer is not None:
            self.heard(pending.question, pending.answer)
        return row


def _priority_of(ask: PlacedQuestion, spend_on: SpendOn) -> float:
    """Return what a question is sorted by where calls are few, the most urgent first (`ReasonerParams.spend_on`)."""
    if spend_on == "followed":
        return -float(ask.followers)
    persona, post = ask.question.persona, ask.question.post
    half = (persona.high - persona.low) / 2
    off = 0.0 if post is None or half <= 0 else abs(post.utility - (persona.low + persona.high) / 2) / half
    return round(off, 9)


def _warn_of_fallback(pending: _Pending, fallback: str) -> None:
    """Log that a fallback stands in for an answer; that no limit was left is no news."""
    if pending.reason == NO_BUDGET:
        return
    question, error = pending.question.question, pending.error
    foreseen = isinstance(error, OracleError | UselessAnswerError | TimeoutError)
    logger.warning(
        "%s, %s in %s: fallback '%s' (%s: %s)",
        plain(question.persona.name, NAME_CAP),
        plain(question.trigger, NAME_CAP),
        question.state.value,
        fallback,
        pending.reason,
        error,
        exc_info=None if foreseen else error,
    )
