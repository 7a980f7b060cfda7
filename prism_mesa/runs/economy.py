"""One run of nations, from its model to its records and summary."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.economy.impulse_response import RateRule, rate_response
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.params import MacroParams, quarter_name
from prism_mesa.economy.tables import ECONOMY_TABLES, OUTCOMES
from prism_mesa.llm import LLMClient
from prism_mesa.runs.config import EconomyConfig, read_config
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.lifecycle import RunResult, run_to_completion
from prism_mesa.runs.manifest import llm_facts
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.rounds import (
    WITHOUT_EFFECT,
    RunTimer,
    run_rounds,
    run_summary,
    scope_name,
    without_repeated_warnings,
)
from prism_mesa.runs.run_files import has_table, read_table

BASELINES = ("taylor", "nothing")
"""Policies to which every run is compared, under the same shocks."""

_RATE_RULES: tuple[RateRule, ...] = ("held", "taylor")


def run_economy(
    config: EconomyConfig | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    out: str | Path = "results",
    llm: Any = None,
    on_round: Callable[[int], None] | None = None,
) -> RunResult:
    """Run nations and keep their records in ``out/<run-id>``, without pictures; see `api.runs.run_economy`."""
    timer = RunTimer()
    config = read_config(EconomyConfig, config)
    model = EconomyModel(config, llm=llm)
    task = NationsRun(model, config, timer, on_round)
    return run_to_completion(task, out, config.name, ECONOMY_TABLES)


@dataclass(frozen=True)
class NationsRun:
    """A run of nations (see `work.RunTask`)."""

    model: EconomyModel
    config: EconomyConfig
    timer: RunTimer
    on_round: Callable[[int], None] | None

    @property
    def answerer(self) -> LLMClient | None:
        """The LLM, if any."""
        llm: LLMClient | None = self.model.llm
        return llm

    @property
    def checkpoint_every(self) -> int:
        """0: no checkpoints, because the ledger has the answers, and everything else is computed quickly."""
        return 0

    def scope(self) -> str:
        """Return a name for the values that affect the tables."""
        return scope_name(self.model.params.model_dump(mode="json", exclude={"name": True, "reasoner": WITHOUT_EFFECT}))

    def facts(self) -> dict[str, Any]:
        """Return the configuration, and who decides."""
        model = self.model
        return {
            "system": "economy",
            "seed": self.config.seed,
            "config": self.config.model_dump(mode="json"),
            "code": code_version(),
            "decided_by": model.label,
            "note": model.note,
            "notes": list(model.notes),
            "llm": None if model.llm is None else _llm_entry(model.llm, model),
        }

    def carry_out(self, folder: RunFolder) -> str:
        """Run the quarters; raises the error of a quarter that fails."""
        with closing(self.model):
            if self.on_round is not None:
                self.on_round(0)
            run_rounds(self.model, self.config.rounds, folder, self.timer, self.on_round)
        return ""

    def progress(self) -> str:
        """Return the current quarter."""
        return quarter_name(self.config.economy.first_quarter, self.model.world.quarter)

    def finish(self, folder: RunFolder, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write nations, responses and baselines, and return the summary."""
        model = self.model
        table = read_table(folder.path, "indicators") if has_table(folder.path, "indicators") else pd.DataFrame()
        quarters = int(table["round"].nunique()) if len(table) else 0
        baselines = {name: _baseline(model, name, quarters) for name in BASELINES}
        folder.replace_table("nations", _nations(model))
        economy = tuple(model.macro.nations), model.macro.params
        responses = pd.concat([_response(*economy, rule) for rule in _RATE_RULES], ignore_index=True)
        folder.replace_table("responses", _columns(responses))
        folder.replace_table("baselines", _columns(pd.concat(baselines.values(), ignore_index=True)))
        return run_summary(folder, ending, economy_summary(model, table, baselines), self.timer)


def _llm_entry(llm: LLMClient, model: EconomyModel) -> dict[str, Any]:
    prompt_styles = {getattr(nation, "prompt_style", None) for nation in model.nations} - {None}
    return llm_facts(llm.kind, llm.client, llm.client, prompt_style=next(iter(prompt_styles)), ledger=llm.params.ledger)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    return {str(name): table[name].to_numpy() for name in table.columns}


def _nations(model: EconomyModel) -> dict[str, Any]:
    start = model.macro.start()
    table = pd.DataFrame([nation.model_dump(exclude={"policy"}) for nation in model.macro.nations])
    for name in ("unemployment", "policy_rate", "inflation"):
        table[name] = getattr(start, name)
    table["policy"] = [getattr(nation, "rule", "llm") for nation in model.nations]
    return _columns(table)


@lru_cache(maxsize=16)
def _response(nations: tuple[NationParams, ...], params: MacroParams, rule: RateRule) -> pd.DataFrame:
    return rate_response(nations, params, rate_rule=rule).assign(follows=rule)


@without_repeated_warnings()
def _baseline(model: EconomyModel, policy: str, quarters: int) -> pd.DataFrame:
    """Return the indicators of the same nations and shocks under another policy."""
    economy = model.params.economy
    nations = tuple(nation.model_copy(update={"policy": None}) for nation in economy.nations)
    settings = economy.model_copy(update={"policy": policy, "nations": nations})
    baseline = EconomyModel(model.params.model_copy(update={"economy": settings}))
    rows = []
    for _ in range(quarters):
        baseline.step()
        quarter = {"round": baseline.world.quarter - 1, "nation": baseline.macro.names}
        rows.append(pd.DataFrame({**quarter, **baseline.indicators}))
    empty = pd.DataFrame(columns=["round", "nation", *baseline.indicators])
    return (pd.concat(rows, ignore_index=True) if rows else empty).assign(policy=policy)


def economy_summary(model: EconomyModel, table: pd.DataFrame, baselines: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Return the summary of a run of nations, as ``prism economy --json`` prints it.

    `table` is the table `indicators`; `baselines` has the indicators under other policies.
    """
    economy, quarters = model.params.economy, int(table["round"].nunique()) if len(table) else 0
    usage, sources = (model.llm.usage, model.llm.counts) if model.llm is not None else (Counter(), {})
    return {
        "seed": model.params.seed,
        "nations": list(model.macro.names),
        "rounds": quarters,
        "quarters": [economy.first_quarter, quarter_name(economy.first_quarter, quarters - 1)] if quarters else [],
        "policy": economy.policy,
        "decided_by": model.label,
        "note": model.note,
        "notes": [note for note in model.notes if note != model.note],
        "decisions": {
            "made": sum(model.totals.values()),
            **{name: model.totals[name] for name in OUTCOMES},
            "read_by": dict(sorted(model.read_by.items())),
            "by_source": dict(sorted(sources.items())),
            "failures": dict(sorted(model.llm.reasons.items())) if model.llm is not None else {},
            "llm": {"calls": usage["calls"], "tokens": usage["prompt_tokens"] + usage["completion_tokens"]},
        },
        "indicators": _by_nation(table),
        "loss": _loss(table, model),
        "baseline_loss": {name: _loss(baseline, model) for name, baseline in baselines.items()},
    }


_SUMMARY_INDICATORS = ("gdp_growth", "output_gap", "inflation", "unemployment", "policy_rate", "debt", "trade_balance")


def _by_nation(table: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    if table.empty:
        return {}

    def summarise(values: "pd.Series[float]") -> dict[str, float]:
        return {"mean": float(values.mean()), "sd": float(values.std(ddof=0)), "last": float(values.iloc[-1])}

    by_nation = table.groupby("nation", sort=False, observed=True)
    return {str(nation): {name: summarise(rows[name]) for name in _SUMMARY_INDICATORS} for nation, rows in by_nation}


def _loss(table: pd.DataFrame, model: EconomyModel) -> float | None:
    """Return the quadratic loss of Svensson (1997, doi:10.1016/S0014-2921(96)00055-4), in points squared.

    It is the mean over nations and quarters of squared inflation beyond target plus squared output gap.
    """
    if table.empty:
        return None
    targets = dict(zip(model.macro.names, model.macro.inflation_target, strict=True))
    deviation = table["inflation"] - table["nation"].astype(str).map(targets)
    return float((deviation**2 + table["output_gap"] ** 2).mean())
