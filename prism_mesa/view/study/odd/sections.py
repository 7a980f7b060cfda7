"""The ODD protocol of a configured model: the seven elements of Grimm et al. 2020, doi:10.18564/jasss.4259.

The text comes from the configuration, the chart, and the docstrings of the round's steps, of agent fields, and of
groups of parameters.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic.fields import FieldInfo

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.params import Params
from prism_mesa.runs.config import Config
from prism_mesa.runs.recorded import OWN_PACKAGE
from prism_mesa.social.behavior import chosen_chart
from prism_mesa.social.round import run_round
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.population import Population
from prism_mesa.statechart import STATES, TIMEOUT, Statechart, draw_chart
from prism_mesa.studies.design.study_design import Worlds, condition_configs
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.blocks import Block, Code, Column, Facts, Paragraph, Picture, Section, Words, marked, table
from prism_mesa.view.study.contents import is_sampled, measure_title, measures_in_order
from prism_mesa.view.study.design import changed_keys
from prism_mesa.view.study.markdown import sections_as_markdown
from prism_mesa.view.study.numbers import level
from prism_mesa.view.study.odd import words
from prism_mesa.view.study.odd.arms import merged_sections

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEP: Final = re.compile(r"^\d+\. (\w+): (.*)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"^        (\w+): (.*(?:\n            .*)*)", re.MULTILINE)
PURPOSE: Final = (
    "The model simulates how people on a social platform see, judge and pass on posts, to learn what a platform's "
    "rules and its users' decisions do to what spreads"
)
_NOT_DESCRIBED: Final = frozenset("ids names scripted feed n_feed current_match attributes numbers".split())


def odd_section(result: StudyResult) -> Section:
    """Return the ODD protocol of a study's models: what its arms share, and what each changes."""
    runs, levels = result.table.runs, result.values.get("vary")
    if is_sampled(result.table) or not levels:
        factors = () if is_sampled(result.table) else result.table.factors
        levels = {factor: runs[factor].drop_duplicates().tolist() for factor in factors}
    try:
        worlds = condition_configs(result.base, result.values, levels)
    except ConfigError:  # a table of sampled points cannot hold every type of level
        worlds = condition_configs(result.base, result.values, {})
    varied = changed_keys(result)
    source = b.Link("Grimm et al. 2020", "https://doi.org/10.18564/jasss.4259")
    intro = ("The model as this study configures it, by the ODD protocol (", source, "). ")
    varying: tuple[b.Part, ...] = ("All runs have this configuration; only their seeds differ.",)
    if varied:
        what = "What all runs share is said once; the arms and factors of the study change "
        varying = (what, *b.code_list(varied), ".")
    parts = (_purpose(result), *sections_of_worlds(worlds, varied))
    return Section("odd", "The model (ODD protocol)", (Paragraph((*intro, *varying)),), parts)


def sections_of_worlds(worlds: Worlds, varied: Collection[str], *, load: bool = True) -> tuple[Section, ...]:
    """Return the elements of the protocol from the second on, for all configurations of a study.

    Args:
        worlds: The configurations.
        varied: Dotted keys that the study changes.
        load: Whether to import the user's modules, which hold charts and feeds.
    """
    charts = {arm: _chart(config, load=load) for arm, config in worlds.items()}
    return merged_sections({arm: odd_sections(worlds[arm], charts[arm], varied, load=load) for arm in worlds})


def _chart(config: Config, *, load: bool) -> Statechart | str:
    """Return the chart that a configuration names, or the reason why it is not loaded."""
    where = config.statechart.chart
    if where is not None and not where.startswith(OWN_PACKAGE) and not load:
        return f"The chart is {where}, a module of the user's own, which is not loaded here."
    try:
        return chosen_chart(config.statechart, asks_action=config.reasoner.asks_action)
    except PrismError as error:  # the user's module may be missing here
        return str(error)


def odd_sections(
    config: Config, chart: Statechart | str, varied: Collection[str] = (), *, load: bool = True
) -> tuple[Section, ...]:
    """Return the elements of the protocol from the second on, for one configuration and its chart.

    Args:
        config: The configuration.
        chart: Its chart, or a text that says why it is not available.
        varied: Dotted keys that a study changes.
        load: Whether modules of a user's own may be imported, to say what is in them.
    """
    return (
        _entities(config),
        _process(config, chart),
        Section("odd-concepts", "4. Design concepts", (Facts(tuple(words.design_concepts(config))),)),
        _initialization(config),
        Section("odd-input", "6. Input data", (_input(config),)),
        _submodels(config, varied, load=load),
    )


def _purpose(result: StudyResult) -> Section:
    names = measures_in_order(result)
    more = (f"and {len(names) - 12:,} more",) if len(names) > 12 else ()
    return Section(
        "odd-purpose",
        "1. Purpose and patterns",
        (
            Paragraph(f"{PURPOSE}. This study asks: {result.question}"),
            Paragraph("The patterns by which it is judged are the measures of the study:"),
            b.Bullets((*map(measure_title, names[:12]), *more)),
        ),
    )


def _entities(config: Config) -> Section:
    fields = _ATTRIBUTE.findall(Population.__doc__ or "")
    agents = [
        (Code(name), words.POPULATION.get(name) or marked(" ".join(text.split())))
        for name, text in fields
        if name not in _NOT_DESCRIBED
    ]
    agents += [(Code(f.name), f"{f.meaning} ({f.unit})") for f in AGENT_FIELDS.values()]
    posts = [(marked(names), text) for names, text in words.POST_FIELDS.items()]
    groups = [
        b.Group(f"of {'an' if of == 'agent' else 'a'} {of}", (*rows, *_declared_attributes(config, of)))
        for of, rows in (("agent", agents), ("post", posts))
    ]
    minutes = config.clock.round_minutes
    kind = "edges" if config.network.edges else config.network.kind
    scales = (
        ("Agents", f"{config.agents.n:,}; each is a user of the platform and a statechart over {len(STATES)} states"),
        ("Network", f"who follows whom, directed: {words.NETWORKS[kind]}"),
        (
            "Posts",
            f"texts with a vector of {config.posts.n_topics} topics, an author, a round, counts of likes, replies and "
            "reshares; a reshare belongs to the cascade of the post it goes back to",
        ),
        ("Time", f"{config.rounds:,} rounds of {minutes:g} simulated minutes, {config.ticks_per_round:,} ticks each"),
        ("Space", "none but the network"),
    )
    variables = b.Table((Column("state variable"), Column("meaning", long=True)), tuple(groups))
    return Section("odd-entities", "2. Entities, state variables, and scales", (Facts(scales), variables))


def _candidates(config: Config) -> str:
    """Return the other sources of a feed than followed agents; empty if there are none."""
    kinds = (
        ("out_of_network", "drawn from outside the network"),
        ("two_hops", "from two hops away"),
        ("trending", "trending"),
        ("search", "found by a search for a topic of interest"),
    )
    candidates, slots = config.feed.candidates, config.feed.slots
    added = [f"{getattr(candidates, key)} {source}" for key, source in kinds if getattr(candidates, key)]
    text = f", with up to {', '.join(added)}" if added else ""
    text += "" if candidates.followed is None else f", of followed agents the {candidates.followed} newest"
    in_slots = [f"{getattr(slots, key)} {source}" for key, source in kinds[2:] if getattr(slots, key)]
    return text + (f", each {slots.every}th place for posts in slots: {', '.join(in_slots)}" if in_slots else "")


def _declared_attributes(config: Config, of: str) -> list[tuple[Words, Words]]:
    """Return the declared attributes and the source of their values."""
    return [(Code(name), f"declared: {params.text}") for name, params in config.attributes.items() if params.of == of]


def _process(config: Config, chart: Statechart | str) -> Section:
    paragraphs = [" ".join(part.split()) for part in (run_round.__doc__ or "").split("\n\n")]
    lines = re.split(r" (?=\d+\. )", next((part for part in paragraphs if _STEP.match(part)), ""))
    steps = [step for line in lines if (step := _STEP.match(line))]
    rows = [(str(n), Code(step[1]), marked(step[2])) for n, step in enumerate(steps, 1)]
    columns = (Column("", number=True), Column("step"), Column("what happens", long=True))
    blocks = (
        Paragraph("A round has these steps, in this order:"),
        table(columns, rows),
        Paragraph(marked(paragraphs[-1])),
        *([Paragraph(chart, note=True)] if isinstance(chart, str) else _transitions(config, chart)),
    )
    return Section("odd-process", "3. Process overview and scheduling", blocks)


def _transitions(config: Config, chart: Statechart) -> list[Block]:
    """Return the chart as a figure and a table of transitions."""
    rows: list[b.Row] = []
    chooses = "the oracle chooses" if chart.oracle_enabled else "the first target in this list is taken"
    for transition in sorted(chart.transitions, key=lambda transition: STATES.index(transition.source)):
        ticks = chart.timeouts.get(transition.source)
        trigger = transition.trigger + (f" after {ticks} ticks" if ticks and transition.trigger == TIMEOUT else "")
        target: Words = Code(transition.target.value) if transition.target else f"open: {chooses}"
        guard = transition.guard_label
        otherwise = "else" if chart.cells[transition.trigger][transition.source].arms else ""
        rows.append((Code(transition.source.value), Code(trigger), Code(guard) if guard else otherwise, target))
    columns = (Column("in state"), Column("trigger"), Column("if"), Column("goes to"))
    ticks = config.statechart.default_timeout_ticks
    caption = (
        "Without ticks of its own, a state times out after the agent's "
        f"threshold ({ticks} ticks by default). An unguarded row beside guarded ones means else."
    )
    picture = "The statechart of every agent; where a diamond stands, the chart leaves the choice open."
    return [
        Picture("statechart", picture, _Drawing(tuple(rows), chart)),
        b.Fold("All transitions", (table(columns, rows, caption),)),
    ]


@dataclass(frozen=True)
class _Drawing:
    """Draws a chart. Two drawings are equal if their transitions are."""

    rows: tuple[b.Row, ...]
    chart: Statechart = field(compare=False)

    @cache  # noqa: B019 - a chart is slow to lay out, and few are drawn
    def __call__(self) -> "Figure":
        return draw_chart(self.chart)


def _initialization(config: Config) -> Section:
    p = config.agents
    profiles = f"read from {p.profiles}" if p.profiles else "drawn from the seed, agent by agent"
    facts: tuple[tuple[str, Words], ...] = (
        ("Agents", f"all idle; interests, personality, thresholds, activity and propensities {profiles}"),
        (
            "Thresholds",
            f"of engagement: mean {p.threshold_mean:g}, sd {p.threshold_sd:g}; the band around it is {p.band:g} wide",
        ),
        ("Activity", words.activity(config)),
        ("Network", words.network(config)),
        ("Posts", "none before the first round"),
        ("Seed", "the same seed makes the same agents, network and texts in every arm that does not change them"),
    )
    return Section("odd-initialization", "5. Initialization", (Facts(facts),))


def _input(config: Config) -> Block:
    rows = [(Code(key), Code(path), content) for key, path, content in words.input_files(config)]
    if rows:
        return table((Column("key"), Column("file"), Column("what it holds")), rows)
    return Paragraph(
        "No files: the network and the agents are drawn, and the texts are those that come with PRISM. Nothing from "
        "outside enters while rounds are run."
    )


def _submodels(config: Config, varied: Collection[str], *, load: bool) -> Section:
    r = config.reasoner.rule
    facts: tuple[tuple[str, Words], ...] = (
        (
            "Feed",
            f"up to {config.feed.size} posts of the last {config.feed.window} rounds that the reader has not read"
            f"{' from this sharer, nor engaged with' * config.feed.repeats}: "
            f"{words.feed_order(config.feed.mode, load=load)}{_candidates(config)}",
        ),
        ("Relevance", "(1 + cosine of the post's topics and the agent's interests) / 2, from 0 to 1"),
        ("Utility", words.utility(config)),
        (
            "Judging a post",
            "ignored if its utility is below the agent's band, engaged with above it; inside the band the choice is "
            f"open. The band is {config.agents.band:g} wide around the agent's threshold"
            if config.statechart.chart is None
            else f"as the transitions of {config.statechart.chart} from evaluating have it",
        ),
        ("Open choices", words.decided_by(config)),
        (
            "The rule",
            f"P(engage) = logistic of -0.33 + {r.slope:g} x place in the band + {r.velocity:g} x log(1 + velocity) "
            f"+ {r.media:g} if there are media + weights of personality (reasoner/rule.py has their source)",
        ),
        (
            "Engaging",
            f"as the transitions of {config.statechart.chart} from composing have it"
            if config.statechart.chart is not None
            else "like, reply or reshare, drawn from the agent's propensities"
            if not config.reasoner.asks_action
            else "like, reply or reshare, which the oracle is asked for",
        ),
        *([("Homophily", alike)] if (alike := words.homophily(config)) else []),
        *([("Network", words.network_dynamics(config))] if config.network.dynamics == "live" else []),
        *([("Opinions", moved)] if (moved := words.opinions(config)) else []),
        *([("Interventions", words.interventions(config, load=load))] if config.interventions else []),
        ("Words", words.writing(config)),
    )
    blocks = (Facts(facts), *changed_parameters(config, varied), all_parameters(config, varied))
    return Section("odd-submodels", "7. Submodels and parameters", blocks)


_COLUMNS: Final = (Column("key"), Column("value"), Column("meaning", long=True))
_NOT_OF_THE_MODEL: Final = frozenset({"name", "seed", "threads"})


def changed_parameters(config: Config, varied: Collection[str]) -> tuple[Block, ...]:
    """Return the parameters that differ from their defaults."""
    rows = [
        _parameter_row(key, info, value, varied)
        for key, info, value in _leaves(config)
        if key not in _NOT_OF_THE_MODEL and (value != _default(info) or key in varied)
    ]
    if not rows:
        return (Paragraph("All parameters have their default values."),)
    return Paragraph("What is not the default in the base, or is changed by the study:"), table(_COLUMNS, rows)


def all_parameters(config: Config, varied: Collection[str]) -> Block:
    """Return a folded table of all parameters, by group of keys."""
    groups: dict[str, list[b.Row]] = {}
    for key, info, value in _leaves(config):
        groups.setdefault(key.rpartition(".")[0], []).append(_parameter_row(key, info, value, varied))
    titled = tuple(b.Group(_group_title(config, name), tuple(rows)) for name, rows in groups.items())
    return b.Fold("All parameters", (b.Table(_COLUMNS, titled),))


def _group_title(config: Config, group: str) -> Words:
    """Return the title of a group of keys: its name and the first line of its docstring."""
    if not group:
        return "The run"
    params: Any = config
    for name in group.split("."):
        params = getattr(params, name)
    return Code(group), b.Quiet(f"  {(type(params).__doc__ or '').strip().partition('\n')[0]}")


def _leaves(params: Params, prefix: str = "") -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield (dotted key, field, value), group by group."""
    groups: list[tuple[str, Params]] = []
    for name, info in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, Params):
            groups.append((f"{prefix}{name}.", value))
        else:
            yield f"{prefix}{name}", info, value
    for deeper, group in groups:
        yield from _leaves(group, deeper)


def _default(info: FieldInfo) -> Any:
    return info.get_default(call_default_factory=True)


def _parameter_row(key: str, info: FieldInfo, value: Any, varied: Collection[str]) -> b.Row:
    shown: tuple[b.Part, ...] = (Code(_as_configured(value)),)
    if value != _default(info):
        shown = b.Strong(_as_configured(value)), b.Quiet(f"  default {_as_configured(_default(info))}")
    return Code(key), (*shown, *([b.Quiet("  varies")] if key in varied else [])), info.description or ""


def _as_configured(value: Any) -> str:
    """Return a value as in a configuration file; groups omit keys with default values."""
    return b.brief(_without_defaults(value) if isinstance(value, Mapping | list | tuple) else level(value), 80)


def _without_defaults(value: Any) -> Any:
    if isinstance(value, Params):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Mapping):
        return {key: _without_defaults(part) for key, part in value.items()}
    return [_without_defaults(part) for part in value] if isinstance(value, list | tuple) else value


def odd_text(worlds: Worlds, varied: Collection[str] = (), question: str = "", *, load: bool = False) -> str:
    """Return the ODD protocol of a run or a study as Markdown, without pictures.

    Args:
        worlds: The configurations; for a run a single one with an empty name.
        varied: Dotted keys that a study changes.
        question: The study's question; empty for a single run.
        load: Whether to import the user's modules, which hold charts and feeds.
    """
    asks = f" This study asks: {question}" if question else ""
    purpose = Section("odd-purpose", "1. Purpose and patterns", (Paragraph(f"{PURPOSE}.{asks}"),))
    sections = (purpose, *sections_of_worlds(worlds, varied, load=load))
    intro = "The model as it is configured, by the ODD protocol (Grimm et al. 2020, doi:10.18564/jasss.4259)."
    without_pictures = (
        replace(section, blocks=tuple(block for block in section.blocks if not isinstance(block, Picture)))
        for section in sections
    )
    return f"# The model (ODD protocol)\n\n{intro}\n\n{sections_as_markdown(without_pictures)}\n"
