"""Starting a platform: its world, who decides and writes, and what a user should know about how the input was taken."""

from math import isclose

from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.reasoner import AnyReasoner, asks_llm, make_reasoner
from prism_mesa.social.behavior import chosen_chart
from prism_mesa.social.chart_checks import checked, require_free_names
from prism_mesa.social.content.writer import writer_of
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.platform_agent import PlainAgents
from prism_mesa.social.protocols import RoundRecorder
from prism_mesa.social.round.shortfalls import unlearned
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.warnings import warn
from prism_mesa.social.without_effect import notes_without_effect
from prism_mesa.social.world.build import make_world
from prism_mesa.social.world.kept import KeptWorld
from prism_mesa.statechart import Statechart
from prism_mesa.streams import Streams


def start_platform(
    params: SocialParams,
    *,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    recorder: RoundRecorder | None = None,
    world: KeptWorld | None = None,
) -> Platform:
    """Return the platform of `params`, before its first round.

    Args:
        params: All parameters.
        chart: A chart of your own, as an object; `statechart.chart` names one in a module.
        reasoner: Who answers open choices; None makes the one that the parameters name.
        recorder: Where records go, if anywhere.
        world: What was kept of the world of equal parameters; None: it is drawn.

    Warns:
        NotedWarning: What of the input was left out or taken otherwise than it may have been meant, and which keys
            have no effect. All stands in `notes` too.

    Raises:
        ConfigError: If parameters contradict each other, or a distilled model has learned nothing of what is left open.
        ChartError: If the check of the chart finds an error.
        DataError: If a file cannot be used.
    """
    streams = Streams(params.seed)
    made_world = make_world(params, streams, world)
    known = made_world.attributes.known
    require_free_names(known)
    own_chart, chart_notes = _own_chart(params, chart, known)
    asked = reasoner or make_reasoner(params.asked)
    if not hasattr(asked, "batch_reasoner"):
        raise ConfigError(
            f"SocialModel: reasoner: give a Reasoner, not {reasoner!r:.60}; for an LLM on a server set "
            "reasoner_kind='ollama', reasoner_model='llama3.2'"
        )
    left = unlearned(asked.batch_reasoner, own_chart, known)
    writer, why_not = writer_of(params, asked)
    if asks_llm(asked):
        asked.begin()
    platform = Platform(params, streams, own_chart, asked, made_world, writer, recorder)
    platform.scripts = PlainAgents(platform)
    idle = notes_without_effect(platform, made_world, given=reasoner is not None, chart_given=chart is not None)
    total = sum(platform.llms.shares)
    scaled = "" if isclose(total, 1) else f"reasoner.model: shares add up to {total:g} and are scaled to 1"
    notes = filter(None, [asked.note, why_not, scaled])
    platform.notes += (*left, *notes, *idle, *chart_notes, *_announced(params))
    for said in filter(None, (made_world.misfits, idle)):
        warn("; ".join(said))
    return platform


def _announced(params: SocialParams) -> list[str]:
    return [f"{each.text} (interventions)" for each in params.interventions]


def change_chart(platform: Platform, chart: Statechart) -> None:
    """Let another chart rule; a copy of it, with the settings of the platform.

    Agents in the initial state of the chart before go to that of the new one.

    Raises:
        ChartError: If agents have moved, or the chart's check finds an error.
        ConfigError: If a distilled model has learned nothing of what it leaves open.
    """
    if platform.round >= 0 or platform.history.count.any() or platform.events.moves:
        raise ChartError(
            "SocialModel.chart: agents have moved by the chart before, and their histories tell its triggers: "
            "make a model with it, SocialModel(chart=...)"
        )
    if not isinstance(chart, Statechart):
        raise ChartError(f"SocialModel.chart: {chart!r} is no Statechart")
    known = platform.attributes.known
    before, (new, chart_notes) = platform.chart, _own_chart(platform.params, chart, known)
    answers = platform.reasoner.batch_reasoner
    left, unlearned_before = unlearned(answers, new, known), unlearned(answers, platform.chart, known)
    outdated = (*unlearned_before, *_own_chart(platform.params, before, known)[1])
    platform.go_by(new)
    platform.notes = (*(note for note in platform.notes if note not in outdated), *left, *chart_notes)
    platform.population.state[platform.population.state == before.initial.code] = new.initial.code


def _own_chart(params: SocialParams, chart: Statechart | None, known: Attributes) -> tuple[Statechart, tuple[str, ...]]:
    """Return the chart, or else that of the parameters, with settings and counts of its own, and notes on it.

    Raises:
        ChartError: If its check finds an error; fields that agents may yet get are left to `require_agent_fields`.
    """
    own = chosen_chart(params.statechart, asks_action=params.reasoner.asks_action, chart=chart)
    if chart is None and not params.statechart.chart:  # PRISM's own charts are tested
        return own, ()
    glances = [params.feed.glances, *(one.set.get("feed.glances", 1) for one in params.interventions)]
    return own, checked(own, WalkTables(own, known), known.fields, glances)
