"""The tables of a run of nations."""

from dataclasses import replace
from typing import Final, Literal

from prism_mesa.tables import Column, index_tables, make_schema

type Outcome = Literal["accepted", "no_change", "rejected", "not_understood"]

OUTCOMES: Final[tuple[Outcome, ...]] = ("accepted", "no_change", "rejected", "not_understood")
"""Outcomes of a decision: carried out, nothing to do, rejected by the validator, not understood."""
RESPONSE_INDICATORS: Final = ("output_gap", "inflation", "unemployment", "policy_rate")
"""The indicators of a response to a shock."""

_ROUND = Column("round", "int", "number of the quarter, from 0")
_QUARTER = Column("quarter", "category", "the quarter, such as 2009Q4")
_NATION = Column("nation", "category", "the nation")


def _indicator(name: str, unit: str, meaning: str) -> Column:
    """Return a column with possibly infinite or missing values, because a policy can make an economy explode."""
    return Column(name, "float64", meaning, unit, finite=False)


INDICATOR_COLUMNS: Final = (
    _indicator("gdp", "unit of `size`", "real output a year"),
    _indicator("gdp_growth", "%", "growth of real output over the last four quarters"),
    _indicator("output_gap", "%", "output above potential output"),
    _indicator("inflation", "% a year", "mean inflation of the last four quarters"),
    _indicator("unemployment", "%", "rate of unemployment"),
    _indicator("policy_rate", "% a year", "the central bank's interest rate"),
    _indicator("lending_rate", "% a year", "the interest rate that borrowers pay"),
    _indicator("spending", "% of GDP", "government spending"),
    _indicator("taxes", "% of GDP", "government revenue"),
    _indicator("deficit", "% of GDP", "government spending and interest, less revenue"),
    _indicator("debt", "% of GDP", "government debt"),
    _indicator("exports", "unit of `size`", "exports a year"),
    _indicator("imports", "unit of `size`", "imports a year"),
    _indicator("trade_balance", "% of GDP", "exports less imports"),
    _indicator("exchange_rate", "%", "real exchange rate above its long-run level; higher is stronger"),
)
"""The indicators of a nation."""

INDICATORS_TABLE: Final = make_schema(
    "indicators",
    "a nation at the end of a quarter",
    _ROUND,
    _QUARTER,
    _NATION,
    *INDICATOR_COLUMNS,
    Column("inflation_quarter", "float64", "inflation in this quarter alone", "% a year", finite=False),
)
DECISIONS: Final = make_schema(
    "decisions",
    "a decision of a nation",
    _ROUND,
    _QUARTER,
    _NATION,
    Column("action", "text", "the policy in words"),
    Column("confidence", "float64", "the nation's confidence", "0 to 1"),
    Column("read_by", "text", "source of its measures: answer, parser, llm (an LLM read the words), or rule"),
    Column("policy", "text", "measures of the policy as text; empty if none were read"),
    Column("measures", "text", "measures of the policy in JSON"),
    Column("outcome", "text", "the outcome", one_of=OUTCOMES),
    Column("reason", "text", "why the decision has no effect; empty if it has an effect"),
    Column("reasoning", "text", "the nation's reasoning"),
    Column("reasoning_chain_id", "text", "`chain_id` in `reasoning`"),
)
VERDICTS: Final = make_schema(
    "verdicts",
    "a check of a decision",
    _ROUND,
    _NATION,
    Column("measure", "int", "number of the measure in the policy, from 0; -1: the whole policy"),
    Column("of", "text", "the measure as text"),
    Column("check", "text", "the kind of check"),
    Column("passed", "bool", "whether the measure passed the check"),
    Column("reason", "text", "an explanation with numbers"),
)
TRADE: Final = make_schema(
    "trade",
    "a pair of nations in a quarter",
    _ROUND,
    Column("importer", "category", "the buyer"),
    Column("exporter", "category", "the seller"),
    Column("imports", "float64", "imports from the exporter a year", "unit of `size`", finite=False),
    Column("tariff", "float64", "the importer's tariff", "%", finite=False),
    Column("sanction", "float64", "share of trade that is forbidden", "%", finite=False),
)
REASONING: Final = make_schema(
    "reasoning",
    "an answer of an LLM",
    _ROUND,
    Column("chain_id", "text", "id of the answer"),
    Column("component", "text", "the purpose of the question"),
    Column("agent_id", "text", "the nation"),
    Column("prompt", "text", "the prompt; for an LLM that thought first, the part that all prompts of its turn share"),
    Column("action", "text", "the policy in words"),
    Column("reasoning", "text", "the nation's reasoning in the answer"),
    Column("confidence", "float64", "the nation's confidence", "0 to 1"),
    Column("thoughts", "text", "thoughts, tool calls and proposals before the decision, in JSON"),
)
NATIONS: Final = make_schema(
    "nations",
    "a nation",
    Column("name", "text", "its name"),
    Column("size", "float64", "GDP a year at the start", "any unit, such as trillion dollars"),
    Column("natural_unemployment", "float64", "unemployment at an output gap of 0", "%"),
    Column("inflation_target", "float64", "the central bank's inflation target", "% a year"),
    Column("neutral_rate", "float64", "real interest rate that neither spurs nor slows demand", "% a year"),
    Column("trend_growth", "float64", "growth of potential output", "% a year"),
    Column("unemployment", "float64", "unemployment at the start", "%"),
    Column("growth", "float64", "output growth over the four quarters before the start", "%"),
    Column("inflation", "float64", "inflation at the start", "% a year"),
    Column("policy_rate", "float64", "policy rate at the start", "% a year"),
    Column("debt", "float64", "government debt at the start", "% of GDP"),
    Column("spending", "float64", "government spending at the start", "% of GDP"),
    Column("policy", "text", "who sets policy: `llm` or the name of a rule"),
)
RESPONSES: Final = make_schema(
    "responses",
    "a nation in a quarter after the first nation's policy rate rose by a point for a year",
    Column("quarter", "int", "quarters since the rise; 0: first quarter with the higher rate"),
    Column("nation", "text", "the nation"),
    *(
        replace(column, meaning=f"effect of the rise on {column.name.replace('_', ' ')}", finite=True)
        for column in INDICATOR_COLUMNS
        if column.name in RESPONSE_INDICATORS
    ),
    Column("follows", "text", "what other policy rates do: held, or taylor (follow Taylor's rule)"),
)
BASELINES: Final = make_schema(
    "baselines",
    "a nation in a quarter, with the same shocks under another policy",
    _ROUND,
    Column("nation", "text", "the nation"),
    *INDICATOR_COLUMNS,
    Column("policy", "text", "the other policy: taylor, or nothing"),
)

ECONOMY_TABLES: Final = index_tables(
    INDICATORS_TABLE, DECISIONS, VERDICTS, TRADE, REASONING, NATIONS, RESPONSES, BASELINES
)
"""The tables of a run of nations; `reasoning` is only written if an LLM decided."""
ALWAYS: Final = tuple(name for name in ECONOMY_TABLES if name != REASONING.name)
"""The tables of every run of nations."""
