"""Notes on keys, and settings of interventions, that you set but that change nothing in the tables of a run.

Rules that depend only on other keys stand at the fields (`OnlyWith`). The rules here need more than the parameters.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Final, Self

import numpy as np

from prism_mesa.llm.budget import Budget
from prism_mesa.llm.kinds import KINDS_THAT_ASK
from prism_mesa.llm.params import WITHOUT_EFFECT, llm_keys
from prism_mesa.params import explicit_values, leaf_values
from prism_mesa.reasoner import ReasonerParams, asks_llm
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.world.build import StartingWorld
from prism_mesa.without_effect import WithoutEffect, conditions


class ModelFacts:
    """Facts that decide whether a key has an effect on a platform that was made from `world`.

    Attributes:
        p: The parameters.
        kind: Who decides, as in `reasoner.kind`.
        choices: Whether the chart leaves any choice open.
        scores: Whether the LLM gives scores instead of words.
        answer: The form of the LLM's answers; `persona`: who asks.
        writes: Whether an LLM writes texts.
        profiled: Columns that the file of profiles gives for every agent.
        overrules_kind: Whether a file of edges overrules `network.kind`.
    """

    def __init__(
        self, platform: Platform, world: StartingWorld, *, has_own_reasoner: bool, has_own_chart: bool
    ) -> None:
        reasoner, self.p, self.n = platform.reasoner, platform.params, len(platform.population)
        self.kind, self.has_own_reasoner, self.has_own_chart = reasoner.kind, has_own_reasoner, has_own_chart
        self.choices = any(len(options) > 1 for options in platform.tables.option_sets)
        self.scores = asks_llm(reasoner) and "answer" not in reasoner.oracle.decoding
        self.answer = str(reasoner.params.answer) if asks_llm(reasoner) else ""
        self.persona = str(reasoner.params.persona) if asks_llm(reasoner) else ""
        self.writes, self.profiled = platform.writer is not None, world.profiled
        kind = self.p.network.kind
        self.overrules_kind = explicit_values(self.p).get("network.kind", kind) != kind

    def under(self, params: SocialParams) -> Self:
        """Return the same facts with other parameters."""
        facts = copy(self)
        facts.p = params
        return facts

    @property
    def asks(self) -> bool:
        """Whether an LLM of the parameters decides."""
        return self.choices and not self.has_own_reasoner and self.kind not in ("rule", "distilled")


type Row = WithoutEffect[ModelFacts]


def _llm(names: str, when: Callable[[ModelFacts], bool], why: str) -> Row:
    """Return a row about keys of an LLM of the parameters, if that LLM decides."""
    keys = " ".join(f"reasoner.{name}" for name in names.split())
    return WithoutEffect(keys, lambda k: k.asks and when(k), why)


def _is_profiled(column: str, facts: ModelFacts) -> bool:
    return column in facts.profiled


_ALL_OF_LLMS: Final = llm_keys(ReasonerParams)
_DECIDERS: Final = "reasoner.kind reasoner.distilled reasoner.llm_share reasoner.rule.*"

TABLE: Final[tuple[Row, ...]] = (
    WithoutEffect("network.kind", lambda k: k.overrules_kind, "network.edges brings the network"),
    WithoutEffect(
        "agents.n",
        lambda k: k.p.network.edges is not None and k.p.agents.n != k.n,
        "network.edges brings its {0.n:,} agents",
    ),
    *(
        WithoutEffect(keys, partial(_is_profiled, column), f"agents.profiles gives every agent its own ({column})")
        for column, keys in {
            "engagement_threshold": "agents.threshold_mean agents.threshold_sd",
            "post_rate": "agents.post_rate agents.post_sigma",
            "timeout_threshold": "statechart.default_timeout_ticks",
        }.items()
    ),
    WithoutEffect("agents.churn.back", lambda k: not k.p.has_leavers, "no agent leaves (agents.churn.leave)"),
    WithoutEffect("statechart.chart", lambda k: k.has_own_chart, "the chart set in Python replaces it"),
    WithoutEffect(
        "reasoner.asks_action",
        lambda k: k.has_own_chart or k.p.statechart.chart is not None,
        "only the default chart asks for the action",
    ),
    WithoutEffect(
        f"{_DECIDERS} {llm_keys(ReasonerParams, 'max_fallback_share')}",
        lambda k: k.has_own_reasoner,
        "the reasoner set in Python has its own values (Reasoner(..., attempts=2))",
    ),
    WithoutEffect(
        f"{_DECIDERS} {_ALL_OF_LLMS}",
        lambda k: not k.choices and not k.writes,
        "the chart leaves no choice open (statechart.oracle_enabled, statechart.chart)",
    ),
    WithoutEffect(
        _ALL_OF_LLMS,
        lambda k: k.kind == "rule" and k.p.reasoner.kind == "rule",
        f"the rule decides in this run, no LLM is asked: set reasoner.kind ({KINDS_THAT_ASK})",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, place=False),
        lambda k: k.kind == "rule" and not k.writes,
        "the rule decides in this run, because no LLM was found",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, "persona", place=False),
        lambda k: k.kind == "distilled" and not k.writes,
        "the distilled model decides in this run, no LLM is asked",
    ),
    _llm("distilled", lambda k: k.p.reasoner.llm_share == 1, "reasoner.llm_share=1 leaves it no choice"),
    *(_llm(*row) for row in WITHOUT_EFFECT),
    _llm("temperature max_answer_tokens reason", lambda k: k.scores, "the embedded LLM gives scores (answer=choice)"),
    _llm(
        "temperature max_answer_tokens",
        lambda k: k.answer == "decision",
        "a decision model writes no words (reasoner.answer=decision)",
    ),
    _llm(
        "seed think num_ctx",
        lambda k: k.answer == "decision" and not k.writes,
        "a decision model writes no words (reasoner.answer=decision)",
    ),
    _llm("decision_orders", lambda k: k.answer != "decision", "only a decision has orders (reasoner.answer=decision)"),
    _llm("archetypes", lambda k: k.persona == "individual", "each agent asks for itself (reasoner.persona=archetype)"),
    _llm("spend_on", lambda k: not Budget(k.p.reasoner).is_limited, "no limit is set (reasoner.max_calls, ...)"),
    _llm(
        "rule.*",
        lambda k: (
            not k.scores
            and (k.p.reasoner.distilled is None or k.p.reasoner.llm_share == 1)
            and k.p.reasoner.fallback != "rule"
        ),
        "the LLM decides, and reasoner.fallback={0.p.reasoner.fallback} stands in for it",
    ),
    WithoutEffect(
        "deliberation.conversation_tokens deliberation.max_seconds",
        lambda k: True,
        "only interviews and surveys of this run use it",
    ),
    WithoutEffect("deliberation.*", lambda k: not k.writes, "no LLM writes in this run: content={0.p.content}"),
)
"""Keys without effect, with condition and reason; the first row that applies counts."""


class KeysWithoutEffect:
    """Which keys have no effect under the parameters of a model, and why."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts, self._values = facts, leaf_values(facts.p)
        self._rows = [row for row in TABLE if row.when(facts)]

    def reason(self, key: str) -> str:
        """Return why a key has no effect, or an empty string if it has one."""
        row = next((row for row in self._rows if row.covers(key)), None)
        if row is not None:
            return row.why.format(self._facts)
        return next(filter(None, (mark.fault(self._values) for mark in conditions(type(self._facts.p))[key])), "")

    def notes(self, keys: Iterable[str]) -> list[str]:
        """Return a note for each reason why some of these keys have no effect."""
        by_reason: dict[str, list[str]] = {}
        for key in keys:
            if reason := self.reason(key):
                by_reason.setdefault(reason, []).append(key)
        return [f"{', '.join(unused_keys)}: no effect: {reason}" for reason, unused_keys in by_reason.items()]


def notes_without_effect(platform: Platform, facts: ModelFacts) -> tuple[str, ...]:
    """Return a note on each key that was set, and on each setting of an intervention, that changes nothing.

    A key counts as having an effect if it has one under a later intervention.
    """
    params = platform.params
    later_params = [_before(params, i).changed_by(act.set) for i, act in enumerate(params.interventions)]
    unused_later = [KeysWithoutEffect(facts.under(params)) for params in later_params]
    keys = explicit_values(params)
    if params.reasoner.kind == "auto":  # the summary says who decides
        keys.pop("reasoner.kind", None)
    always_unused = [key for key in keys if all(unused.reason(key) for unused in unused_later)]
    notes = [*KeysWithoutEffect(facts).notes(always_unused), *_attributes_left_out(facts)]
    for i, act in enumerate(params.interventions):
        where = f"interventions: {i} (from round {act.at} on)"
        notes += [f"{where}: {note}" for note in _intervention_notes(platform, i, unused_later)]
    return tuple(notes)


def _intervention_notes(platform: Platform, index: int, unused_by_act: Sequence[KeysWithoutEffect]) -> Iterator[str]:
    """Yield why an intervention, or a setting of it, changes nothing; `unused_by_act` has one entry for each."""
    params, act = platform.params, platform.params.interventions[index]
    n = len(platform.population)
    if act.agents is not None and not platform.feeds.named(index, AgentColumns(platform, np.arange(n)), n).any():
        yield f"no effect: no agent fits {act.agents} at the start"
    earlier = _before(params, index)
    values, new_values = leaf_values(earlier), leaf_values(earlier.changed_by(act.set))
    same = [key for key in act.set if values[key] == new_values[key]]
    yield from (f"{key}: no effect: it has this value already" for key in same if not _some_differ(params, index, key))
    later_acts = zip(params.interventions[index:], unused_by_act[index:], strict=True)
    concurrent = [unused for other, unused in later_acts if act.holds_in(other.at)]
    yield from unused_by_act[index].notes(
        key for key in act.set if key not in same and all(unused.reason(key) for unused in concurrent)
    )


def _before(params: SocialParams, index: int) -> SocialParams:
    """Return the parameters for all agents in the round of an intervention, without it and those after it."""
    earlier = params.model_copy(update={"interventions": params.interventions[:index]})
    return earlier.at(params.interventions[index].at)


def _some_differ(params: SocialParams, index: int, key: str) -> bool:
    """Return whether an earlier intervention sets a key for some agents in the round of this one."""
    at = params.interventions[index].at
    return any(key in act.set for act in params.interventions[:index] if act.agents and act.holds_in(at))


def _attributes_left_out(facts: ModelFacts) -> list[str]:
    """Return notes on attributes with `told: true` that no prompt mentions."""
    if facts.has_own_reasoner or facts.writes or (facts.asks and facts.persona != "archetype"):
        return []
    why = "the LLM answers for archetypes" if facts.asks else "no LLM is asked"
    return [
        f"attributes.{name}.told: no effect: {why}"
        for name, attribute in facts.p.attributes.items()
        if attribute.told and (attribute.of == "agent" or not facts.asks)
    ]
