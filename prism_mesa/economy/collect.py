"""The rows of a quarter, for the DataCollector and for a recorder."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from prism_mesa.economy.llm_agent import thoughts_in_json
from prism_mesa.economy.observation import INDICATORS
from prism_mesa.economy.state import EconomyState, NationDecision
from prism_mesa.economy.tables import OUTCOMES
from prism_mesa.economy.world import World
from prism_mesa.round_model import RoundCollector

WORLD_REPORTERS: Final = ("output_gap", "inflation", "unemployment", *OUTCOMES)


class QuarterRecorder(Protocol):
    """A recorder, which receives a model's records."""

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows, given as columns in order, to a table of `economy.tables`."""


def make_datacollector() -> RoundCollector:
    """Return a model's collector, for indicators of nations, and means and outcomes of the world."""
    return RoundCollector(
        model_reporters={name: partial(_world_mean_or_count, name=name) for name in WORLD_REPORTERS},
        agent_reporters={"nation": attrgetter("name")} | {name: attrgetter(f"state.{name}") for name in INDICATORS},
    )


def _world_mean_or_count(model: Any, name: str) -> float:
    state: EconomyState = model.state
    if name in OUTCOMES:
        return sum(decision.outcome == name for decision in state.decisions)
    weights = state.indicators["gdp"] / state.indicators["gdp"].sum()
    return float(weights @ state.indicators[name])


def quarter_rows(state: EconomyState, names: Sequence[str], quarter: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a state's last quarter, by table; `quarter` is the quarter's name."""
    round_ = state.world.quarter - 1
    identity = {
        "round": np.full(len(names), round_),
        "quarter": pd.Categorical.from_codes([0] * len(names), [quarter]),
        "nation": pd.Categorical.from_codes(range(len(names)), names),
    }
    tables = {
        "indicators": {**identity, **state.indicators, "inflation_quarter": state.world.inflation},
        "decisions": {**identity, **_decision_columns(state.decisions)},
        "verdicts": _verdict_columns(state.decisions, round_, names),
        "trade": _trade_columns(state.world, round_, names),
    }
    chains = [decision.chain for decision in state.decisions if decision.chain is not None]
    if chains:
        fields = ("chain_id", "component", "agent_id", "prompt", "action", "reasoning", "confidence")
        columns = {name: [getattr(chain, name) for chain in chains] for name in fields}
        thoughts = [thoughts_in_json(chain.thoughts) for chain in chains]
        tables["reasoning"] = {"round": np.array([chain.turn for chain in chains]), **columns, "thoughts": thoughts}
    return tables


def _decision_columns(decisions: Sequence[NationDecision]) -> dict[str, Any]:
    actions, policies = [decision.action for decision in decisions], [decision.reading.policy for decision in decisions]
    return {
        "action": [action.action_string for action in actions],
        "confidence": np.array([action.policy_decision.confidence for action in actions]),
        "read_by": [decision.reading.read_by for decision in decisions],
        "policy": ["" if policy is None else str(policy) for policy in policies],
        "measures": ["" if policy is None else policy.model_dump_json() for policy in policies],
        "outcome": [decision.outcome for decision in decisions],
        "reason": [decision.reason for decision in decisions],
        "reasoning": [action.policy_decision.reasoning for action in actions],
        "reasoning_chain_id": [action.reasoning_chain_id for action in actions],
    }


def _verdict_columns(decisions: Sequence[NationDecision], round_: int, names: Sequence[str]) -> dict[str, Any]:
    decision_verdicts = [(decision, verdict) for decision in decisions for verdict in decision.judgement.verdicts]
    verdicts = [verdict for _, verdict in decision_verdicts]
    measured_policies = [(decision.reading.policy, verdict.measure) for decision, verdict in decision_verdicts]
    subjects = [str(policy.measures[index] if policy and index >= 0 else policy) for policy, index in measured_policies]
    return {
        "round": np.full(len(verdicts), round_),
        "nation": pd.Categorical.from_codes([decision.row for decision, _ in decision_verdicts], names),
        "measure": np.array([verdict.measure for verdict in verdicts], dtype=np.int64),
        "of": pd.Series(subjects, dtype="string"),
        "check": pd.Series([verdict.check for verdict in verdicts], dtype="string"),
        "passed": np.array([verdict.passed for verdict in verdicts], dtype=np.bool_),
        "reason": pd.Series([verdict.reason for verdict in verdicts], dtype="string"),
    }


def _trade_columns(world: World, round_: int, names: Sequence[str]) -> dict[str, Any]:
    importer, exporter = np.nonzero(~np.eye(len(names), dtype=np.bool_))
    return {
        "round": np.full(len(importer), round_),
        "importer": pd.Categorical.from_codes(importer, names),
        "exporter": pd.Categorical.from_codes(exporter, names),
        "imports": world.imports[importer, exporter],
        "tariff": world.tariff[importer, exporter],
        "sanction": world.sanction[importer, exporter],
    }
