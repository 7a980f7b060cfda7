"""Start a platform: make its world, chart, reasoner and writer, and notes on how the input was read."""

import contextlib
import warnings
from importlib.util import find_spec
from math import isclose
from pathlib import Path
from typing import Final

import numpy as np

from prism_mesa.errors import ChartError, ConfigError, NotedWarning
from prism_mesa.kernels.compiling import compile_ahead
from prism_mesa.reasoner import AnyReasoner, asks_llm, make_reasoner
from prism_mesa.social.behavior import ABANDONS, configure_chart, make_account_chart, with_abandoning
from prism_mesa.social.chart_checks import check_chart, require_free_names
from prism_mesa.social.content.writer import choose_writer
from prism_mesa.social.fields import REGISTERS
from prism_mesa.social.params import SocialParams
from prism_mesa.social.params.accounts import AccountParams
from prism_mesa.social.platform import Platform, RoundRecorder
from prism_mesa.social.platform_agent import PlainAgents
from prism_mesa.social.round.acts import check_acts, try_acts
from prism_mesa.social.round.choices import unlearned_notes
from prism_mesa.social.round.walk_tables import VOLATILE, WalkTables
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.without_effect import ModelFacts, notes_without_effect
from prism_mesa.social.world.accounts import own_chart, read_conditions
from prism_mesa.social.world.build import KeptWorld, make_world
from prism_mesa.statechart import Statechart
from prism_mesa.statechart.checks import suggest_field
from prism_mesa.streams import Streams

_mesa = find_spec("mesa")  # not imported, because a platform does not need Mesa
_SKIPPED_PATHS: Final = (
    str(Path(__file__).parent.parent),
    *(_mesa.submodule_search_locations or () if _mesa else ()),
    contextlib.__file__.removesuffix(".py"),  # Python 3.12 does not treat a whole name as a prefix
)
"""Paths whose code warnings skip, so that they point at the user's line."""


def warn(text: str) -> None:
    """Warn with a text that the platform's notes or the run's summary also has."""
    warnings.warn(f"SocialModel: {text}", NotedWarning, skip_file_prefixes=_SKIPPED_PATHS)


def start_platform(
    params: SocialParams,
    *,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    recorder: RoundRecorder | None = None,
    world: KeptWorld | None = None,
) -> Platform:
    """Return a platform from `params`, before its first round.

    See `SocialModel` for the arguments and warnings.

    Raises:
        ConfigError: If parameters contradict each other, or a distilled model knows none of the open choices.
        ChartError: If the chart's check finds an error.
        DataError: If a file cannot be used.
    """
    compile_ahead()
    streams = Streams(params.seed)
    drawn_world = make_world(params, streams, world)
    attributes = drawn_world.attributes.schema
    require_free_names(attributes, params.interventions)
    check_acts(params, attributes)
    charts, chart_notes = _choose_charts(params, chart, attributes)
    chosen_reasoner = reasoner or make_reasoner(params.combined_reasoner)
    if not hasattr(chosen_reasoner, "batch_reasoner"):
        raise ConfigError(
            f"SocialModel: reasoner: pass a Reasoner, not {reasoner!r:.60}; for an LLM on a server set "
            "reasoner_kind='ollama', reasoner_model='llama3.2'"
        )
    learning_notes = [note for c in charts for note in unlearned_notes(chosen_reasoner.batch_reasoner, c, attributes)]
    writer, writer_note = choose_writer(params, chosen_reasoner)
    if asks_llm(chosen_reasoner):
        chosen_reasoner.begin()
    platform = Platform(params, streams, charts, chosen_reasoner, drawn_world, writer, recorder)
    platform.agent_objects = PlainAgents(platform)
    try_acts(platform)
    facts = ModelFacts(platform, drawn_world, has_own_reasoner=reasoner is not None, has_own_chart=chart is not None)
    effect_notes = notes_without_effect(platform, facts)
    total = sum(platform.llms.shares)
    scaling_note = "" if isclose(total, 1) else f"reasoner.model: shares add up to {total:g} and are scaled to 1"
    notes = filter(None, [chosen_reasoner.note, writer_note, scaling_note])
    world_notes = [f"{account.text} (accounts)" for account in params.accounts]
    world_notes += [f"{act.text} (interventions)" for act in params.interventions]
    platform.notes += (*dict.fromkeys(learning_notes), *notes, *effect_notes, *chart_notes, *world_notes)
    for texts in filter(None, (drawn_world.input_warnings, effect_notes)):
        warn("; ".join(texts))
    return platform


def change_chart(platform: Platform, chart: Statechart) -> None:
    """Use a copy of another chart (see `SocialModel.chart`)."""
    if platform.round >= 0 or platform.history.count.any() or platform.events.moves:
        raise ChartError(
            "SocialModel.chart: agents have moved, and their histories hold triggers of the old chart: "
            "make a new model, SocialModel(chart=...)"
        )
    if not isinstance(chart, Statechart):
        raise ChartError(f"SocialModel.chart: {chart!r} is not a Statechart")
    if chart.members != platform.states:
        raise ChartError("SocialModel.chart: it has other states: make a new model, SocialModel(chart=...)")
    attributes, decider = platform.attributes.schema, platform.reasoner.batch_reasoner
    rows, states = np.arange(len(platform.population)), platform.population.state
    is_initial = states == platform.initial_codes(rows)
    charts, chart_notes = _choose_charts(platform.params, chart, attributes)
    _, old_notes = _choose_charts(platform.params, platform.charts[0], attributes)
    old_notes += unlearned_notes(decider, platform.charts[0], attributes)
    kept_notes = (note for note in platform.notes if note not in old_notes)
    platform.notes = (*kept_notes, *unlearned_notes(decider, charts[0], attributes), *chart_notes)
    platform.set_charts(charts)
    states[is_initial] = platform.initial_codes(rows[is_initial])


def _choose_charts(
    params: SocialParams, chart: Statechart | None, attributes: Attributes
) -> tuple[list[Statechart], list[str]]:
    first, first_notes = _choose_chart(params, chart, attributes)
    charts, notes = [first], [*first_notes]
    for kind, account in enumerate(params.accounts):
        _check_conditions(kind, account, attributes)
        account_chart = own_chart(params, kind)
        if account_chart is not None and not account.engages:
            account_chart, account_notes = _choose_chart(params, account_chart, attributes)
            notes += account_notes
        charts.append(account_chart or first)
    return charts, notes


def _check_conditions(kind: int, account: AccountParams, attributes: Attributes) -> None:
    known = sorted({*REGISTERS, *attributes.fields} - VOLATILE)
    for action, condition in read_conditions(account).items():
        where = f"accounts: {kind}: engages.{action}"
        for name in sorted(condition.fields - {*known}):
            raise ConfigError(f"{where}: {name} cannot be read.{suggest_field(name, known)}")
        if not WalkTables(make_account_chart({action: condition}, account.name), attributes).is_complete:
            raise ConfigError(f"{where}: {condition}: compares texts by order, or has numbers that are too large")


def _choose_chart(
    params: SocialParams, chart: Statechart | None, attributes: Attributes
) -> tuple[Statechart, tuple[str, ...]]:
    chart_copy = configure_chart(params.statechart, asks_action=params.reasoner.asks_action, chart=chart)
    if chart is None and not params.statechart.chart:  # tests check PRISM's charts
        return chart_copy, ()
    notes, own_chart = list[str](), chart_copy
    if any(act.label or act.friction for act in params.interventions):
        chart_copy = with_abandoning(own_chart)
    if chart_copy is not own_chart:
        notes.append(f"chart {chart_copy.name}: {ABANDONS} was added: agents that give up an action scroll on")
    glances = [params.feed.glances, *(act.set.get("feed.glances", 1) for act in params.interventions)]
    tables = WalkTables(chart_copy, attributes)
    if not tables.is_complete and any(act.label and act.label.effect is None for act in params.interventions):
        notes.append("label.effect: null: no effect where guards in Python decide (docs/charts.md)")
    return chart_copy, (*notes, *check_chart(chart_copy, tables, attributes.fields, glances))
