"""The reasoner: asks an LLM for the probabilities of an agent's options, from which the agent's keyed draw selects."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from prism_mesa.errors import ConfigError, LLMFailureException, OracleError, one_line, redact_credentials
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.clients.base import ChatClient, Completion, PromptFunction
from prism_mesa.llm.dispatcher import NO_BUDGET, Identity, PendingQuestion, is_expected
from prism_mesa.llm.errors import MAX_USELESS_ANSWERS
from prism_mesa.llm.gateway import LLMGateway
from prism_mesa.llm.ledger import Ledger, answer_key
from prism_mesa.llm.params import DECISION_MODEL, Source
from prism_mesa.llm.request import RunPosition
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.reasoner.batch import Decider, select_options
from prism_mesa.reasoner.distilled import DistilledReasoner
from prism_mesa.reasoner.oracle import Oracle, as_oracle
from prism_mesa.reasoner.params import ReasonerParams, SpendOn, with_options
from prism_mesa.reasoner.prompt import SOCIAL, Role
from prism_mesa.reasoner.question import Answer, Describe, PlacedQuestion
from prism_mesa.reasoner.rule import RuleReasoner
from prism_mesa.statechart.states import state_name

_MAX_ANSWER_CHARS: Final = 120
_MAX_FAULT_CHARS: Final = 400
_REMEDIES: Final = (
    (r"status 40[13]\b", "set the key of the server (OPENAI_API_KEY, OLLAMA_API_KEY)"),
    ("think|reasoning", "reasoner.think=false, or an LLM that thinks (reasoner.model)"),
    ("decision|systemone", f"an LLM that decides (reasoner.model={DECISION_MODEL}), or reasoner.answer=choice"),
    ("support chat", "an LLM that chats (reasoner.model), or reasoner.answer=decision for one that decides"),
    ("context|too long", "more context (reasoner.num_ctx with Ollama, else the server's), or fewer max_answer_tokens"),
)
"""Patterns in the server's error, and remedies."""

logger = logging.getLogger("prism_mesa.reasoner")
type _Pending = PendingQuestion[PlacedQuestion, Answer]


@dataclass(frozen=True)
class _OpenChoiceHandler:
    """The `QuestionHandler` of `Reasoner`."""

    oracles: Mapping[str, Oracle]
    params: ReasonerParams
    rule: RuleReasoner
    logged_bugs: set[str] = field(default_factory=set)

    def oracle(self, llm: str) -> Oracle:
        return self.oracles.get(llm) or next(iter(self.oracles.values()))

    def identity(self, llm: str) -> Identity:
        oracle = self.oracle(llm)
        return oracle.name, oracle.digest, oracle.decoding

    def prepare(self, placed: PlacedQuestion) -> _Pending:
        question = placed.question
        names = tuple(option.value for option in question.options)
        position = RunPosition(int(placed.round), int(placed.agent), int(placed.tick), placed.llm)
        if not question.options:
            raise ValueError(f"no options for {question.trigger!r} in {question.state!s}")
        priority = (_priority(placed, self.params.spend_on), placed.tick, placed.agent)
        if len(question.options) == 1:
            answer = Answer(question.options[0], "rule")
            return PendingQuestion(placed, "", names, position, priority, done=True, answer=answer)
        oracle, prompt = self.oracle(placed.llm), self.oracle(placed.llm).write(question)

        async def ask(attempt: int) -> Completion:
            return await oracle.ask(prompt, question, attempt)

        is_in_model = position.agent >= 0  # a single decision may fail any number of times
        return PendingQuestion(
            placed,
            prompt,
            names,
            position,
            priority,
            self.identity(placed.llm),
            ask,
            partial(oracle.read, question),
            calls=getattr(oracle, "calls", 1),
            fails_if_useless=is_in_model,
            once_a_round=is_in_model,
        )

    def conclude(self, pending: _Pending, source: Source) -> tuple[Answer, Source]:
        """Return the option that the agent's draw selects, or the fallback."""
        placed, fallback, reason = pending.question, self.params.fallback, pending.reason
        if not reason:
            [index] = select_options(np.array([pending.value]), np.array([placed.draw]))
            choice = placed.question.options[index]
            return Answer(choice, source, "", pending.counted_attempts, pending.key, pending.value), source
        if pending.raw is not None and pending.is_replay:
            message = f"the answer in the ledger for {self.describe(pending)} cannot be used: {pending.error}"
            raise OracleError("not-recorded", message) from pending.error
        if pending.raw is not None:
            logger.warning("an answer in the ledger cannot be used: fallback %r (%s)", fallback, pending.error)
        elif pending.is_first and reason != NO_BUDGET and not pending.is_replay:
            _log_fallback(pending, fallback, self.logged_bugs)
        rule_choice = self.rule.answer([placed])[0].choice if fallback == "rule" else None
        fallback_choice = placed.question.options[0] if fallback == "first" else rule_choice
        source = "budget" if reason == NO_BUDGET else "fallback"
        return Answer(fallback_choice, source, reason, pending.counted_attempts, pending.key), source

    def summarise(self, pending: _Pending, value: tuple[float, ...]) -> tuple[str, str]:
        """Return the chosen option, or the probabilities as JSON."""
        if 1.0 in value:
            return pending.question.question.options[value.index(1.0)].value, ""
        return "", json.dumps([round(p, 6) for p in value])

    def describe(self, pending: _Pending) -> str:
        position, question = pending.position, pending.question.question
        options = " or ".join(option.value for option in question.options)
        agent_text = f"agent {position.agent} ({clean_text(question.persona.name, NAME_CAP)})"
        moment = f"round {position.round}, tick {position.tick}"
        return f"{moment}, {agent_text}: {question.trigger} in {question.state.value}, {options}"

    def useless_error(self, pending: _Pending) -> LLMFailureException:
        """Return the error for an LLM whose first answers are all useless. It quotes the last answer."""
        oracle = self.oracle(pending.position.llm)
        message = f"{oracle.label}: its first {MAX_USELESS_ANSWERS} answers are all useless"
        is_decision_model = getattr(oracle, "form", "") == "decision"
        if not is_expected(pending.error):
            message += f"; the last one raised {type(pending.error).__name__}: {pending.error}"
        elif is_decision_model or (isinstance(pending.error, OracleError) and pending.error.reason != "empty"):
            fault = clean_text(str(pending.error).removeprefix(f"{oracle.label}: "), _MAX_FAULT_CHARS)
            if "reasoner." not in fault:
                remedies = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, fault, re.IGNORECASE))
                fault += f": {next(remedies, 'change the LLM (reasoner.model), or the server (reasoner.host)')}"
            message += f": {fault}"
        else:
            last_answer = clean_text(pending.last_text or pending.error, _MAX_ANSWER_CHARS)
            expected = _readable_answers([option.value for option in pending.question.question.options], oracle)
            remedy = "change what it answers, or the LLM (reasoner.model)"
            message += f"; the last answer was {last_answer!r}; PRISM expects {expected}: {remedy}"
        return LLMFailureException("useless", MAX_USELESS_ANSWERS, "agents", message)


class Reasoner(LLMGateway[PlacedQuestion, Answer, ReasonerParams], Decider):
    """Answers open choices by asking an LLM.

    Equal questions are asked once (see `LLMGateway`). If this fails, they all get the fallback until the next round.
    Answers to questions beyond a limit have the source `budget`. If the first `MAX_USELESS_ANSWERS` answers to the
    agents of a model are all useless, the reasoner raises an error instead of using fallbacks.

    Args:
        client: A client, an oracle, or a plain or async function ``(prompt) -> str``. Several clients by name,
            ``{"a": f, "b": g}``, share the agents equally unless `model` sets other shares. `decide` asks the first.
        role: In a model of your own, whom the LLM stands for: "a customer in a small shop".
        task: In a model of your own, what it does: "You decide what the customer does next".
        descriptions: What states mean as choices, by state or value.
        describe: See `Role`.
        ledger: The run's own ledger, which the caller closes; or a file to which answers are added, and from which
            equal questions are answered.
        params: Attempts, limits, fallback, ... (see `ReasonerParams`).
        store: See `LLMGateway`, also for `kind` and `note`.
        rule: The rule for the fallback `rule`.
        distilled: Answers the open choices that the LLM does not answer because of `llm_share`.
        options: Parameters by name: ``fallback="rule"``, ``max_concurrency=8``.

    Attributes:
        batch_reasoner: The distilled reasoner, which answers whole columns; None without one.
        oracles: The oracles by the names in `llms`; the name of a single oracle is the empty string.

    Raises:
        ConfigError: If a parameter is unknown or out of range.
    """

    saved_fields = (*LLMGateway.saved_fields, "_failures", "_failed_round")

    def __init__(
        self,
        client: Oracle | ChatClient | PromptFunction | Mapping[str, Oracle | ChatClient | PromptFunction],
        *,
        role: str = "",
        task: str = "",
        descriptions: Mapping[Any, str] | None = None,
        describe: Describe | None = None,
        ledger: Ledger | str | Path | None = None,
        params: ReasonerParams | None = None,
        store: AnswerStore | None = None,
        rule: RuleReasoner | None = None,
        distilled: DistilledReasoner | None = None,
        kind: str = "python",
        note: str = "",
        **options: Any,
    ) -> None:
        params = with_options(params or ReasonerParams(), options)
        self.role = _make_role(role, task, descriptions, describe)
        if self.role is not SOCIAL and (params.fallback == "rule" or distilled is not None):
            advice = "set fallback to first or stay, or give a function that answers"
            raise ConfigError(f"Reasoner: the rule and distilled models know only the platform; {advice}")
        if isinstance(ledger, str | Path):
            store, ledger = AnswerStore("cache", Ledger(ledger)), None
        clients = client if isinstance(client, Mapping) else {"": client}
        if "" not in clients and not params.llms:
            params = with_options(params, {"model": dict.fromkeys(clients, 1 / len(clients))})
        if set(params.llms or ("",)) != set(clients):
            names = ", ".join(params.llms) or "one LLM"
            raise ConfigError(f"Reasoner: model names {names}, client: {', '.join(clients)}")
        self.oracles = {
            llm: as_oracle(llm_client, params, llm, self.role) for llm, llm_client in sorted(clients.items())
        }
        self.oracle, self.llms = next(iter(self.oracles.values())), params.llms
        self.rule = rule or RuleReasoner(params.rule)
        handler = _OpenChoiceHandler(self.oracles, params, self.rule)
        if len({answer_key("", (), *handler.identity(llm)) for llm in self.oracles}) < len(self.oracles):
            raise ConfigError("Reasoner: two clients have the same name, digest and decoding: give each its own name")
        slots, attempts = params.max_concurrency, params.attempts
        super().__init__(handler, params, store, slots=slots, attempts=attempts, kind=kind, note=note)
        self.store.run_ledger = ledger
        self.batch_reasoner = distilled

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {redact_credentials(self.label)}>"

    @property
    def label(self) -> str:
        """The reasoner's name in summaries."""
        labels = ", ".join(oracle.label for oracle in self.oracles.values())
        name = f"{labels}, replayed" if self.store.mode == "replay" else labels
        if self.batch_reasoner is None:
            return name
        return f"{name} for {self.params.llm_share:g} of the open choices, the rest: {self.batch_reasoner.label}"

    @property
    def llm_share(self) -> float:
        """Share of open choices that the LLM answers."""
        return 1.0 if self.batch_reasoner is None else self.params.llm_share

    @property
    def n_archetypes(self) -> int:
        """Number of archetypes into which agents are clustered; 0 for none."""
        return self.params.archetypes if self.params.persona == "archetype" else 0


def _make_role(role: str, task: str, descriptions: Mapping[Any, str] | None, describe: Describe | None) -> Role:
    """Return the role; that of the platform if nothing else is given."""
    if not (role or task or descriptions or describe):
        return SOCIAL
    texts = tuple((str(state_name(state)), text) for state, text in (descriptions or {}).items())
    return Role(role or Role.role, task or Role.task, texts, describe)


def _priority(placed: PlacedQuestion, spend_on: SpendOn) -> float:
    """Return the priority of a question under a limit (`ReasonerParams.spend_on`). Low numbers are asked first."""
    if spend_on == "followed":
        return -float(placed.followers)
    persona, post = placed.question.persona, placed.question.post
    half_width, middle = (persona.high - persona.low) / 2, (persona.low + persona.high) / 2
    distance = 0.0 if post is None or half_width <= 0 else abs(post.utility - middle) / half_width
    return round(distance, 9)


def _log_fallback(pending: _Pending, fallback: str, logged_bugs: set[str]) -> None:
    """Log a fallback, with the traceback of the first bug of each kind."""
    question, error = pending.question.question, pending.error
    is_logged = is_expected(error) or pending.reason in logged_bugs
    logged_bugs.add(pending.reason)
    name, trigger = clean_text(question.persona.name, NAME_CAP), clean_text(question.trigger, NAME_CAP)
    details = name, trigger, question.state.value, fallback, pending.reason, error
    logger.warning("%s, %s in %s: fallback '%s' (%s: %s)", *details, exc_info=None if is_logged else error)


def _readable_answers(options: list[str], oracle: Any) -> str:
    names = " or ".join(options)
    if getattr(oracle, "form", "") == "choice":
        return f'{{"next_state": "{options[0]}"}}, or the name of an option alone: {names}'
    return f"probabilities of {names} (or, for a function, one of these names)"
