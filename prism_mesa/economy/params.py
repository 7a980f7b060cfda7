"""The parameters of the economy, with their units, ranges and sources."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from prism_mesa.deliberation.params import LoopParams, ResultChars
from prism_mesa.economy.nations import NATIONS, NationParams, PolicyKind, named_nation
from prism_mesa.llm import LLMParams
from prism_mesa.llm.kinds import KINDS
from prism_mesa.params import Params, Seed

type Domain = Literal["economic", "monetary", "fiscal", "trade"]
type PromptStyle = Literal["chain_of_thought", "examples"]

Nation = Annotated[NationParams, BeforeValidator(named_nation)]
MOST_NATIONS = 200


def quarter_name(first: str, quarter: int) -> str:
    """Return the name of the quarter so many after the first.

    >>> quarter_name("2009Q4", 1)
    '2010Q1'
    """
    year, _, number = first.partition("Q")
    total = int(year) * 4 + int(number) - 1 + quarter
    return f"{total // 4}Q{total % 4 + 1}"


def several(value: Any) -> Any:
    """Return a single nation as a list of it."""
    return [value] if isinstance(value, str | dict) else value


if TYPE_CHECKING:
    type AdvisorKind = str
else:
    AdvisorKind = Literal["auto", *KINDS, "rule"]


class AdvisorParams(LLMParams):
    """The LLM that advises nations."""

    kind: AdvisorKind = Field(
        "auto",
        description="Who is asked with economy.policy=llm; 'auto' is Ollama where it answers and has the model, else "
        "the embedded LLM where it is installed; where there is none, and with 'rule', the Taylor rule decides",
    )
    timeout_s: float = Field(60.0, gt=0, le=86_400, description="Seconds after which an attempt counts as not answered")
    temperature: float = Field(
        0.7, ge=0, le=100, description="Sampling temperature of the LLM; at 0 a second attempt answers the same"
    )
    max_answer_tokens: int = Field(512, ge=1, le=1_000_000, description="Most tokens of an answer")
    attempts: int | None = Field(
        None, ge=1, le=100, description="Tries at a decision; null: 2, with the embedded LLM 8"
    )


class MacroParams(Params):
    """The structure of every nation's economy, by quarters; rates and inflation are percent a year.

    Calibrated so that a nation under a Taylor rule has the moments of the United States, 1959 to 2009 (statsmodels'
    `macrodata`; see `macro`): Okun coefficient, sd and autocorrelation of output, Phillips slope.
    """

    demand_lag_1: float = Field(
        1.3, ge=-2, le=2, description="Weight of last quarter's demand (calibrated; OLS on macrodata, HP cycle: 1.10)"
    )
    demand_lag_2: float = Field(
        -0.42, ge=-1, le=1, description="Weight of demand two quarters ago (calibrated; OLS: -.28)"
    )
    rate_effect: float = Field(
        0.1,
        ge=0,
        le=2,
        description="Fall of next quarter's demand, percent of output, per point of the real lending rate above "
        "neutral (Rudebusch and Svensson 1999: .10)",
    )
    pass_through: float = Field(
        0.6,
        gt=0,
        le=1,
        description="Share of the way to the policy rate that lending rates go in a quarter (an assumption within the "
        "range of Cottarelli and Kourelis 1994)",
    )
    anchoring: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Weight of the target in expected inflation, the rest is the last four quarters' mean "
        "(calibrated; OLS on macrodata: .21)",
    )
    phillips: float = Field(
        0.2,
        ge=0,
        le=5,
        description="Inflation, points a year, per percent of output gap (calibrated; Rudebusch and Svensson 1999: "
        ".14, OLS on macrodata: .34)",
    )
    okun: float = Field(
        0.45, ge=0, le=2, description="Points of unemployment per percent of output gap (HP cycles of macrodata: .42)"
    )
    unemployment_lag: float = Field(
        0.25, ge=0, lt=1, description="Share of last quarter's unemployment gap that stays (an assumption)"
    )
    spending_effect: float = Field(
        0.8, ge=0, le=3, description="Percent of output per percent of GDP of public spending (Ramey 2011: .8 to 1.5)"
    )
    tax_effect: float = Field(
        0.5,
        ge=0,
        le=5,
        description="Percent of output per percent of GDP of tax cuts or transfers (an assumption)",
    )
    adaptation: float = Field(
        0.08,
        gt=0,
        le=1,
        description="Share of a lasting change of the budget or of trade that demand gets used to in a quarter (an "
        "assumption: half in two years)",
    )
    openness: float = Field(
        0.3,
        ge=0,
        lt=1,
        description="Imports as a share of GDP of a nation that is small beside all others; trade of a pair goes "
        "with the product of their GDP (gravity, Anderson and van Wincoop 2003, without distance)",
    )
    income_elasticity: float = Field(
        1.5, ge=0, le=5, description="Percent of imports per percent of output gap (Houthakker and Magee 1969: 1 to 2)"
    )
    price_elasticity: float = Field(
        1.0,
        ge=0,
        le=10,
        description="Percent of imports per percent of their price, by tariff or exchange rate (an assumption within "
        "the range of Hooper, Johnson and Marquez 2000)",
    )
    exchange_effect: float = Field(
        1.5, ge=0, le=10, description="Percent of appreciation per point of real rate above the others' (an assumption)"
    )
    balance_effect: float = Field(
        1.0, ge=0, le=20, description="Percent of appreciation per percent of GDP of trade surplus (an assumption)"
    )
    exchange_lag: float = Field(
        0.85, ge=0, lt=1, description="Share of last quarter's exchange rate that stays (an assumption)"
    )
    trade_gain: float = Field(
        0.25,
        ge=0,
        le=2,
        description="Percent of output that is lost per percent of GDP of trade that tariffs and sanctions stop "
        "(Arkolakis, Costinot and Rodriguez-Clare 2012: about that with a trade elasticity of 5)",
    )
    import_prices: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Share of a change of tariff or exchange rate that reaches import prices (Campa and Goldberg 2005: "
        "about .25 in the US within a quarter)",
    )
    stabilizer: float = Field(
        0.35,
        ge=0,
        le=1,
        description="Percent of GDP that the budget balance moves with per percent of output gap (Girouard and Andre "
        "2005: .34 for the US)",
    )
    debt_response: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Taxes, percent of GDP, per percent of debt above target (Bohn 1998: .03 to .05)",
    )
    demand_sd: float = Field(0.65, ge=0, le=10, description="sd of demand shocks, percent of output (calibrated)")
    supply_sd: float = Field(1.6, ge=0, le=20, description="sd of inflation shocks, points a year (calibrated)")
    supply_lag: float = Field(
        0.5, ge=0, lt=1, description="Share of a rise of costs that is still there a quarter later (calibrated)"
    )
    labor_sd: float = Field(0.2, ge=0, le=5, description="sd of unemployment shocks, points (calibrated)")
    common: float = Field(
        0.3, ge=0, le=1, description="Share of the variance of demand and inflation shocks that nations have in common"
    )

    @model_validator(mode="after")
    def _demand_dies_out(self) -> Self:
        one, two = self.demand_lag_1, self.demand_lag_2
        if not (one + two < 1 and two - one < 1 and two > -1):
            raise ValueError(f"demand_lag_1={one:g} and demand_lag_2={two:g}: demand would grow without end")
        return self


class LimitsParams(Params):
    """What a nation can do in one quarter; the validator refuses the rest."""

    lower_bound: float = Field(0.0, ge=-5, le=5, description="Lowest policy rate, percent a year")
    highest_rate: float = Field(25.0, gt=0, le=1000, description="Highest policy rate, percent a year")
    rate_step: float = Field(3.0, gt=0, le=1000, description="Largest move of the policy rate, points")
    budget_step: float = Field(5.0, gt=0, le=100, description="Largest move of spending or taxes, percent of GDP")
    borrowing_step: float = Field(10.0, gt=0, le=100, description="Most new borrowing or paying back, percent of GDP")
    highest_budget: float = Field(65.0, gt=0, le=100, description="Most spending or taxes, percent of GDP")
    highest_debt: float = Field(
        200.0, gt=0, le=1000, description="Debt, percent of GDP, beyond which nobody lends for new deficits"
    )
    highest_deficit: float = Field(15.0, gt=0, le=100, description="Largest planned deficit, percent of GDP a year")
    highest_tariff: float = Field(200.0, gt=0, le=10_000, description="Highest tariff, percent of value")
    tariff_step: float = Field(25.0, gt=0, le=10_000, description="Largest move of a tariff, points")
    measures: int = Field(
        4, ge=1, le=20, description="Most measures in a decision, those against all others counted once"
    )

    @model_validator(mode="after")
    def _rates_have_room(self) -> Self:
        if self.lower_bound >= self.highest_rate:
            raise ValueError(f"lower_bound={self.lower_bound:g} is not below highest_rate={self.highest_rate:g}")
        return self


class EconomySettings(Params):
    """Which nations there are, who decides, and what they see."""

    policy: PolicyKind = Field(
        "taylor",
        description="Who sets policy: an llm (the Taylor rule where none is at hand), the taylor rule (Taylor 1993), "
        "nothing at all, or random measures",
    )
    nations: Annotated[tuple[Nation, ...], BeforeValidator(several)] = Field(
        tuple(NATIONS.values()),
        description=f"Names of nations that are known ({', '.join(NATIONS)}), or keys of any: "
        f"{', '.join(NationParams.model_fields)}",
    )
    first_quarter: str = Field(
        "2009Q4",
        pattern=r"^[1-9][0-9]{3}Q[1-4]$",
        description="The first quarter; the nations' starting values are of the one before",
    )
    noise: float = Field(
        0.5, ge=0, le=20, description="sd of the error with which a nation sees the others' indicators, points"
    )
    domain: Domain = Field("economic", description="What nations decide about: all of it, or one field")
    prompt_style: PromptStyle | None = Field(
        None,
        description="chain_of_thought: the contract's prompt; examples: with three worked examples before it; null: "
        "chain_of_thought, with the embedded LLM examples",
    )
    typed_measures: bool = Field(
        True, description="Whether an LLM gives its policy in numbers, too; false: only in words, which are read"
    )
    memory: int = Field(4, ge=0, le=40, description="Own past decisions, with what became of them, that a prompt tells")
    deliberate: bool = Field(
        False, description="Whether an LLM thinks, with tools, before it decides for a nation (see deliberation)"
    )
    macro: MacroParams = Field(default_factory=MacroParams)
    limits: LimitsParams = Field(default_factory=LimitsParams)

    @property
    def policies(self) -> list[PolicyKind]:
        """Who sets policy in each nation."""
        return [nation.policy or self.policy for nation in self.nations]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [nation.name.lower() for nation in self.nations]
        if not 1 <= len(names) <= MOST_NATIONS:
            raise ValueError(f"nations: {len(names)} of them; there can be 1 to {MOST_NATIONS}")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"nations: {twice[0]!r} stands there twice")
        return self


class ThinkingParams(LoopParams):
    """How far nations think before they decide, with economy.deliberate; each thought is a call of the LLM."""

    result_chars: ResultChars = 600


class EconomyParams(Params):
    """Everything an `EconomyModel` is made from."""

    seed: Seed = Field(42, ge=0, lt=2**63, description="seed of all keyed draws; null: draw one and keep it")
    rounds: int = Field(40, ge=1, le=40_000, description="quarters of a run")
    economy: EconomySettings = Field(default_factory=EconomySettings)
    deliberation: ThinkingParams = Field(default_factory=ThinkingParams)
    reasoner: AdvisorParams = Field(default_factory=AdvisorParams)

    @model_validator(mode="after")
    def _time_does_not_run_out(self) -> Self:
        first = self.economy.first_quarter
        year, _, _ = quarter_name(first, self.rounds - 1).partition("Q")
        if int(year) > 9999:
            raise ValueError(
                f"rounds={self.rounds} quarters from economy.first_quarter={first} run past the year 9999: "
                "give fewer, or an earlier first one"
            )
        return self
