"""The reasoner: asks an LLM which of the open options an agent takes, and says who answered.

A key that has an answer is not asked again. A fallback is logged, counted with its reason, and recorded.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from prism_mesa.errors import OracleError, one_line, said_openly
from prism_mesa.llm.clients.base import ChatClient, PromptFunction
from prism_mesa.llm.dispatch.dispatcher import NO_BUDGET, Call
from prism_mesa.llm.dispatch.gateway import LLMGateway
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import AskedRow, Ledger, answer_key
from prism_mesa.llm.params import Source
from prism_mesa.reasoner.describe import question_of
from prism_mesa.reasoner.distilled import DistilledReasoner
from prism_mesa.reasoner.oracle import Oracle, as_oracle
from prism_mesa.reasoner.params import ReasonerParams, with_options
from prism_mesa.reasoner.pending import (
    Answered,
    PendingQuestion,
    missing_answer,
    priority_of,
    read_answer,
    stored_answer,
    warn_of_fallback,
)
from prism_mesa.reasoner.question import Answer, PlacedQuestion, Question
from prism_mesa.reasoner.rule import RuleReasoner
from prism_mesa.reasoner.useless import Usefulness
from prism_mesa.statechart import AgentState

logger = logging.getLogger("prism_mesa.reasoner")


class Reasoner(LLMGateway[Question, ReasonerParams]):
    """Lets an LLM answer open choices.

    **Who answered.** Questions with equal keys (prompt, options, LLM, decoding) are asked once. Of those
    that wait for a call the first, by tick and agent, counts as `llm` and the others as `cache`; so do all that
    meet the key later. If the call fails, all that wait for it are `fallback`, and so are those that meet the
    key later in the same round; after that it is asked again. What no limit was left for is `budget`.

    **Useless answers.** An LLM or a function whose first `useless.MOST` answers to a model's agents are all useless has
    most likely not understood what is wanted: then asking ends with an error, and not with fallbacks without end.

    **When.** `answer` waits for all answers. `submit` and `collect` let whoever asks go on in between. Asking happens
    in an event loop of its own, in a thread, so it works wherever a loop already runs.

    Args:
        client: What is asked; a function ``(prompt) -> str``, plain or async, will do.
        ledger: The run's own ledger; whoever opened it closes it.
        params: How it is asked: attempts, limits, fallback, ... (see `ReasonerParams`).
        store: What is known before and where answers are shared; by default nothing and nowhere.
        rule: The rule behind the fallback `rule`.
        distilled: Who answers the open choices of a model that `llm_share` does not give to the LLM; whoever is
            asked here directly is the LLM.
        kind: What of `ReasonerParams.kind` it is; `python` if it was made by hand.
        note: Why it decides although something else was wished for; else empty.
        options: Single parameters by name: ``fallback="rule"``, ``max_concurrency=8``.

    Attributes:
        counts: Answers so far by source.
        reasons: Fallbacks so far by reason.
        batch_reasoner: Who answers whole columns in its place, or None.
        heard: Called with every question and its answer, in the thread of the answers; None: nobody listens.
        usage: What was spent so far: `calls`, `prompt_tokens`, `completion_tokens`.

    Raises:
        ConfigError: If a parameter is unknown or out of range.
    """

    def __init__(
        self,
        client: Oracle | ChatClient | PromptFunction,
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
        super().__init__(own, store, kind=kind, note=note)
        self.oracle = as_oracle(client, own.answer or "choice")
        self.store.own = ledger
        self.batch_reasoner = distilled
        self.heard: Callable[[PlacedQuestion, Answer], object] | None = None
        self.rule = rule or RuleReasoner(own.rule)
        self._waiting: dict[str, tuple[Call[Question], list[PendingQuestion]]] = {}
        self._failed: dict[str, str] = {}
        self._failed_in = -1
        self._usefulness = Usefulness()
        self._ready: list[Answered] = []
        self._n_out = 0

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {said_openly(self.label)}>"

    @property
    def asked(self) -> Oracle:
        """The oracle."""
        return self.oracle

    @property
    def label(self) -> str:
        """What a summary calls it."""
        name = f"{self.oracle.label}, replayed" if self.store.mode == "replay" else self.oracle.label
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
        [answer] = await self.answer_all([PlacedQuestion(question)])
        return question.state if answer.choice is None else answer.choice

    async def answer_all(self, asks: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers to some questions, in the order of `asks`, and record them.

        Raises:
            ValueError: If a question has no options.
            OracleError: `not-recorded`, if the ledger that is replayed does not hold a question.
        """
        return await asyncio.wrap_future(self._loop().start(self._answer_all(asks)))

    def answer(self, asks: Sequence[PlacedQuestion]) -> list[Answer]:
        """Do what `answer_all` does, for callers that cannot await, inside a running loop or not."""
        return self._loop().run(self._answer_all(asks))

    def submit(self, asks: Sequence[PlacedQuestion]) -> None:
        """Put questions without waiting; `collect` brings the answers.

        Raises:
            ValueError: If a question has no options.
            OracleError: As `answer_all`.
            LLMFailureException: As `collect`.
        """
        self._loop().run(self._submit(asks))

    def collect(self) -> list[Answered]:
        """Return answers to what was submitted, each once, and [] when none is out any more.

        It waits until there are some and the LLM's slots would run dry without further questions, so that few
        calls of it bring many answers.

        Raises:
            LLMFailureException: `useless`, if all answers so far were, and there are many.
        """
        return self._loop().run(self._collect())

    async def _answer_all(self, asks: Sequence[PlacedQuestion]) -> list[Answer]:
        out: list[Answered] = []
        self._put(asks, out)
        dispatcher = self._dispatcher_of_this_loop()
        while len(out) < len(asks):
            dispatcher.flush()
            await dispatcher.news()
        dispatcher.check()
        found: dict[int, deque[Answer]] = defaultdict(deque)
        for ask, answer in out:
            found[id(ask)].append(answer)
        return [found[id(ask)].popleft() for ask in asks]

    async def _submit(self, asks: Sequence[PlacedQuestion]) -> None:
        self._put(asks, self._ready)

    async def _collect(self) -> list[Answered]:
        dispatcher = self._dispatcher_of_this_loop()
        while self._n_out and not (self._ready and dispatcher.wants_more):
            dispatcher.flush()
            await dispatcher.news()
        dispatcher.check()
        found, self._ready[:] = self._ready[:], []
        return found

    def _put(self, asks: Sequence[PlacedQuestion], out: list[Answered]) -> None:
        """Answer what is known, and ask the rest; equal questions once."""
        known: list[AskedRow] = []
        for ask in asks:
            pending = self._pending_question(ask, out)
            if not pending.key:
                out.append((ask, Answer(ask.question.options[0], "rule")))
                continue
            answer = self._replayed(pending) if self.store.mode == "replay" else self._known(pending)
            if answer is not None:
                known.append(self._given(pending, answer))
            else:
                self._ask(pending)
        self.store.note(known)

    def _ask(self, pending: PendingQuestion) -> None:
        """Let a pending question wait for the call of its key, as urgent as the most urgent that waits for it."""
        ask, priority = pending.ask, priority_of(pending.ask, self.params.spend_on)
        self._n_out += pending.out is self._ready
        if pending.key in self._waiting:
            call, pending_questions = self._waiting[pending.key]
            pending_questions.append(pending)
            if not call.taken:
                call.priority = min(call.priority, priority)
        else:
            call = Call(pending.key, pending.prompt, ask.question, priority)
            self._waiting[pending.key] = (call, [pending])
            self._dispatcher_of_this_loop().put(call)

    def _pending_question(self, ask: PlacedQuestion, out: list[Answered]) -> PendingQuestion:
        options = ask.question.options
        if not options:
            raise ValueError(f"no options for {ask.question.trigger!r} in {ask.question.state!s}")
        if len(options) == 1:
            return PendingQuestion(ask, "", "", out)
        if ask.round != self._failed_in:
            self._failed.clear()
            self._failed_in = ask.round
            self.budget.at_round(ask.round)
        oracle = self.oracle
        prompt = oracle.write(ask.question)
        key = answer_key(prompt, options, oracle.name, oracle.digest, oracle.decoding)
        return PendingQuestion(ask, prompt, key, out)

    def _known(self, pending: PendingQuestion) -> Answer | None:
        raw = self.store.raw_of(pending.key)
        if raw is not None:
            return self._read_again(pending, raw)
        reason = self._failed.get(pending.key) if pending.ask.agent >= 0 else None
        return None if reason is None else self._stand_in(pending, reason)

    def _replayed(self, pending: PendingQuestion) -> Answer:
        past = self.store.past(int(pending.ask.round), int(pending.ask.tick), int(pending.ask.agent))
        if past is not None and past.source in ("fallback", "budget"):
            oracle = self.oracle
            if past.key != pending.key and self.store.knows(oracle.name, oracle.digest, oracle.decoding):
                raise OracleError("not-recorded", missing_answer(pending, past, self.store.shared))
            return self._stand_in(pending, past.reason, past.attempts)
        raw = self.store.raw_of(pending.key)
        if raw is None:
            raise OracleError("not-recorded", missing_answer(pending, past, self.store.shared))
        try:
            return read_answer(self.oracle, pending, raw, "cache")
        except UselessAnswerError as error:
            told = f"{missing_answer(pending, past, self.store.shared)}; what stands there is none: {error}"
            raise OracleError("not-recorded", told) from error

    def _call_is_done(self, call: Call[Question]) -> None:
        """Let everybody know who waits for a call, and write it down."""
        pending_questions = sorted(self._waiting.pop(call.key)[1], key=lambda pending: pending.place)
        raw = ""
        if call.completion is not None:
            self._usefulness.answer_was_used()
            raw = self.store.keep(stored_answer(self.oracle, call, call.completion))
        else:
            self._failed[call.key] = call.reason
            warn_of_fallback(call, self.params.fallback)
        rows = []
        for i, pending in enumerate(pending_questions):
            attempts = call.attempts if i == 0 else 0
            if call.completion is None:
                answer = self._stand_in(pending, call.reason, attempts)
            elif raw != call.completion.text:  # another process was first, and what it was told stands
                answer = self._read_again(pending, raw, "cache" if i else "llm", attempts)
            else:
                answer = read_answer(self.oracle, pending, raw, "cache" if i else "llm", attempts)
            rows.append(self._given(pending, answer))
        self.store.note(rows)
        self._n_out -= sum(pending.out is self._ready for pending in pending_questions)

    def _answer_is_useless(self, call: Call[Question]) -> None:
        """Count it, if a model's agent asks; a single decision falls back however often it is asked for."""
        if any(pending.ask.agent >= 0 for pending in self._waiting[call.key][1]):
            self._usefulness.answer_was_useless(call, self.oracle)

    def _given(self, pending: PendingQuestion, answer: Answer) -> AskedRow:
        """Give an answer to who asked, count it, and return what is to be written down."""
        pending.out.append((pending.ask, answer))
        if self.heard is not None:
            self.heard(pending.ask, answer)
        self.counts[answer.source] += 1
        if answer.source == "fallback":
            self.reasons[answer.reason] += 1
        place = (int(pending.ask.round), int(pending.ask.tick), int(pending.ask.agent))
        return AskedRow(*place, pending.key, answer.source, answer.reason, answer.attempts, self.store.run)

    def _read_again(self, pending: PendingQuestion, raw: str, source: Source = "cache", attempts: int = 0) -> Answer:
        """Return the answer that a ledger holds, or, as it stands there all the same, a fallback if it is none."""
        try:
            return read_answer(self.oracle, pending, raw, source, attempts)
        except UselessAnswerError as error:
            logger.warning("the ledger holds an answer that is none: fallback %r (%s)", self.params.fallback, error)
            return self._stand_in(pending, error.reason, attempts)

    def _stand_in(self, pending: PendingQuestion, reason: str, attempts: int = 0) -> Answer:
        """Return what stands in for an answer that did not come."""
        source: Source = "budget" if reason == NO_BUDGET else "fallback"
        ask, way = pending.ask, self.params.fallback
        choice = self.rule.answer([ask])[0].choice if way == "rule" else None
        choice = ask.question.options[0] if way == "first" else choice
        return Answer(choice, source, reason, attempts, pending.key)

    def begin(self) -> None:
        """Begin anew for another model: what is still out is dropped, limits are full; what is known stays known."""
        if self._n_out:
            self._stop()
        self._dispatcher = None
        self._ready.clear()
        self._failed.clear()
        self._failed_in = -1
        self._usefulness = Usefulness()
        self.budget.refill()

    def _forget(self) -> None:
        super()._forget()
        self._waiting.clear()
        self._ready.clear()
        self._n_out = 0
