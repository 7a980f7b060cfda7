"""The page of a run of nations: indicators, and the policy of each quarter with verdict and reasoning."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pandas as pd
from reacton.core import use_memo, use_state
from reacton.ipyvuetify import Html
from solara.components.component_vue import component_vue
from solara.core import component

from prism_mesa.economy.tables import RESPONSE_INDICATORS
from prism_mesa.errors import DataError
from prism_mesa.llm.text import clean_text
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import has_table
from prism_mesa.view.page.widgets import page_frame, time_bar
from prism_mesa.view.playback.tables import read_full_table
from prism_mesa.view.plots.economy import draw_indicators

_PERCENT_UNITS: Final = dict.fromkeys(("gdp_growth", "output_gap", "unemployment", "policy_rate"), "%")
_PERCENT_OF_GDP: Final = dict.fromkeys(("spending", "taxes", "debt", "trade_balance"), "% of GDP")
_INDICATOR_UNITS: Final = _PERCENT_UNITS | {"inflation": "% a year"} | _PERCENT_OF_GDP
_REQUIRED: Final = {  # columns that the page needs
    "nations": ("name", "inflation_target", "natural_unemployment"),
    "indicators": ("round", "quarter", "nation", *RESPONSE_INDICATORS),
    "baselines": ("round", "nation", "policy", *RESPONSE_INDICATORS),
    "decisions": ("round", "nation", "action", "outcome"),
    "verdicts": ("round", "nation", "passed", "check", "of", "reason"),
}
_OUTCOMES: Final = {
    "accepted": "carried out",
    "no_change": "no change was proposed",
    "rejected": "rejected by the validator",
    "not_understood": "not understood",
}
_TEXT_COLUMNS: Final = {"because": "reasoning", "read": "policy", "reason": "reason"}
_MAX_TEXT: Final = 4_000


@dataclass(frozen=True)
class NationRun:
    """A run of nations: its completed quarters, and its tables by name."""

    run_dir: Path
    decided_by: str
    seed: int | None
    quarters: tuple[str, ...]
    tables: Mapping[str, pd.DataFrame]


def read_nations(run_dir: str | Path) -> NationRun:
    """Return the tables of a run of nations; a missing run, a platform or a run without quarters raises a DataError."""
    run = read_run(run_dir)
    if not run.manifest.is_economy:
        raise DataError(f"{run_dir} is a run of a platform, not of nations")
    if not has_table(run_dir, "indicators") or read_full_table(run_dir, "indicators", _REQUIRED["indicators"]).empty:
        raise DataError(f"{run_dir}: no quarter of it was completed (status {run.state}){run.advice}")
    tables = {name: read_full_table(run_dir, name, columns) for name, columns in _REQUIRED.items()}
    quarter_names = tables["indicators"].drop_duplicates("round")["quarter"].astype(str)
    quarters = tuple(clean_text(name, 20) for name in quarter_names)
    if tables["nations"].empty:
        raise DataError(f"{run_dir}: table 'nations' is damaged: it has no rows")
    return NationRun(Path(run_dir), clean_text(run.manifest.decided_by, 200), run.manifest.seed, quarters, tables)


def quarter_policies(run: NationRun, quarter: int) -> list[dict[str, Any]]:
    """Return the policy of each nation in a quarter: reasons, outcome, and indicators before and after."""
    entries: list[dict[str, Any]] = []
    for name in run.tables["nations"]["name"].astype(str):
        decision = _row(run.tables["decisions"], name, quarter)
        before, after = (_row(run.tables["indicators"], name, round_) for round_ in (quarter - 1, quarter))
        outcome = str(decision.get("outcome", ""))
        entry: dict[str, Any] = {"nation": clean_text(name, 80), "outcome": outcome}
        entry["verdict"] = _OUTCOMES.get(outcome, "")
        entry |= {"wanted": clean_text(decision.get("action", "nothing is recorded"), _MAX_TEXT)}
        entry |= {key: clean_text(decision.get(column, ""), _MAX_TEXT) for key, column in _TEXT_COLUMNS.items()}
        entry["checks"] = _checks(run.tables["verdicts"], name, quarter)
        entry["indicators"] = [
            {"name": key.replace("_", " ").replace("gdp", "GDP"), "unit": unit}
            | {label: f"{row[key]:.2f}" if key in row else "-" for label, row in (("before", before), ("after", after))}
            for key, unit in _INDICATOR_UNITS.items()
        ]
        entries.append(entry)
    return entries


def _row(table: pd.DataFrame, name: str, round_: int) -> dict[str, Any]:
    rows = table[(table["nation"].astype(str) == name) & (table["round"] == round_)]
    return {} if rows.empty else dict(rows.iloc[0])


def _checks(verdicts: pd.DataFrame, name: str, round_: int) -> list[dict[str, Any]]:
    rows = verdicts[(verdicts["nation"].astype(str) == name) & (verdicts["round"] == round_)]
    lengths = {"check": 80, "of": 300, "reason": 600}
    return [
        {"passed": bool(check["passed"])} | {key: clean_text(check[key], limit) for key, limit in lengths.items()}
        for check in rows.to_dict("records")
    ]


def _indicators_url(run: NationRun) -> str:
    png, tables = BytesIO(), run.tables
    figure = draw_indicators(tables["indicators"], tables["baselines"], tables["nations"])
    figure.savefig(png, format="png", dpi=100)
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()


@component_vue("policies.vue")
def show_policies(quarter: str, nations: list[dict[str, Any]]) -> None:
    """Show each nation's policy in a quarter, its reasons and its outcome (`quarter_policies`)."""


@component
def nations_page(run: NationRun) -> None:
    """Show a run of nations: indicators over time, and the policies of the selected quarter."""
    quarter, set_quarter = use_state(len(run.quarters) - 1)
    figure = use_memo(lambda: _indicators_url(run), [run])
    entries = use_memo(lambda: quarter_policies(run, quarter), [run, quarter])
    names, title = list(run.quarters), clean_text(run.run_dir.resolve().name, 120)
    facts = [("nations", str(len(run.tables["nations"]))), ("decided by", run.decided_by), ("seed", str(run.seed))]
    alt = "Output gap, inflation, unemployment and policy rate of each nation by quarter; numbers: above"
    bar = time_bar(at=quarter, lowest=0, rounds=len(names), unit="quarter", names=names, event_choose=set_quarter)
    picture = Html(tag="img", attributes={"src": figure, "alt": alt}, style_="max-width: 100%")
    card = Html(tag="section", class_="prism-card prism-moment", attributes={"aria-label": "Quarter"}, children=[bar])
    policy_cards = show_policies(quarter=names[quarter], nations=entries)
    chart_card = Html(tag="section", class_="prism-card", attributes={"aria-label": "Indicators"}, children=[picture])
    page_frame(title, [card, policy_cards, chart_card], facts=facts)
