"""The state of an economy: where nations stand, what they decided, and what became of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from prism_mesa.economy.llm_agent import Action, ReasoningChain
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.observation import NationState, PastDecision, indicators, nation_states
from prism_mesa.economy.reading import PolicyDecision, Reading
from prism_mesa.economy.tables import Outcome
from prism_mesa.economy.validator import Judgement
from prism_mesa.economy.world import Floats, World
from prism_mesa.markup import card_of, facts_of, shown_or_plain


@dataclass(frozen=True)
class Decided:
    """What one nation decided in one quarter, and what became of it."""

    row: int
    action: Action[PolicyDecision]
    reading: Reading
    chain: ReasoningChain | None
    judgement: Judgement

    @property
    def reason(self) -> str:
        """Why it has no effect; empty if it was carried out."""
        return self.reading.reason or self.judgement.reason

    @shown_or_plain
    def _repr_html_(self) -> str:
        decision, outcome = self.action.policy_decision, outcome_of(self)
        facts = {
            "wants to": decision.action,
            "because": decision.reasoning,
            "sure": f"{decision.confidence:.0%}",
            "policy": "none" if self.reading.policy is None else self.reading.policy,
            "read by": self.reading.read_by,
            "no effect": self.reason,
        }
        return card_of("decision of", self.action.agent_name, facts_of(facts), about=outcome.replace("_", " "))


def outcome_of(decided: Decided) -> Outcome:
    """Return what became of a decision."""
    if decided.reading.policy is None:
        return "not_understood"
    if not decided.action.validated:
        return "rejected"
    return "accepted" if decided.reading.policy.measures else "no_change"


@dataclass(frozen=True)
class EconomyState:
    """Everything of an economy that a quarter changes, but for its LLM's client and the rows that are collected.

    Attributes:
        world: Where all nations stand.
        seen: The indicators of all nations, exactly, each of shape (n,); `nation_states` holds them by nation. Both
            follow from `world`.
        past: What each nation remembers of its decisions, oldest first, in the order of their rows.
        decided: What the nations decided in the last quarter; empty before the first one.
        totals: Decisions so far, by outcome; `read_by` by where their measures come from.
    """

    world: World
    seen: Mapping[str, Floats]
    nation_states: tuple[NationState, ...]
    past: tuple[tuple[PastDecision, ...], ...]
    decided: tuple[Decided, ...]
    totals: Counter[str]
    read_by: Counter[str]

    @classmethod
    def first(cls, macro: Macro) -> Self:
        """Return the state before the first quarter."""
        world = macro.start()
        seen = indicators(macro, world)
        past: tuple[tuple[PastDecision, ...], ...] = ((),) * len(macro.names)
        return cls(world, seen, nation_states(macro, seen), past, (), Counter(), Counter())

    def at(self, world: World, macro: Macro) -> Self:
        """Return this state in another world."""
        seen = indicators(macro, world)
        return replace(self, world=world, seen=seen, nation_states=nation_states(macro, seen))

    def after(
        self, decided: Sequence[Decided], world: World, macro: Macro, quarter: str, memory: Sequence[int]
    ) -> Self:
        """Return the state at the end of a quarter.

        Args:
            decided: What all nations decided in it, in the order of their rows.
            world: The world at its end.
            macro: The laws, which know the nations.
            quarter: Its name.
            memory: How many decisions each nation remembers.
        """
        new = (
            PastDecision(quarter, decision.action.action_string, decision.reason, before)
            for decision, before in zip(decided, self.nation_states, strict=True)
        )
        past = zip(self.past, new, memory, strict=True)
        return replace(
            self.at(world, macro),
            past=tuple((*old, last)[-most:] if most else () for old, last, most in past),
            decided=tuple(decided),
            totals=self.totals + Counter(map(outcome_of, decided)),
            read_by=self.read_by + Counter(decision.reading.read_by for decision in decided),
        )


class HasState(Protocol):
    """A model as its agents and its DataCollector know it."""

    @property
    def state(self) -> EconomyState:
        """Where it stands."""
        ...
