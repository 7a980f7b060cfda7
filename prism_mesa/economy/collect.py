"""What an economy tells about its quarters, to the DataCollector and to a recorder."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from prism_mesa.economy.llm_agent import thoughts_in_json
from prism_mesa.economy.observation import INDICATORS
from prism_mesa.economy.state import Decided, EconomyState, HasState, outcome_of
from prism_mesa.economy.tables import OUTCOMES
from prism_mesa.economy.world import World
from prism_mesa.round_model import RoundCollector

WORLD_FIELDS: Final = ("output_gap", "inflation", "unemployment", *OUTCOMES)


class QuarterRecorder(Protocol):
    """Where a model's records go."""

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows to a table of `economy.tables`, with its columns in their order."""
        ...


def make_datacollector() -> RoundCollector:
    """Return the collector of every model: of nations their indicators, of the world means and outcomes."""
    return RoundCollector(
        model_reporters={name: partial(_of_world, name=name) for name in WORLD_FIELDS},
        agent_reporters={"nation": attrgetter("name")} | {name: attrgetter(f"state.{name}") for name in INDICATORS},
    )


def _of_world(model: HasState, name: str) -> float:
    state = model.state
    if name in OUTCOMES:
        return sum(outcome_of(one) == name for one in state.decided)
    weights = state.seen["gdp"] / state.seen["gdp"].sum()
    return float(weights @ state.seen[name])


def rows_of(state: EconomyState, names: Sequence[str], quarter: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a state's last quarter by table.

    Args:
        state: The state at its end.
        names: Names of all nations.
        quarter: The quarter's name.
    """
    round_ = state.world.quarter - 1
    place = {"round": np.full(len(names), round_), "quarter": _same(quarter, len(names))}
    nation = {"nation": _named(range(len(names)), names)}
    tables = {
        "indicators": {**place, **nation, **state.seen, "inflation_quarter": state.world.inflation},
        "decisions": {**place, **nation, **_decisions(state.decided)},
        "verdicts": _verdicts(state.decided, round_, names),
        "trade": _trade(state.world, round_, names),
    }
    chains = [one.chain for one in state.decided if one.chain is not None]
    if chains:
        fields = ("chain_id", "component", "agent_id", "prompt", "action", "reasoning", "confidence")
        told = {name: [getattr(chain, name) for chain in chains] for name in fields}
        thoughts = [thoughts_in_json(chain.thoughts) for chain in chains]
        tables["reasoning"] = {"round": np.array([chain.turn for chain in chains]), **told, "thoughts": thoughts}
    return tables


def _same(text: str, n: int) -> pd.Categorical:
    return pd.Categorical.from_codes([0] * n, [text])


def _named(rows: Sequence[int], names: Sequence[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(list(rows), list(names))


def _decisions(decided: Sequence[Decided]) -> dict[str, Any]:
    return {
        "action": [one.action.action_string for one in decided],
        "confidence": np.array([one.action.policy_decision.confidence for one in decided]),
        "read_by": [one.reading.read_by for one in decided],
        "policy": [str(one.reading.policy) if one.reading.policy is not None else "" for one in decided],
        "measures": [one.reading.policy.model_dump_json() if one.reading.policy else "" for one in decided],
        "outcome": [outcome_of(one) for one in decided],
        "reason": [one.reason for one in decided],
        "reasoning": [one.action.policy_decision.reasoning for one in decided],
        "reasoning_chain_id": [one.action.reasoning_chain_id for one in decided],
    }


def _verdicts(decided: Sequence[Decided], round_: int, names: Sequence[str]) -> dict[str, Any]:
    found = [(one, verdict) for one in decided for verdict in one.judgement.verdicts]

    def text_of(one: Decided, measure: int) -> str:
        policy = one.reading.policy
        return str(policy) if measure < 0 or policy is None else str(policy.measures[measure])

    return {
        "round": np.full(len(found), round_),
        "nation": _named([one.row for one, _ in found], names),
        "measure": np.array([verdict.measure for _, verdict in found], dtype=np.int64),
        "of": pd.Series([text_of(one, verdict.measure) for one, verdict in found], dtype="string"),
        "check": pd.Series([verdict.check for _, verdict in found], dtype="string"),
        "passed": np.array([verdict.passed for _, verdict in found], dtype=np.bool_),
        "reason": pd.Series([verdict.reason for _, verdict in found], dtype="string"),
    }


def _trade(world: World, round_: int, names: Sequence[str]) -> dict[str, Any]:
    importer, exporter = np.nonzero(~np.eye(len(names), dtype=np.bool_))
    return {
        "round": np.full(len(importer), round_),
        "importer": _named(importer.tolist(), names),
        "exporter": _named(exporter.tolist(), names),
        "imports": world.imports[importer, exporter],
        "tariff": world.tariff[importer, exporter],
        "sanction": world.sanction[importer, exporter],
    }
