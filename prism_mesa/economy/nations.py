"""Nations: size, long-run values, and values at the start."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal

from pydantic import Field

from prism_mesa.errors import did_you_mean
from prism_mesa.params import Params

type PolicyKind = Literal["llm", "taylor", "nothing", "random"]
"""Who sets a nation's policy: an LLM, or one of `rules.RULES`."""


class NationParams(Params):
    """A nation. Rates, inflation and growth are in percent a year; budget and debt are in percent of a year's GDP."""

    name: str = Field(min_length=1, max_length=60, pattern=r"^[\w .'-]*\w[\w .'-]*$", description="name")
    size: float = Field(1.0, gt=0, le=1e6, description="GDP at the start, in any unit that all nations share")
    natural_unemployment: float = Field(6.0, ge=0, le=50, description="unemployment without a gap, percent")
    inflation_target: float = Field(2.0, ge=-5, le=50, description="the central bank's inflation target")
    neutral_rate: float = Field(2.0, ge=-5, le=20, description="real rate that neither stimulates nor dampens demand")
    trend_growth: float = Field(2.5, ge=-10, le=20, description="growth of potential output")
    unemployment: float | None = Field(None, ge=0, le=100, description="unemployment at the start; null: natural rate")
    growth: float | None = Field(None, ge=-50, le=50, description="output growth in the year before; null: the trend")
    inflation: float | None = Field(None, ge=-50, le=1000, description="inflation in the year before; null: the target")
    policy_rate: float | None = Field(
        None, ge=-5, le=1000, description="policy rate at the start; null: neutral rate plus target"
    )
    debt: float = Field(60.0, ge=-500, le=1000, description="government debt at the start, and the debt target")
    spending: float = Field(35.0, gt=0, le=100, description="government spending per year")
    policy: PolicyKind | None = Field(None, description="who sets its policy; null: as in economy.policy")


# fmt: off
_INITIAL_VALUES: Final = (
    ("name", "size", "natural_unemployment", "inflation_target", "trend_growth", "unemployment", "growth", "inflation",
     "policy_rate", "debt", "spending"),
    ("United States", 14.4, 5.9, 2.0, 3.1, 9.6, -2.5, -0.2, 0.12, 87.0, 35.0),
    ("United Kingdom", 2.4, 6.0, 2.0, 2.5, 7.6, -5.0, 1.5, 0.5, 65.0, 40.0),
    ("Canada", 1.4, 7.5, 2.0, 2.7, 8.4, -3.0, -0.9, 0.25, 80.0, 40.0),
    ("Australia", 1.0, 6.5, 2.5, 3.2, 5.6, 1.0, 1.3, 3.0, 17.0, 35.0),
    ("Sweden", 0.4, 7.0, 2.0, 2.4, 8.4, -5.0, -1.2, 0.25, 41.0, 50.0),
)
# fmt: on
NATIONS: Final[Mapping[str, NationParams]] = {
    str(row[0]): NationParams.model_validate(dict(zip(_INITIAL_VALUES[0], row, strict=True)))
    for row in _INITIAL_VALUES[1:]
}
"""The nations that PRISM knows by name, as of 2009Q3.

United States: `macrodata` (statsmodels). Its last rows give unemployment, the policy rate (three-month Treasury bills),
and growth and mean inflation over four quarters. Natural unemployment and trend growth are means of all rows. Other
nations, rounded: unemployment in 2009, growth and inflation over the year to 2009Q3 (OECD), and policy rates in 2009Q3
and inflation targets (central banks; Australia: 2 to 3 percent). Natural unemployment and trend growth are near the
averages of 1995 to 2009 (OECD). All nations, rounded: GDP of 2009 in trillions of dollars (World Bank), general
government gross debt of 2009, and spending of about 2007 (IMF). The neutral rate is 2 percent (Taylor 1993).
"""


def complete_nation(value: Any) -> Any:
    """Return a nation's keys, given its name or some keys; a known name supplies missing keys. Or raise ValueError."""
    close_names = get_close_matches(value, NATIONS, cutoff=0.88) if isinstance(value, str) else []  # Austria: .875
    if close_names and _find_nation(value) is None:
        raise ValueError(f"no such nation (to add a nation, write {{name: {value}}}). Did you mean {close_names[0]!r}?")
    keys = {"name": value} if isinstance(value, str) else value
    if isinstance(keys, dict):
        known_nation = _find_nation(keys.get("name"))
        return keys if known_nation is None else {**known_nation.model_dump(), **keys, "name": known_nation.name}
    if isinstance(value, NationParams):
        return value
    raise ValueError(f"give the name of a nation ({', '.join(NATIONS)}), or the keys of a new nation")


def default_nation_notes(nations: Iterable[NationParams]) -> tuple[str, ...]:
    """Return a note for each unknown nation that has only default values."""
    return tuple(
        f"economy.nations: {nation.name} is an unknown nation with default values "
        f"(known: {', '.join(NATIONS)}).{did_you_mean(nation.name, NATIONS)}"
        for nation in nations
        if nation.name not in NATIONS and nation == NationParams(name=nation.name, policy=nation.policy)
    )


def _find_nation(name: object) -> NationParams | None:
    wanted_name = name.strip().lower() if isinstance(name, str) else ""
    return next((nation for known_name, nation in NATIONS.items() if known_name.lower() == wanted_name), None)
