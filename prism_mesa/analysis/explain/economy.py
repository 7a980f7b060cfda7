"""Explain a nation's decisions from the tables of a run."""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.deliberation import ReasoningResult
from prism_mesa.deliberation.conversation import call_text, reasoning_text
from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.llm.text import clean_text
from prism_mesa.params import parse_whole_number
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import read_table

_WIDTH = 106
_TEXT_CAP = 2000
_OUTCOMES = {
    "accepted": "carried out",
    "no_change": "carried out: nothing was to be changed",
    "rejected": "rejected by the validator, without any effect",
    "not_understood": "not understood, without any effect",
}
_DECISION_COLUMNS = (
    *("round", "quarter", "nation", "action", "confidence", "read_by", "policy", "outcome", "reason", "reasoning"),
    "reasoning_chain_id",
)
_INDICATORS = {
    "gdp_growth": "growth {:.1f} %",
    "output_gap": "output gap {:+.1f} %",
    "inflation": "inflation {:.1f} %",
    "unemployment": "unemployment {:.1f} %",
    "policy_rate": "policy rate {:.2f} %",
    "debt": "debt {:.0f} % of GDP",
    "trade_balance": "trade balance {:+.1f} % of GDP",
}


def why_nation(run_dir: str | Path, nation: str, quarter: str | None = None, *, brief: bool = False) -> Iterator[str]:
    """Yield a nation's decision in a quarter, with its reason and outcome; arguments and errors as in `api.runs.why`.

    The default is the last quarter with a change of policy. `brief` yields only a summary.
    """
    run = read_run(run_dir)
    manifest = run.manifest
    if not manifest.summary.rounds:
        error = f": {manifest.error}" if manifest.error else ""
        raise DataError(f"{run_dir}: no quarter is known to be complete (status {run.state}{error}){run.advice}")
    decisions = read_table(run_dir, "decisions", _DECISION_COLUMNS)
    name = _find_nation(nation, read_table(run_dir, "nations", ["name"])["name"].tolist(), run_dir)
    rows = decisions[decisions["nation"] == name]
    _first_row(rows, run_dir, "decisions", name)
    decision = _find_decision(rows, quarter, run_dir)
    overview = _overview_lines(rows, name, manifest.decided_by)
    if brief:
        yield next(overview)
        yield _shorten(f'In {decision["quarter"]} it wanted: "{decision["action"]}"')
        yield _shorten(f"Its reason: {decision['reasoning']}")
        yield _shorten(f"This was {_OUTCOMES[decision['outcome']]}. {decision['reason']}")
        return
    yield from overview
    yield ""
    yield from _full_lines(Path(run_dir), decision, name)


def decision_lines(run_dir: str | Path, nation: str, round_: int) -> Iterator[str]:
    """Yield a nation's decision in a quarter, with its reason and outcome; raise DataError if there is none."""
    decisions = read_table(run_dir, "decisions", _DECISION_COLUMNS)
    rows = decisions[(decisions["nation"] == nation) & (decisions["round"] == round_)]
    decision = _first_row(rows, run_dir, "decisions", nation)
    indicators = read_table(run_dir, "indicators", ["round", "nation", *_INDICATORS])
    previous_row = indicators[(indicators["nation"] == nation) & (indicators["round"] == round_ - 1)]
    if len(previous_row):
        yield f"It stood at {_indicator_text(previous_row.iloc[0])}."
    yield from _wrap_text(f'It wanted: "{decision["action"]}"', "")
    yield from _wrap_text(f"because: {decision['reasoning']}", "  ")
    yield f"It was {_OUTCOMES[decision['outcome']]}."


def _shorten(text: str) -> str:
    return textwrap.shorten(clean_text(text, _TEXT_CAP), 300, placeholder=" ...")


def _find_nation(text: str, names: list[str], run_dir: str | Path) -> str:
    row = parse_whole_number(text)
    if row is not None and row < len(names):
        return names[row]
    name = {name.lower(): name for name in names}.get(text.strip().lower())
    if name is None:
        suggestion = did_you_mean(text, names)
        raise DataError(f"{run_dir}: no nation {text!r} there (nations: {', '.join(names)}).{suggestion}")
    return name


def _find_decision(rows: pd.DataFrame, quarter: str | None, run_dir: str | Path) -> Any:
    if quarter is None:
        changes = rows[rows["outcome"] != "no_change"]
        return (changes if len(changes) else rows).iloc[-1]
    matches = rows[rows["quarter" if re.fullmatch(r"\d{4}Q\d", quarter) else "round"].astype(str) == quarter]
    if matches.empty:
        first, last = rows.iloc[0], rows.iloc[-1]
        span = f"{first['quarter']} .. {last['quarter']}, or {first['round']} .. {last['round']}"
        raise DataError(f"{run_dir}: no quarter {quarter} there (quarters: {span})")
    return matches.iloc[0]


def _overview_lines(rows: pd.DataFrame, name: str, decided_by: str) -> Iterator[str]:
    counts = rows["outcome"].value_counts()
    outcomes = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _OUTCOMES if outcome in counts)
    span = f"{rows['quarter'].iloc[0]} to {rows['quarter'].iloc[-1]}"
    yield f"{clean_text(name, 80)} decided in {len(rows)} quarters, {span}: {outcomes}."
    yield f"Policy in this run was set by {clean_text(decided_by, 400)}."


def _full_lines(run_dir: Path, decision: Any, name: str) -> Iterator[str]:
    indicators = read_table(run_dir, "indicators", ["round", "nation", *_INDICATORS])
    indicators = indicators[indicators["nation"] == name]
    yield f"{decision['quarter']} (quarter {decision['round']}):"
    previous_row = indicators[indicators["round"] == decision["round"] - 1]
    if len(previous_row):
        yield f"  It stood at {_indicator_text(previous_row.iloc[0])}."
    if decision["reasoning_chain_id"]:
        yield from _prompt_lines(run_dir, str(decision["reasoning_chain_id"]))
    confidence = f", sure to {decision['confidence']:.0%}" if decision["reasoning_chain_id"] else ""
    yield from _wrap_text(f'It wanted{confidence}: "{decision["action"]}"', "  ")
    yield from _wrap_text(f"because: {decision['reasoning']}", "    ")
    if decision["read_by"] != "rule":
        policy_text = decision["policy"] or f"nothing that can be done: {decision['reason']}"
        reader = "" if decision["read_by"] == "answer" else f", as the {decision['read_by']} read it"
        yield from _wrap_text(f"In numbers{reader}: {policy_text}", "  ")
    yield from _verdict_lines(run_dir, int(decision["round"]), name)
    yield f"  It was {_OUTCOMES[decision['outcome']]}."
    next_row = _first_row(indicators[indicators["round"] == decision["round"]], run_dir, "indicators", name)
    yield f"  At the end of the quarter: {_indicator_text(next_row)}."


def _first_row(rows: pd.DataFrame, run_dir: str | Path, table: str, name: str) -> Any:
    if rows.empty:
        raise DataError(f"{run_dir}: table {table!r} is damaged: it has no row for {name!r}")
    return rows.iloc[0]


def _indicator_text(row: Any) -> str:
    return ", ".join(text.format(row[name]) for name, text in _INDICATORS.items())


def _prompt_lines(run_dir: Path, chain_id: str) -> Iterator[str]:
    chains = read_table(run_dir, "reasoning", ["chain_id", "prompt", "thoughts"])
    chain = _first_row(chains[chains["chain_id"] == chain_id], run_dir, "reasoning", chain_id)
    yield "  It was told:"
    for line in str(chain["prompt"]).splitlines():
        yield from (f"    | {part}" for part in textwrap.wrap(clean_text(line, _TEXT_CAP), _WIDTH) or [""])
    thoughts = _thought_texts(str(chain["thoughts"] or "[]"), run_dir)
    if thoughts:
        yield "  Before it decided:"
    for thought in thoughts:
        yield from _wrap_text(thought, "    ")


def _thought_texts(cell: str, run_dir: Path) -> list[str]:
    try:
        return [_thought_text(entry) for entry in json.loads(cell)]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{run_dir}: table 'reasoning' is damaged: {cell[:80]!r} is not a list of thoughts") from None


def _thought_text(entry: dict[str, Any]) -> str:
    match entry["kind"]:
        case "thought":
            return f"it thought: {reasoning_text(ReasoningResult.model_validate(entry))}"
        case "tool":
            call = call_text(entry["tool_name"], entry["parameters"])
            return f"it called {call}{'' if entry['ok'] else ', in vain'}: {entry['text']}"
        case "proposal":
            return f'it proposed: "{entry["action"]}"'
        case _:
            return f"it did not work ({entry['reason']}): {entry['text']}"


def _verdict_lines(run_dir: Path, round_: int, name: str) -> Iterator[str]:
    verdicts = read_table(run_dir, "verdicts", ["round", "nation", "of", "check", "passed", "reason"])
    rows = verdicts[(verdicts["round"] == round_) & (verdicts["nation"] == name)]
    for verdict in rows.to_dict("records"):
        mark = "passed" if verdict["passed"] else "FAILED"
        yield from _wrap_text(f"{mark} {verdict['check']}: {verdict['reason']} ({verdict['of']})", "    ")


def _wrap_text(text: str, indent: str) -> Iterator[str]:
    text = clean_text(text, _TEXT_CAP)
    yield from textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
