"""The parameters of the economy with units, ranges and sources, and the conditions under which keys have no effect."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from prism_mesa.deliberation.params import LoopParams, ResultChars
from prism_mesa.economy.nations import NATIONS, NationParams, PolicyKind, complete_nation
from prism_mesa.llm import LLMParams
from prism_mesa.llm.kinds import KINDS
from prism_mesa.llm.params import WITHOUT_EFFECT
from prism_mesa.params import Params, Seed, Share, explicit_values
from prism_mesa.without_effect import WithoutEffect, without_effect

type Domain = Literal["economic", "monetary", "fiscal", "trade"]

MAX_NATIONS = 200


class DeciderFacts(NamedTuple):
    """The parameters, the kind of the LLM that decides (empty for none), and how Python code passed the LLM."""

    params: "EconomyParams"
    kind: str
    is_python_llm: bool
    has_params: bool


def quarter_name(first: str, quarter: int) -> str:
    """Return the name of a quarter, given its number and the name of quarter 0.

    >>> quarter_name("2009Q4", 1)
    '2010Q1'
    """
    year, _, number = first.partition("Q")
    total = int(year) * 4 + int(number) - 1 + quarter
    return f"{total // 4}Q{total % 4 + 1}"


if TYPE_CHECKING:
    type AdvisorKind = str
else:
    AdvisorKind = Literal["auto", *KINDS, "rule"]


class AdvisorParams(LLMParams):
    """The LLM that advises nations."""

    kind: AdvisorKind = Field(
        "auto",
        description="The LLM for economy.policy=llm; auto: Ollama if it runs and has the model, else the embedded "
        "LLM if installed, else Taylor's rule; rule: Taylor's rule",
    )
    timeout_s: float = Field(60.0, gt=0, le=86_400, description="Seconds after which an attempt counts as unanswered")
    temperature: float = Field(0.7, ge=0, le=100, description="Sampling temperature; at 0 every attempt is the same")
    max_answer_tokens: int = Field(512, ge=1, le=1_000_000, description="Maximum tokens of an answer")
    attempts: int | None = Field(None, ge=1, le=100, description="Attempts at a decision; null: 2 (embedded LLM: 8)")


class MacroParams(Params):
    """The structure of each nation's economy, per quarter; rates and inflation are percent a year.

    The values are calibrated so that a nation under a Taylor rule has these moments of the United States from 1959 to
    2009 (statsmodels' `macrodata`): Okun coefficient, sd and autocorrelation of output, Phillips slope.
    """

    demand_lag_1: float = Field(1.3, ge=-2, le=2, description="Weight of last quarter's demand (calibrated; OLS: 1.10)")
    demand_lag_2: float = Field(
        -0.42, ge=-1, le=1, description="Weight of demand two quarters ago (calibrated; OLS: -.28)"
    )
    rate_effect: float = Field(
        0.1, ge=0, le=2, description="Percent of demand lost per point of real lending rate (Rudebusch et al. 1999: .1)"
    )
    pass_through: float = Field(
        0.6,
        gt=0,
        le=1,
        description="Share of the gap to the policy rate that lending rates close a quarter (Cottarelli et al. 1994)",
    )
    anchoring: float = Field(
        0.3, gt=0, le=1, description="Weight of the target in expected inflation (calibrated; OLS on macrodata: .21)"
    )
    phillips: float = Field(
        0.2,
        ge=0,
        le=5,
        description="Points of inflation per percent of output gap (calibrated; Rudebusch et al. 1999: .14)",
    )
    okun: float = Field(0.45, ge=0, le=2, description="Points of unemployment per percent of output gap (data: .42)")
    unemployment_lag: float = Field(
        0.25, ge=0, lt=1, description="Share of the unemployment gap that persists (assumed)"
    )
    spending_effect: float = Field(
        0.8, ge=0, le=3, description="Percent of output per percent of GDP of public spending (Ramey 2011: .8 to 1.5)"
    )
    tax_effect: float = Field(
        0.5, ge=0, le=5, description="Percent of output per percent of GDP of tax cuts or transfers (assumed)"
    )
    adaptation: float = Field(
        0.08, gt=0, le=1, description="Share of a permanent budget or trade change that demand absorbs (assumed)"
    )
    openness: float = Field(
        0.3, ge=0, lt=1, description="Imports of a small nation as a share of GDP (gravity: Anderson, van Wincoop 2003)"
    )
    income_elasticity: float = Field(
        1.5, ge=0, le=5, description="Percent of imports per percent of output gap (Houthakker and Magee 1969: 1 to 2)"
    )
    price_elasticity: float = Field(
        1.0, ge=0, le=10, description="Percent of imports per percent of their price (Hooper et al. 2000: near 1)"
    )
    exchange_effect: float = Field(
        1.5, ge=0, le=10, description="Percent of appreciation per point of real rate above other nations' (assumed)"
    )
    balance_effect: float = Field(
        1.0, ge=0, le=20, description="Percent of appreciation per percent of GDP of trade surplus (assumed)"
    )
    exchange_lag: float = Field(0.85, ge=0, lt=1, description="Share of the exchange rate gap that lasts (assumed)")
    trade_gain: float = Field(
        0.25,
        ge=0,
        le=2,
        description="Percent of output lost per percent of GDP of trade lost (Arkolakis et al. 2012: .2)",
    )
    import_prices: Share = Field(
        0.3, description="Pass-through of tariffs and exchange rates to import prices (Campa, Goldberg 2005: .25)"
    )
    stabilizer: float = Field(
        0.35, ge=0, le=1, description="Points of budget balance per percent of output gap (Girouard, Andre 2005: .34)"
    )
    debt_response: float = Field(
        0.05, ge=0, le=1, description="Rise of taxes, percent of GDP, per percent of excess debt (Bohn 1998: .03-.05)"
    )
    demand_sd: float = Field(0.65, ge=0, le=10, description="sd of demand shocks, percent of output (calibrated)")
    supply_sd: float = Field(1.6, ge=0, le=20, description="sd of inflation shocks, points a year (calibrated)")
    supply_lag: float = Field(0.5, ge=0, lt=1, description="Share of a rise in costs that lasts (calibrated)")
    labor_sd: float = Field(0.2, ge=0, le=5, description="sd of unemployment shocks, points (calibrated)")
    common: float = Field(0.3, ge=0, le=1, description="Share of the variance of shocks that nations share")

    @model_validator(mode="after")
    def _check_demand_lags(self) -> Self:
        first, second = self.demand_lag_1, self.demand_lag_2
        if not (first + second < 1 and second - first < 1 and second > -1):
            raise ValueError(f"demand_lag_1={first:g} and demand_lag_2={second:g}: demand would grow without end")
        return self


class LimitsParams(Params):
    """The limits of policy in one quarter, which the validator enforces."""

    lower_bound: float = Field(0.0, ge=-5, le=5, description="Lowest policy rate, percent a year")
    highest_rate: float = Field(25.0, gt=0, le=1000, description="Highest policy rate, percent a year")
    rate_step: float = Field(3.0, gt=0, le=1000, description="Largest change of the policy rate, points")
    budget_step: float = Field(5.0, gt=0, le=100, description="Largest change of spending or taxes, percent of GDP")
    borrowing_step: float = Field(10.0, gt=0, le=100, description="Largest new borrowing or repayment, percent of GDP")
    highest_budget: float = Field(65.0, gt=0, le=100, description="Highest spending or taxes, percent of GDP")
    highest_debt: float = Field(200.0, gt=0, le=1000, description="Highest debt that lenders accept, percent of GDP")
    highest_deficit: float = Field(15.0, gt=0, le=100, description="Largest planned deficit, percent of GDP a year")
    highest_tariff: float = Field(200.0, gt=0, le=10_000, description="Highest tariff, percent of import value")
    tariff_step: float = Field(25.0, gt=0, le=10_000, description="Largest change of a tariff, points")
    measures: int = Field(4, ge=1, le=20, description="Maximum measures; one against several nations counts once")

    @model_validator(mode="after")
    def _check_rate_bounds(self) -> Self:
        if self.lower_bound >= self.highest_rate:
            raise ValueError(f"lower_bound={self.lower_bound:g} is not below highest_rate={self.highest_rate:g}")
        return self


class EconomySettings(Params):
    """The nations, their deciders, and what they see."""

    policy: PolicyKind = Field(
        "taylor",
        description="Who sets policy: an llm (without one, Taylor's rule), taylor (rule of 1993), nothing, or random",
    )
    nations: Annotated[
        tuple[Annotated[NationParams, BeforeValidator(complete_nation)], ...],
        BeforeValidator(lambda nations: [nations] if isinstance(nations, str | dict) else nations),
    ] = Field(
        tuple(NATIONS.values()),
        description=f"Known nations ({', '.join(NATIONS)}), or your own: {', '.join(NationParams.model_fields)}",
    )
    first_quarter: str = Field(
        "2009Q4", pattern=r"^[12][0-9]{3}Q[1-4]$", description="First quarter; initial values are of the quarter before"
    )
    noise: float = Field(0.5, ge=0, le=20, description="sd of a nation's errors about others' indicators, points")
    domain: Domain = Field("economic", description="Field that nations decide about; economic: all of them")
    prompt_style: Literal["chain_of_thought", "examples"] | None = Field(
        None, description="examples: adds worked examples to chain_of_thought; null: only with the embedded LLM"
    )
    typed_measures: bool = Field(True, description="Whether the LLM also states its policy in numbers, besides words")
    memory: int = Field(4, ge=0, le=40, description="Number of a nation's past decisions, with outcomes, in its prompt")
    deliberate: bool = Field(False, description="Whether the LLM thinks, with tools, before it decides")
    macro: MacroParams = Field(default_factory=MacroParams)
    limits: LimitsParams = Field(default_factory=LimitsParams)

    @property
    def policies(self) -> list[PolicyKind]:
        """Who sets policy in each nation."""
        return [nation.policy or self.policy for nation in self.nations]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [nation.name.lower() for nation in self.nations]
        if not 1 <= len(names) <= MAX_NATIONS:
            raise ValueError(f"nations: {len(names)} nations; allowed are 1 to {MAX_NATIONS}")
        duplicates = [name for name in names if names.count(name) > 1]
        if duplicates:
            raise ValueError(f"nations: {duplicates[0]!r} appears twice")
        return self


class ThinkingParams(LoopParams):
    """Limits on thinking before nations decide, with economy.deliberate; each thought is an LLM call."""

    result_chars: ResultChars = 600


class EconomyParams(Params):
    """All parameters of an `EconomyModel`."""

    seed: Seed = Field(42, ge=0, lt=2**63, description="seed of all keyed draws; null: draw one and keep it")
    rounds: int = Field(40, ge=1, le=28_000, description="number of quarters")
    economy: EconomySettings = Field(default_factory=EconomySettings)
    deliberation: ThinkingParams = Field(default_factory=ThinkingParams)
    reasoner: AdvisorParams = Field(default_factory=AdvisorParams)


def _for_llm(when: Callable[[Any], bool]) -> Callable[[DeciderFacts], bool]:
    return lambda facts: bool(facts.kind) and not facts.is_python_llm and when(facts)


def _reasoner_keys(names: Iterable[str]) -> str:
    return " ".join(f"reasoner.{name}" for name in names)


_NO_LLM: Final = "no LLM decides for any nation (economy.policy=llm)"
_ADVICE_KEYS: Final = "deliberation.* economy.deliberate economy.domain economy.memory economy.noise \
economy.prompt_style economy.typed_measures"
_LLM_KEYS: Final = ("kind", "model", "host")
_WITHOUT_EFFECT: Final[tuple[WithoutEffect[DeciderFacts], ...]] = (
    WithoutEffect(
        "economy.policy",
        lambda facts: all(nation.policy for nation in facts.params.economy.nations),
        "every nation in economy.nations has its own policy",
    ),
    WithoutEffect(
        "economy.macro.spending_effect economy.macro.tax_effect",
        lambda facts: not facts.kind and set(facts.params.economy.policies) <= {"taylor", "nothing", "llm"},
        "every nation moves only its policy rate (economy.policy=llm or random also moves budgets)",
    ),
    WithoutEffect(f"{_ADVICE_KEYS} reasoner.*", lambda facts: "llm" not in facts.params.economy.policies, _NO_LLM),
    WithoutEffect(_ADVICE_KEYS, lambda facts: not facts.kind, _NO_LLM),
    WithoutEffect(
        "deliberation.*",
        lambda facts: not facts.params.economy.deliberate,
        "nations decide without thinking first (economy.deliberate=true)",
    ),
    WithoutEffect(
        _reasoner_keys(name for name in AdvisorParams.model_fields if name not in _LLM_KEYS),
        lambda facts: not facts.kind,
        "no LLM was found, so Taylor's rule decides",
    ),
    WithoutEffect(
        "reasoner.*",
        lambda facts: facts.has_params,
        "the client passed in Python has its own (LLMClient(..., LLMParams(...)))",
    ),
    WithoutEffect(
        _reasoner_keys((*_LLM_KEYS, "temperature", "seed", "max_answer_tokens")),
        lambda facts: facts.is_python_llm,
        "the function passed in Python replaces the LLM",
    ),
    *(WithoutEffect(_reasoner_keys(keys.split()), _for_llm(when), reason) for keys, when, reason in WITHOUT_EFFECT),
)


def keys_without_effect(facts: DeciderFacts) -> tuple[str, ...]:
    """Return a note for each reason why configured keys have no effect."""
    return without_effect(_WITHOUT_EFFECT, facts, list(explicit_values(facts.params)))
