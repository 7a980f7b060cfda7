"""Keys of nations that were set and change nothing: one table, by who decides and how many nations there are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prism_mesa.economy.params import AdvisorParams, EconomyParams
from prism_mesa.llm import LLMClient
from prism_mesa.llm.params import WITHOUT_EFFECT, llm_keys
from prism_mesa.params import explicit_values
from prism_mesa.without_effect import WithoutEffect, without_effect


@dataclass(frozen=True)
class Known:
    """What decides whether a key has an effect.

    Attributes:
        p: The parameters.
        rules: The rules that set policy in any nation.
        llm: The LLM; None if there is none.
        given: Whether it was given in Python, and `has_own` whether that was a client with parameters of its own.
    """

    p: EconomyParams
    rules: frozenset[str]
    llm: LLMClient | None
    given: bool
    has_own: bool

    @property
    def asks(self) -> bool:
        """Whether an LLM decides for any nation."""
        return self.llm is not None

    @property
    def kind(self) -> str:
        """The LLM's kind."""
        return "" if self.llm is None else self.llm.kind


def keys_without_effect(known: Known) -> tuple[str, ...]:
    """Return a note for each reason why keys that were set change nothing."""
    return without_effect(TABLE, known, list(explicit_values(known.p)))


type Row = WithoutEffect[Known]

_NOBODY: Final = "no LLM decides for any nation"
_FISCAL: Final = "economy.macro.spending_effect economy.macro.tax_effect economy.macro.trade_gain"
_TRADE: Final = (
    "openness income_elasticity price_elasticity exchange_effect balance_effect exchange_lag trade_gain import_prices"
)


def _llm(names: str, when: Callable[[Known], bool], why: str) -> Row:
    """Return a row about keys of an LLM that was not given in Python."""
    keys = " ".join(f"reasoner.{name}" for name in names.split())
    return WithoutEffect(keys, lambda k: k.asks and not k.given and when(k), why)


TABLE: Final[tuple[Row, ...]] = (
    WithoutEffect(
        "economy.policy",
        lambda k: all(nation.policy for nation in k.p.economy.nations),
        "every nation names its own (economy.nations, policy)",
    ),
    # nations among themselves
    WithoutEffect(
        " ".join(["economy.noise", *(f"economy.macro.{name}" for name in _TRADE.split())]),
        lambda k: len(k.p.economy.nations) == 1,
        "a single nation has no others (economy.nations)",
    ),
    # what rules never do; the limits of rates always count, as every run is compared with Taylor's rule
    WithoutEffect(
        f"{_FISCAL} economy.limits.budget_step economy.limits.borrowing_step economy.limits.highest_budget "
        "economy.limits.highest_debt economy.limits.highest_deficit economy.limits.highest_tariff "
        "economy.limits.tariff_step economy.limits.measures",
        lambda k: not k.asks and k.rules <= {"taylor", "nothing"},
        "no nation's policy does more than move its rate (economy.policy=llm or random does)",
    ),
    # an LLM
    WithoutEffect(
        "economy.noise economy.domain economy.prompt_style economy.typed_measures economy.memory economy.deliberate "
        "deliberation.*",
        lambda k: not k.asks,
        f"{_NOBODY} (economy.policy=llm)",
    ),
    WithoutEffect(
        "deliberation.*",
        lambda k: not k.p.economy.deliberate,
        "nobody thinks first (economy.deliberate=true)",
    ),
    WithoutEffect(
        f"reasoner.kind {llm_keys(AdvisorParams)}",
        lambda k: "llm" not in k.p.economy.policies,
        f"{_NOBODY} (economy.policy=llm)",
    ),
    WithoutEffect(
        llm_keys(AdvisorParams),
        lambda k: not k.asks and k.p.reasoner.kind == "rule",
        "with reasoner.kind=rule Taylor's rule decides",
    ),
    WithoutEffect(
        llm_keys(AdvisorParams, place=False), lambda k: not k.asks, "no LLM was found, and Taylor's rule decides"
    ),
    WithoutEffect(
        f"reasoner.kind {llm_keys(AdvisorParams)}",
        lambda k: k.has_own,
        "the client that was given in Python has its own (LLMClient(..., LLMParams(...)))",
    ),
    WithoutEffect(
        "reasoner.kind reasoner.model reasoner.host reasoner.temperature reasoner.seed reasoner.max_answer_tokens",
        lambda k: k.given,
        "the LLM that was given in Python is asked as it is",
    ),
    *(_llm(*row) for row in WITHOUT_EFFECT),
)
"""Keys that change nothing, when, and why; the first entry that applies counts."""
