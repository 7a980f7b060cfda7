"""PRISM on Mesa: social platforms whose agents are statecharts, and nations; an LLM decides only what is left open."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prism_mesa.api import run, run_economy
    from prism_mesa.domain import Post
    from prism_mesa.economy.model import EconomyModel
    from prism_mesa.errors import ChartError, ConfigError, DataError, PrismError
    from prism_mesa.llm import Ledger, OllamaChatClient
    from prism_mesa.reasoner import Reasoner, RuleReasoner
    from prism_mesa.runs.config import Config, load_config
    from prism_mesa.runs.lifecycle import RunResult
    from prism_mesa.runs.run_files import read_manifest, read_table
    from prism_mesa.social.agent import SocialAgent
    from prism_mesa.social.cascades import cascades
    from prism_mesa.social.model import SocialModel
    from prism_mesa.statechart import (
        NEEDS_ORACLE,
        AgentState,
        F,
        Statechart,
        StateTransition,
        Transition,
        agents_in_state,
        draw_chart,
        export_agent,
        state_distribution,
    )
    from prism_mesa.view.economy_plots import draw_economy
    from prism_mesa.view.plots import draw_distilled, draw_run, draw_survey

_HOMES = {
    "api": ("run", "run_economy"),
    "economy.model": ("EconomyModel",),
    "errors": ("ChartError", "ConfigError", "DataError", "PrismError"),
    "runs.config": ("Config", "load_config"),
    "runs.lifecycle": ("RunResult",),
    "runs.run_files": ("read_manifest", "read_table"),
    "view.plots": ("draw_distilled", "draw_run", "draw_survey"),
    "view.economy_plots": ("draw_economy",),
    "llm": ("Ledger", "OllamaChatClient"),
    "reasoner": ("Reasoner", "RuleReasoner"),
    "domain": ("Post",),
    "social.agent": ("SocialAgent",),
    "social.cascades": ("cascades",),
    "social.model": ("SocialModel",),
    "statechart": (
        "NEEDS_ORACLE",
        "AgentState",
        "F",
        "StateTransition",
        "Statechart",
        "Transition",
        "agents_in_state",
        "draw_chart",
        "export_agent",
        "state_distribution",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "NEEDS_ORACLE",
    "AgentState",
    "ChartError",
    "Config",
    "ConfigError",
    "DataError",
    "EconomyModel",
    "F",
    "Ledger",
    "OllamaChatClient",
    "Post",
    "PrismError",
    "Reasoner",
    "RuleReasoner",
    "RunResult",
    "SocialAgent",
    "SocialModel",
    "StateTransition",
    "Statechart",
    "Transition",
    "agents_in_state",
    "cascades",
    "draw_chart",
    "draw_distilled",
    "draw_economy",
    "draw_run",
    "draw_survey",
    "export_agent",
    "load_config",
    "read_manifest",
    "read_table",
    "run",
    "run_economy",
    "state_distribution",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``prism --help`` need not load Mesa and pandas."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'prism_mesa' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"prism_mesa.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not: what completion in a notebook offers."""
    return list(__all__)
