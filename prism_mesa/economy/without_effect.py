"""Keys of nations that were set and change nothing: one table, by who decides and how many nations there are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from prism_mesa.economy.params import AdvisorParams, EconomyParams
from prism_mesa.llm import LLMClient
from prism_mesa.llm.params import WITHOUT_EFFECT, llm_keys
from prism_mesa.params import said_of
from prism_mesa.without_effect import WithoutEffect, without_effect


@dataclass(frozen=True)
class Known:
    """What decides whether a key has an effect.

    Attributes:
        p: The parameters.
        wanted: Who is to set policy in any nation, and `rules` the rules that do; `asks` whether an LLM does.
        kind: Which one that is; `given`: whether it was given in Python.
        has_own: Whether what was given has parameters of its own.
        n: Number of nations, and `own` of those that name who sets their policy.
    """

    p: EconomyParams
    wanted: frozenset[str]
    rules: frozenset[str]
    asks: bool
    kind: str
    given: bool
    has_own: bool
    n: int
    own: int

    def only(self, *rules: str) -> bool:
        """Return whether none but these rules set policy."""
        return not self.asks and self.rules <= set(rules)


def keys_without_effect(
    params: EconomyParams, rules: Iterable[str], llm: LLMClient | None, *, given: bool, has_own: bool
) -> tuple[str, ...]:
    """Return in words which keys were set and change nothing.

    Args:
        params: The parameters.
        rules: The rules that set policy in any nation.
        llm: Who is asked; None if nobody is.
        given: Whether an LLM was given for it in Python.
        has_own: Whether that is a client with parameters of its own.
    """
    own = params.economy
    known = Known(
        p=params,
        wanted=frozenset(nation.policy or own.policy for nation in own.nations),
        rules=frozenset(rules),
        asks=llm is not None,
        kind="" if llm is None else llm.kind,
        given=given,
        has_own=has_own,
        n=len(own.nations),
        own=sum(nation.policy is not None for nation in own.nations),
    )
    return without_effect(TABLE, known, list(said_of(params)))


type Row = WithoutEffect[Known]

_NOBODY: Final = "no LLM decides for any nation"
_FISCAL: Final = "economy.macro.spending_effect economy.macro.tax_effect economy.macro.trade_gain"
_TRADE: Final = (
    "openness income_elasticity price_elasticity exchange_effect balance_effect exchange_lag trade_gain import_prices"
)


def _llm(names: str, when: Callable[[Known], bool], why: str) -> Row:
    """Return a row about keys of an LLM that is asked, and not given in Python."""
    keys = " ".join(f"reasoner.{name}" for name in names.split())
    return WithoutEffect(keys, lambda k: k.asks and not k.given and when(k), why)


TABLE: Final[tuple[Row, ...]] = (
    WithoutEffect("economy.policy", lambda k: k.own == k.n, "every nation names its own (economy.nations, policy)"),
    # nations among themselves
    WithoutEffect(
        " ".join(["economy.noise", *(f"economy.macro.{name}" for name in _TRADE.split())]),
        lambda k: k.n == 1,
        "a single nation has no others (economy.nations)",
    ),
    # what rules never do; the limits of rates always count, as every run is compared with Taylor's rule
    WithoutEffect(
        f"{_FISCAL} economy.limits.budget_step economy.limits.borrowing_step economy.limits.highest_budget "
        "economy.limits.highest_debt economy.limits.highest_deficit economy.limits.highest_tariff "
        "economy.limits.tariff_step economy.limits.measures",
        lambda k: k.only("taylor", "nothing"),
        "no nation's policy does more than move its rate (economy.policy=llm or random does)",
    ),
    # an LLM
    WithoutEffect(
        "economy.noise economy.domain economy.prompt_style economy.memory economy.deliberate deliberation.*",
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
        lambda k: "llm" not in k.wanted,
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
"""Which keys change nothing, when, and why; the first entry that says so is told."""
