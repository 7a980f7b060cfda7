"""What a nation decided in a quarter, and what became of it."""

from dataclasses import dataclass
from typing import Final, Literal

from prism_mesa.economy.interpret import Reading
from prism_mesa.economy.llm_agent import Action, Decision, ReasoningChain
from prism_mesa.economy.validator import Judgement


class PolicyDecision(Decision):
    """What an LLM proposes for a nation: the policy in words, the reasoning, and how sure it is, 0 to 1."""


type Outcome = Literal["accepted", "no_change", "rejected", "not_understood"]


OUTCOMES: Final[tuple[Outcome, ...]] = ("accepted", "no_change", "rejected", "not_understood")
"""What can become of a decision: carried out; nothing to carry out; rejected by the validator; not understood."""


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


def outcome_of(decided: Decided) -> Outcome:
    """Return what became of a decision."""
    if decided.reading.policy is None:
        return "not_understood"
    if not decided.action.validated:
        return "rejected"
    return "accepted" if decided.reading.policy.measures else "no_change"
