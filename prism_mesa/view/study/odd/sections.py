"""The ODD protocol of a study's model as configured: seven elements, after Grimm et al. 2020, doi:10.18564/jasss.4259.

What it says comes from the configuration, the chart, and docstrings: the steps of a round, the fields of agents, the
groups of parameters.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.runs.config import Config
from prism_mesa.runs.recorded import OWN_PACKAGE
from prism_mesa.social.behavior import chosen_chart
from prism_mesa.social.round import run_round
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.population import Population
from prism_mesa.statechart import STATES, TIMEOUT, Statechart, draw_chart
from prism_mesa.studies.design.study_design import Worlds, condition_configs
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import (
    Block,
    Bullets,
    Code,
    Column,
    Facts,
    Fold,
    Group,
    Link,
    Paragraph,
    Part,
    Picture,
    Section,
    Table,
    Words,
    marked,
    table,
)
from prism_mesa.view.study.contents import is_sampled, measure_title, measures_in_order
from prism_mesa.view.study.design import changed_keys
from prism_mesa.view.study.odd.arms import merged_sections
from prism_mesa.view.study.odd.concepts import design_concepts
from prism_mesa.view.study.odd.parameters import changed_parameters, parameter_tables
from prism_mesa.view.study.odd.words import (
    NETWORKS,
    POPULATION,
    POST_FIELDS,
    activity_of,
    decided_by,
    dynamics_of,
    feed_order,
    homophily_of,
    input_files,
    interventions_of,
    network_of,
    opinions_of,
    utility_of,
    writing_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEP: Final = re.compile(r"^\d+\. (\w+): (.*)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"^        (\w+): (.*(?:\n            .*)*)", re.MULTILINE)
PURPOSE: Final = (
    "The model simulates how people on a social platform see, judge and pass on posts, to learn what a platform's "
    "rules and its users' decisions do to what spreads"
)
_BOOKKEEPING: Final = frozenset("ids names scripted feed n_feed current_match".split())


def odd_section(result: StudyResult) -> Section:
    """Return the ODD protocol of the models that a study runs: what its arms share, and what each of them changes."""
    runs, levels = result.table.runs, result.values.get("vary")
    if is_sampled(result.table) or not levels:
        factors = () if is_sampled(result.table) else result.table.factors
        levels = {factor: runs[factor].drop_duplicates().tolist() for factor in factors}
    try:
        worlds = condition_configs(result.base, result.values, levels)
    except ConfigError:  # a table of points cannot hold every kind of level
        worlds = condition_configs(result.base, result.values, {})
    varied = changed_keys(result)
    source = Link("Grimm et al. 2020", "https://doi.org/10.18564/jasss.4259")
    said: tuple[Part, ...] = ("The model as this study configures it, by the ODD protocol (", source, "). ")
    parts = (_purpose(result), *sections_of_worlds(worlds, varied))
    return Section("odd", "The model (ODD protocol)", (Paragraph((*said, *_what_varies(varied))),), parts)


def _what_varies(varied: Collection[str]) -> list[Part]:
    if not varied:
        return ["All runs have this configuration; only their seeds differ."]
    parts: list[Part] = ["What all runs share is said once; the arms and factors of the study change "]
    for key in varied:
        parts += [Code(key), ", "]
    return [*parts[:-1], "."]


def sections_of_worlds(worlds: Worlds, varied: Collection[str], *, load: bool = True) -> tuple[Section, ...]:
    """Return the elements of the protocol from the second on, of all configurations of a study.

    Args:
        worlds: The configurations.
        varied: Dotted keys that the study changes.
        load: Whether modules of a user's own, which hold charts and feeds, may be imported.
    """
    charts = {arm: _chart(config, load=load) for arm, config in worlds.items()}
    return merged_sections({arm: odd_sections(worlds[arm], charts[arm], varied, load=load) for arm in worlds})


def _chart(config: Config, *, load: bool) -> Statechart | str:
    """Return the chart that a configuration names, or why it is not loaded."""
    where = config.statechart.chart
    if where is not None and not where.startswith(OWN_PACKAGE) and not load:
        return f"The chart is {where}, a module of the user's own, which is not loaded here."
    try:
        return chosen_chart(config.statechart, asks_action=config.reasoner.asks_action)
    except PrismError as error:  # a user's module may be missing where the report is written
        return str(error)


def odd_sections(
    config: Config, chart: Statechart | str, varied: Collection[str] = (), *, load: bool = True
) -> tuple[Section, ...]:
    """Return the elements of the protocol from the second on, which a configuration and its chart settle.

    Args:
        config: The configuration.
        chart: Its chart; a text says why there is none to be had.
        varied: Dotted keys that a study changes.
        load: Whether modules of a user's own may be imported, to say what is in them.
    """
    return (
        _entities(config),
        _process(config, chart),
        Section("odd-concepts", "4. Design concepts", (Facts(tuple(design_concepts(config))),)),
        _initialization(config),
        Section("odd-input", "6. Input data", tuple(_input(config))),
        _submodels(config, varied, load=load),
    )


def _purpose(result: StudyResult) -> Section:
    names = measures_in_order(result)
    rows: list[Words] = [measure_title(name) for name in names[:12]]
    if len(names) > 12:
        rows.append(f"and {len(names) - 12:,} more")
    return Section(
        "odd-purpose",
        "1. Purpose and patterns",
        (
            Paragraph(f"{PURPOSE}. This study asks: {result.question}"),
            Paragraph("The patterns by which it is judged are the measures of the study:"),
            Bullets(tuple(rows)),
        ),
    )


def _entities(config: Config) -> Section:
    fields = _ATTRIBUTE.findall(Population.__doc__ or "")
    told = {name: marked(" ".join(text.split())) for name, text in fields if name not in _BOOKKEEPING}
    agents: tuple[tuple[Words, Words], ...] = tuple(
        (Code(name), POPULATION.get(name, text)) for name, text in told.items() if name not in ("attributes", "numbers")
    )
    agents += tuple((Code(f.name), f"{f.meaning} ({f.unit})") for f in AGENT_FIELDS.values())
    posts: tuple[tuple[Words, Words], ...] = tuple((marked(names), text) for names, text in POST_FIELDS.items())
    agents += _declared(config, "agent")
    posts += _declared(config, "post")
    minutes = config.clock.round_minutes
    kind = "edges" if config.network.edges else config.network.kind
    scales = (
        ("Agents", f"{config.agents.n:,}; each is a user of the platform and a statechart over {len(STATES)} states"),
        ("Network", f"who follows whom, directed: {NETWORKS[kind]}"),
        (
            "Posts",
            f"texts with a vector of {config.posts.n_topics} topics, an author, a round, counts of likes, replies and "
            "reshares; a reshare belongs to the cascade of the post it goes back to",
        ),
        ("Time", f"{config.rounds:,} rounds of {minutes:g} simulated minutes, {config.ticks_per_round:,} ticks each"),
        ("Space", "none but the network"),
    )
    blocks: tuple[Block, ...] = (
        Facts(scales),
        Table(
            (Column("state variable"), Column("meaning", long=True)),
            (Group("of an agent", agents), Group("of a post", posts)),
        ),
    )
    return Section("odd-entities", "2. Entities, state variables, and scales", blocks)


def _candidates(config: Config) -> str:
    """Return what else feeds are made of, in words; nothing if they are of all posts of followed agents."""
    kinds = (
        ("out_of_network", "drawn from outside the network"),
        ("two_hops", "from two hops away"),
        ("trending", "trending"),
        ("search", "found by a search for a topic of interest"),
    )
    own, slots = config.feed.candidates, config.feed.slots
    told = [f"{getattr(own, key)} {said}" for key, said in kinds if getattr(own, key)]
    found = f", with up to {', '.join(told)}" if told else ""
    found += "" if own.followed is None else f", of followed agents the {own.followed} newest"
    in_slots = [f"{getattr(slots, key)} {said}" for key, said in kinds[2:] if getattr(slots, key)]
    return found + (f", each {slots.every}th place for posts in slots: {', '.join(in_slots)}" if in_slots else "")


def _declared(config: Config, of: str) -> tuple[tuple[Words, Words], ...]:
    """Return the attributes that the configuration declares, and where their values come from."""
    own = {name: params for name, params in config.attributes.items() if params.of == of}
    return tuple((Code(name), f"declared: {params.said}") for name, params in own.items())


def _process(config: Config, chart: Statechart | str) -> Section:
    paragraphs = [" ".join(part.split()) for part in (run_round.__doc__ or "").split("\n\n")]
    listed = re.split(r" (?=\d+\. )", next((part for part in paragraphs if _STEP.match(part)), ""))
    steps = [found for line in listed if (found := _STEP.match(line))]
    rows: list[tuple[Words, ...]] = [(str(n), Code(step[1]), marked(step[2])) for n, step in enumerate(steps, 1)]
    columns = (Column("", number=True), Column("step"), Column("what happens", long=True))
    blocks: list[Block] = [Paragraph("A round has these steps, in this order:"), table(columns, rows)]
    blocks.append(Paragraph(marked(paragraphs[-1])))
    blocks += [Paragraph(chart, note=True)] if isinstance(chart, str) else _transitions(config, chart)
    return Section("odd-process", "3. Process overview and scheduling", tuple(blocks))


def _transitions(config: Config, chart: Statechart) -> list[Block]:
    """Return the chart as a picture and as a table of its transitions."""
    rows: list[tuple[Words, ...]] = []
    chooses = "the oracle chooses" if chart.oracle_enabled else "the first target in this list is taken"
    for transition in sorted(chart.transitions, key=lambda one: STATES.index(one.source)):
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
        Fold("All transitions", (table(columns, rows, caption),)),
    ]


@dataclass(frozen=True)
class _Drawing:
    """Draws a chart; two drawings are the same if the transitions are."""

    rows: tuple[tuple[Words, ...], ...]
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
        ("Activity", activity_of(config)),
        ("Network", network_of(config)),
        ("Posts", "none before the first round"),
        ("Seed", "the same seed makes the same agents, network and texts in every arm that does not change them"),
    )
    return Section("odd-initialization", "5. Initialization", (Facts(facts),))


def _input(config: Config) -> list[Block]:
    found = input_files(config)
    if not found:
        return [
            Paragraph(
                "No files: the network and the agents are drawn, and the texts are those that come with "
                "PRISM. Nothing from outside enters while rounds are run."
            )
        ]
    rows: list[tuple[Words, ...]] = [(Code(key), Code(path), what) for key, path, what in found]
    return [table((Column("key"), Column("file"), Column("what it holds")), rows)]


def _submodels(config: Config, varied: Collection[str], *, load: bool) -> Section:
    r = config.reasoner.rule
    facts: tuple[tuple[str, Words], ...] = (
        (
            "Feed",
            f"up to {config.feed.size} posts of the last {config.feed.window} rounds that the reader has not read"
            f"{' from this sharer, nor engaged with' * config.feed.repeats}: "
            f"{feed_order(config.feed.mode, load=load)}{_candidates(config)}",
        ),
        ("Relevance", "(1 + cosine of the post's topics and the agent's interests) / 2, from 0 to 1"),
        ("Utility", utility_of(config)),
        (
            "Judging a post",
            "ignored if its utility is below the agent's band, engaged with above it; inside the band the choice is "
            f"open. The band is {config.agents.band:g} wide around the agent's threshold"
            if config.statechart.chart is None
            else f"as the transitions of {config.statechart.chart} from evaluating have it",
        ),
        ("Open choices", decided_by(config)),
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
        *([("Homophily", alike)] if (alike := homophily_of(config)) else []),
        *([("Network", dynamics_of(config))] if config.network.dynamics == "live" else []),
        *([("Opinions", moved)] if (moved := opinions_of(config)) else []),
        *([("Interventions", interventions_of(config, load=load))] if config.interventions else []),
        ("Words", writing_of(config)),
    )
    blocks: tuple[Block, ...] = (Facts(facts), *changed_parameters(config, varied), *parameter_tables(config, varied))
    return Section("odd-submodels", "7. Submodels and parameters", blocks)
