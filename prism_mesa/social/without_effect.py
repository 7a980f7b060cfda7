"""Notes on keys and settings of interventions that you set without any effect on the tables of a run.

Fields declare rules that depend only on other keys (`OnlyWith`). The rules here need more than the parameters.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Final, Self

import numpy as np

from prism_mesa.llm.budget import Budget
from prism_mesa.llm.kinds import LLM_KINDS
from prism_mesa.llm.params import WITHOUT_EFFECT, llm_keys
from prism_mesa.params import explicit_values, leaf_values
from prism_mesa.reasoner import ReasonerParams, asks_llm
from prism_mesa.social.params import InterventionParams, SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.state.feeds import is_true
from prism_mesa.social.world.accounts import account_kinds
from prism_mesa.social.world.build import StartingWorld
from prism_mesa.without_effect import WithoutEffect, collect_marks


class ModelFacts:
    """Facts about a platform that decide whether a key has an effect.

    Attributes:
        kind, answer, persona: As in `reasoner`, of what decides; `answer` and `persona` are empty without an LLM.
        gives_scores: Whether the LLM gives scores instead of words.
        profile_columns: Columns that the file of profiles gives for every agent.
        overrides_kind: Whether a file of edges overrides `network.kind`.
    """

    def __init__(
        self, platform: Platform, world: StartingWorld, *, has_own_reasoner: bool, has_own_chart: bool
    ) -> None:
        reasoner, self.params = platform.reasoner, platform.params
        self.n = len(platform.population) - len(account_kinds(self.params))
        self.kind, self.has_own_reasoner, self.has_own_chart = reasoner.kind, has_own_reasoner, has_own_chart
        option_sets = [options for tables in platform.tables_by_kind for options in tables.option_sets]
        self.has_open_choices = any(len(options) > 1 for options in option_sets)
        self.gives_scores = asks_llm(reasoner) and "answer" not in reasoner.oracle.decoding
        self.answer = str(reasoner.params.answer) if asks_llm(reasoner) else ""
        self.persona = str(reasoner.params.persona) if asks_llm(reasoner) else ""
        self.writes_texts, self.profile_columns = platform.writer is not None, world.profile_columns
        kind = self.params.network.kind
        self.overrides_kind = explicit_values(self.params).get("network.kind", kind) != kind

    def with_params(self, params: SocialParams) -> Self:
        """Return the same facts with other parameters."""
        facts = copy(self)
        facts.params = params
        return facts

    @property
    def llm_decides(self) -> bool:
        """Whether an LLM from the configuration decides."""
        return self.has_open_choices and not self.has_own_reasoner and self.kind not in ("rule", "distilled")


type Rule = WithoutEffect[ModelFacts]


def _llm_rule(names: str, when: Callable[[ModelFacts], bool], why: str) -> Rule:
    """Return a row about `reasoner` keys that applies only if an LLM from the configuration decides."""
    keys = " ".join(f"reasoner.{name}" for name in names.split())
    return WithoutEffect(keys, lambda facts: facts.llm_decides and when(facts), why)


def _is_profiled(column: str, facts: ModelFacts) -> bool:
    is_set = all(getattr(account, column, None) is not None for account in facts.params.accounts)
    return column in facts.profile_columns and is_set


_LLM_KEYS: Final = llm_keys(ReasonerParams)
_DECIDER_KEYS: Final = "reasoner.kind reasoner.distilled reasoner.llm_share reasoner.rule.*"

RULES: Final[tuple[Rule, ...]] = (
    WithoutEffect("network.kind", lambda f: f.overrides_kind, "the file network.edges defines the network"),
    WithoutEffect(
        "agents.n",
        lambda f: f.params.network.edges is not None and f.params.agents.n != f.n,
        "the file network.edges has {0.n:,} agents",
    ),
    *(
        WithoutEffect(keys, partial(_is_profiled, column), f"agents.profiles has a value for every agent ({column})")
        for column, keys in {
            "engagement_threshold": "agents.threshold_mean agents.threshold_sd",
            "post_rate": "agents.post_rate agents.post_sigma",
            "timeout_threshold": "statechart.default_timeout_ticks",
        }.items()
    ),
    WithoutEffect("agents.churn.back", lambda f: not f.params.has_leavers, "no agent leaves (agents.churn.leave)"),
    WithoutEffect(
        "agents.returns.session agents.returns.half_life agents.returns.first",
        lambda f: f.params.agents.session is None and not f.params.agents.returns.online,
        "it counts only with agents.returns.online or agents.session",
    ),
    WithoutEffect("statechart.chart", lambda f: f.has_own_chart, "the chart set in Python replaces it"),
    WithoutEffect(
        "reasoner.asks_action",
        lambda f: f.has_own_chart or f.params.statechart.chart is not None,
        "only the default chart asks for the action",
    ),
    WithoutEffect(
        f"{_DECIDER_KEYS} {llm_keys(ReasonerParams, 'max_fallback_share')}",
        lambda f: f.has_own_reasoner,
        "the reasoner set in Python has its own values (Reasoner(..., attempts=2))",
    ),
    WithoutEffect(
        f"{_DECIDER_KEYS} {_LLM_KEYS}",
        lambda f: not f.has_open_choices and not f.writes_texts,
        "the chart leaves no choice open (statechart.oracle_enabled, statechart.chart)",
    ),
    WithoutEffect(
        _LLM_KEYS,
        lambda f: f.kind == "rule" and f.params.reasoner.kind == "rule",
        f"the rule decides in this run, so no LLM is asked: set reasoner.kind ({LLM_KINDS})",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, with_address=False),
        lambda f: f.kind == "rule" and not f.writes_texts,
        "the rule decides in this run, because no LLM was found",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, "persona", with_address=False),
        lambda f: f.kind == "distilled" and not f.writes_texts,
        "the distilled model decides in this run, so no LLM is asked",
    ),
    _llm_rule("distilled", lambda f: f.params.reasoner.llm_share == 1, "the LLM decides all (reasoner.llm_share=1)"),
    *(_llm_rule(*row) for row in WITHOUT_EFFECT),
    _llm_rule("temperature max_answer_tokens reason", lambda f: f.gives_scores, "the LLM gives scores (answer=choice)"),
    _llm_rule(
        "temperature max_answer_tokens",
        lambda f: f.answer == "decision",
        "a decision model writes no words (reasoner.answer=decision)",
    ),
    _llm_rule(
        "seed think num_ctx",
        lambda f: f.answer == "decision" and not f.writes_texts,
        "a decision model writes no words (reasoner.answer=decision)",
    ),
    _llm_rule("decision_orders", lambda f: f.answer != "decision", "only decisions use it (reasoner.answer=decision)"),
    _llm_rule("archetypes", lambda f: f.persona == "individual", "only archetypes use it (reasoner.persona=archetype)"),
    _llm_rule("spend_on", lambda f: not Budget(f.params.reasoner).is_limited, "no limit (reasoner.max_calls, ...)"),
    _llm_rule(
        "rule.*",
        lambda f: (
            not f.gives_scores
            and (f.params.reasoner.distilled is None or f.params.reasoner.llm_share == 1)
            and f.params.reasoner.fallback != "rule"
        ),
        "the LLM decides, and the fallback is not the rule (reasoner.fallback={0.params.reasoner.fallback})",
    ),
    WithoutEffect(
        "deliberation.conversation_tokens deliberation.max_seconds",
        lambda f: True,
        "only interviews and surveys of this run use this key",
    ),
    WithoutEffect("deliberation.*", lambda f: not f.writes_texts, "no LLM writes (content={0.params.content})"),
)
"""Keys without effect, each with a condition and a reason; the first row whose condition is true applies."""


class KeysWithoutEffect:
    """Finds the keys that have no effect in a model, and the reasons."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts, self._values = facts, leaf_values(facts.params)
        self._rows = [row for row in RULES if row.condition(facts)]

    def reason(self, key: str) -> str:
        """Return why a key has no effect, or an empty string if it has one."""
        row = next((row for row in self._rows if row.covers(key)), None)
        if row is not None:
            return row.reason.format(self._facts)
        marks = collect_marks(type(self._facts.params))[key]
        return next(filter(None, (mark.fault(self._values) for mark in marks)), "")

    def notes(self, keys: Iterable[str]) -> list[str]:
        """Return a note for each reason why some of these keys have no effect."""
        by_reason: dict[str, list[str]] = {}
        for key in keys:
            if reason := self.reason(key):
                by_reason.setdefault(reason, []).append(key)
        return [f"{', '.join(unused_keys)}: no effect: {reason}" for reason, unused_keys in by_reason.items()]


def notes_without_effect(platform: Platform, facts: ModelFacts) -> tuple[str, ...]:
    """Return a note on each set key, and each setting of an intervention, that has no effect.

    A key whose effect begins with a later intervention is not listed.
    """
    order = sorted(range(len(platform.params.interventions)), key=lambda i: platform.params.interventions[i].at)
    params = platform.params.model_copy(update={"interventions": [platform.params.interventions[i] for i in order]})
    later_params = [_params_before(params, i).with_settings(act.set) for i, act in enumerate(params.interventions)]
    unused_by_act = [KeysWithoutEffect(facts.with_params(params)) for params in later_params]
    keys = explicit_values(params)
    if params.reasoner.kind == "auto":  # the summary says who decides
        keys.pop("reasoner.kind", None)
    unused_keys = [key for key in keys if all(unused.reason(key) for unused in unused_by_act)]
    notes = [*KeysWithoutEffect(facts).notes(unused_keys), *_find_unmentioned_attributes(facts)]
    everybody = np.arange(len(platform.population))
    agents = AgentColumns(platform, everybody)
    for i, act in enumerate(params.interventions):
        where = f"interventions: {order[i]} (from round {act.at} on)"
        if act.agents is not None and not is_true(act.agents, len(everybody), agents).any():
            notes.append(f"{where}: no effect: no agent matches {act.agents} at the start")
        notes += [f"{where}: {note}" for note in _intervention_notes(params, i, unused_by_act)]
        notes += [f"{where}: {note}" for note in _prompt_notes(facts, act)]
    return tuple(notes)


def _intervention_notes(params: SocialParams, index: int, unused_by_act: Sequence[KeysWithoutEffect]) -> Iterator[str]:
    """Yield reasons why a setting of an intervention changes nothing; interventions are in order of their rounds.

    `unused_by_act` has the keys without effect under each intervention.
    """
    act = params.interventions[index]
    earlier = _params_before(params, index)
    values, new_values = leaf_values(earlier), leaf_values(earlier.with_settings(act.set))
    unchanged_keys = [key for key in act.set if values[key] == new_values[key]]
    for_some = [other for other in params.interventions[:index] if other.is_targeted and other.applies_in(act.at)]
    set_for_some = {key for other in for_some for key in other.set}
    yield from (f"{key}: no effect: it already has this value" for key in unchanged_keys if key not in set_for_some)
    later_acts = zip(params.interventions[index:], unused_by_act[index:], strict=True)
    concurrent = [unused for other, unused in later_acts if act.applies_in(other.at)]
    yield from unused_by_act[index].notes(
        key for key in act.set if key not in unchanged_keys and all(unused.reason(key) for unused in concurrent)
    )


def _prompt_notes(facts: ModelFacts, act: InterventionParams) -> Iterator[str]:
    """Yield what an intervention would change only in prompts."""
    if act.label is not None and not act.label.effect and not act.label.text and act.label.effect is not None:
        yield "label: no effect: give effect or text"
    if facts.writes_texts and any(act.log_factors):
        yield f"{act.kind}: no effect on likes, replies and reshares by an LLM's tools"
    if facts.llm_decides or facts.has_own_reasoner:
        return
    if act.label is not None and act.label.effect is None:
        yield "label.effect: null: no effect: no LLM decides"
    if act.label is not None and act.label.text and not facts.writes_texts:
        yield "label.text: no effect: no LLM reads it"
    acts = facts.params.interventions
    sees_likes = facts.params.utility.counts or any("utility.counts" in other.set for other in acts)
    if act.hide and not facts.writes_texts and not ("likes" in act.hide and sees_likes):
        yield "hide: no effect: only an LLM reads these numbers, and agents read likes with utility.counts"


def _params_before(params: SocialParams, index: int) -> SocialParams:
    """Return the parameters for all agents when an intervention begins, without this and later interventions."""
    earlier = params.model_copy(update={"interventions": params.interventions[:index]})
    return earlier.for_round(params.interventions[index].at)


def _find_unmentioned_attributes(facts: ModelFacts) -> list[str]:
    if facts.has_own_reasoner or facts.writes_texts or (facts.llm_decides and facts.persona != "archetype"):
        return []
    why = "the LLM answers for archetypes" if facts.llm_decides else "no LLM is asked"
    return [
        f"attributes.{name}.told: no effect: {why}"
        for name, attribute in facts.params.attributes.items()
        if attribute.told and (attribute.of == "agent" or not facts.llm_decides)
    ]
