"""The state of an economy: its world, its nations' decisions, and their outcomes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from prism_mesa.economy.llm_agent import Action, ReasoningChain
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.observation import NationState, PastDecision, indicators, nation_states
from prism_mesa.economy.reading import PolicyDecision, Reading
from prism_mesa.economy.tables import Outcome
from prism_mesa.economy.validator import Judgement
from prism_mesa.economy.world import Floats, World
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
        return card_html(
            "decision of", self.action.agent_name, facts_html(facts.items()), remark=self.outcome.replace("_", " ")
        )


@dataclass(frozen=True)
class EconomyState:
    """Everything that a quarter changes, except the LLM's client and the collected rows.

    Attributes:
        world: The state of all economies.
        seen: The indicators of all nations without error, each of shape (n,); `nation_states` has them by nation. Both
            are computed from `world`.
        past: The decisions that each nation remembers, oldest first, by row.
        decided: The decisions of the last quarter, by row; empty before the first quarter.
        totals: Decisions so far by outcome; `read_by` counts them by the source of their measures.
    """

    world: World
    seen: Mapping[str, Floats]
    nation_states: tuple[NationState, ...]
    past: tuple[tuple[PastDecision, ...], ...]
    decided: tuple[NationDecision, ...]
    totals: Counter[str]
    read_by: Counter[str]

    @classmethod
    def first(cls, macro: Macro) -> Self:
        """Return the state before the first quarter."""
        world = macro.start()
        seen = indicators(macro, world)
        past: tuple[tuple[PastDecision, ...], ...] = ((),) * len(macro.names)
        return cls(world, seen, nation_states(macro, seen), past, (), Counter(), Counter())

    def with_world(self, world: World, macro: Macro) -> Self:
        """Return this state in another world."""
        seen = indicators(macro, world)
        return replace(self, world=world, seen=seen, nation_states=nation_states(macro, seen))

    def next(
        self, decided: Sequence[NationDecision], world: World, macro: Macro, quarter: str, memory: Sequence[int]
    ) -> Self:
        """Return the state at the end of a quarter; `memory` is the number of decisions that each nation remembers."""
        new = (
            PastDecision(quarter, decision.action.action_string, decision.reason, before)
            for decision, before in zip(decided, self.nation_states, strict=True)
        )
        past = zip(self.past, new, memory, strict=True)
        return replace(
            self.with_world(world, macro),
            past=tuple((*old, latest)[-n_kept:] if n_kept else () for old, latest, n_kept in past),
            decided=tuple(decided),
            totals=self.totals + Counter(decision.outcome for decision in decided),
            read_by=self.read_by + Counter(decision.reading.read_by for decision in decided),
        )
