"""The state of an economy model: the world, and the decisions of nations with their outcomes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from prism_mesa.arrays import Floats
from prism_mesa.economy.llm_agent import Action, ReasoningChain
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.observation import NationState, PastDecision, compute_indicators, nation_states
from prism_mesa.economy.reading import PolicyDecision, Reading
from prism_mesa.economy.tables import Outcome
from prism_mesa.economy.validator import Judgement
from prism_mesa.economy.world import World
from prism_mesa.markup import card_html, facts_html, html_or_repr


@dataclass(frozen=True)
class NationDecision:
    """A nation's decision in a quarter, and its outcome."""

    row: int
    action: Action[PolicyDecision]
    reading: Reading
    chain: ReasoningChain | None
    judgement: Judgement

    @property
    def reason(self) -> str:
        """Why the decision has no effect; empty if it was carried out."""
        return self.reading.reason or self.judgement.reason

    @property
    def outcome(self) -> Outcome:
        """The decision's outcome."""
        if self.reading.policy is None:
            return "not_understood"
        if not self.action.validated:
            return "rejected"
        return "accepted" if self.reading.policy.measures else "no_change"

    @html_or_repr
    def _repr_html_(self) -> str:
        decision = self.action.policy_decision
        facts = {
            "wants to": decision.action,
            "because": decision.reasoning,
            "sure": f"{decision.confidence:.0%}",
            "policy": "none" if self.reading.policy is None else self.reading.policy,
            "read by": self.reading.read_by,
            "no effect": self.reason,
        }
        remark = self.outcome.replace("_", " ")
        return card_html("decision of", self.action.agent_name, facts_html(facts.items()), remark=remark)


@dataclass(frozen=True)
class EconomyState:
    """All that a quarter changes, except the LLM's client and the collected rows.

    Attributes:
        world: The state of all economies.
        indicators: The indicators of all nations without error, each of shape (n,), computed from `world`.
        nation_states: The same indicators by nation.
        past: The decisions that each nation remembers, by row; oldest first.
        decisions: The decisions of the last quarter, by row; empty before the first quarter.
        read_by: The number of decisions so far by the source of their measures.
    """

    world: World
    indicators: Mapping[str, Floats]
    nation_states: tuple[NationState, ...]
    past: tuple[tuple[PastDecision, ...], ...]
    decisions: tuple[NationDecision, ...]
    totals: Counter[str]
    read_by: Counter[str]

    @classmethod
    def first(cls, macro: Macro) -> Self:
        """Return the state before the first quarter."""
        world = macro.start()
        indicators = compute_indicators(macro, world)
        past: tuple[tuple[PastDecision, ...], ...] = ((),) * len(macro.names)
        return cls(world, indicators, nation_states(macro, indicators), past, (), Counter(), Counter())

    def with_world(self, world: World, macro: Macro) -> Self:
        """Return this state with another world."""
        indicators = compute_indicators(macro, world)
        return replace(self, world=world, indicators=indicators, nation_states=nation_states(macro, indicators))

    def next(
        self, decisions: Sequence[NationDecision], world: World, macro: Macro, quarter: str, memory: Sequence[int]
    ) -> Self:
        """Return the state at the end of a quarter; `memory` is the number of decisions that each nation remembers."""
        latest_decisions = (
            PastDecision(quarter, decision.action.action_string, decision.reason, before)
            for decision, before in zip(decisions, self.nation_states, strict=True)
        )
        memories = zip(self.past, latest_decisions, memory, strict=True)
        return replace(
            self.with_world(world, macro),
            past=tuple((*earlier, latest)[-n_kept:] if n_kept else () for earlier, latest, n_kept in memories),
            decisions=tuple(decisions),
            totals=self.totals + Counter(decision.outcome for decision in decisions),
            read_by=self.read_by + Counter(decision.reading.read_by for decision in decisions),
        )
