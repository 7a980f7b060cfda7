"""The ODD protocol of a configured model: the seven elements of Grimm et al. 2020, doi:10.18564/jasss.4259.

The text comes from the configuration, the chart, and the docstrings of the round's steps, of agent fields, and of
groups of parameters.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.params import Params
from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.runs.recorded import PACKAGE_PREFIX
from prism_mesa.social.behavior import configure_chart
from prism_mesa.social.round import run_round
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.world.accounts import own_chart
from prism_mesa.statechart import TIMEOUT, Statechart, draw_chart
from prism_mesa.studies.design.study_design import Worlds, condition_configs
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.blocks import Block, Code, Column, Facts, Paragraph, Section, Words, code_spans, simple_table
from prism_mesa.view.study.contents import is_sampled, measure_title, measures_in_order
from prism_mesa.view.study.design import changed_keys
from prism_mesa.view.study.markdown import sections_as_markdown
from prism_mesa.view.study.numbers import level
from prism_mesa.view.study.odd import words
from prism_mesa.view.study.odd.arms import merge_sections

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PURPOSE: Final = (
    "The model simulates how people on a social platform see, judge and pass on posts, to learn how a platform's "
    "rules and its users' decisions affect what spreads."
)
_MAX_MEASURES: Final = 12
_ANY_ADAPTER: Final = TypeAdapter(Any)


def odd_section(result: StudyResult) -> Section:
    """Return the ODD protocol of a study's models: the shared text, and what each arm changes."""
    runs, levels = result.table.runs, result.values.get("vary")
    if is_sampled(result.table) or not levels:
        factors = () if is_sampled(result.table) else result.table.factors
        levels = {factor: runs[factor].drop_duplicates().tolist() for factor in factors}
    try:
        worlds = condition_configs(result.base, result.values, levels)
    except ConfigError:  # tables of sampled points lose the types of some levels
        worlds = condition_configs(result.base, result.values, {})
    source = doc.Link("Grimm et al. 2020", "https://doi.org/10.18564/jasss.4259")
    intro: tuple[doc.Part, ...] = ("The model as this study configures it, by the ODD protocol (", source, "). ")
    if varied_keys := changed_keys(result):
        intro += ("Text that all runs share appears once; the arms and factors of the study change ",)
        intro += (*doc.code_list(varied_keys), ".")
    else:
        intro += ("All runs have this configuration; only their seeds differ.",)
    names = measures_in_order(result)
    more_note = (f"and {len(names) - _MAX_MEASURES:,} more",) if len(names) > _MAX_MEASURES else ()
    purpose = (
        Paragraph(f"{_PURPOSE} This study asks: {result.question}"),
        Paragraph("The measures of the study are the patterns by which the model is judged:"),
        doc.Bullets((*map(measure_title, names[:_MAX_MEASURES]), *more_note)),
    )
    parts = _protocol_sections(worlds, varied_keys, purpose, load=True)
    return Section("odd", "The model (ODD protocol)", (Paragraph(intro),), parts)


def odd_text(worlds: Worlds, varied_keys: Collection[str] = (), question: str = "", *, load: bool = False) -> str:
    """Return the ODD protocol of a run or a study as Markdown, without pictures.

    Args:
        worlds: Configurations by name; a run has one with an empty name.
        varied_keys: Dotted keys that a study changes.
        question: The study's question; empty for a single run.
        load: Whether to import the user's modules, which hold charts and feeds.
    """
    purpose = Paragraph(f"{_PURPOSE} This study asks: {question}" if question else _PURPOSE)
    text = sections_as_markdown(_protocol_sections(worlds, varied_keys, (purpose,), load=load))
    intro = "The model as it is configured, by the ODD protocol (Grimm et al. 2020, doi:10.18564/jasss.4259)."
    return f"# The model (ODD protocol)\n\n{intro}\n\n{text}\n"


def _protocol_sections(
    worlds: Worlds, varied_keys: Collection[str], purpose: tuple[Block, ...], *, load: bool
) -> tuple[Section, ...]:
    """Return the elements of the protocol for all configurations of a study; `purpose` is the first element."""
    by_arm = {
        arm: odd_sections(config, _chart(config, load=load), varied_keys, load=load) for arm, config in worlds.items()
    }
    return Section("odd-purpose", "1. Purpose and patterns", purpose), *merge_sections(by_arm)


def _chart(config: Config, *, load: bool, kind: int | None = None) -> Statechart | str | None:
    """Return the chart of the agents, or that of a kind of account (None: the agents'), or why it is not loaded."""
    name = config.statechart.chart if kind is None else config.accounts[kind].chart
    if name is not None and not name.startswith(PACKAGE_PREFIX) and not load:
        return f"The chart is {name}, a module of the user's own, which is not loaded here."
    try:
        if kind is not None:
            return own_chart(config, kind)
        return configure_chart(config.statechart, asks_action=config.reasoner.asks_action)
    except PrismError as error:  # the user's module may be missing here
        return str(error)


def odd_sections(
    config: Config, chart: Statechart | str | None, varied_keys: Collection[str] = (), *, load: bool = True
) -> tuple[Section, ...]:
    """Return the elements of the protocol after the first, for one configuration.

    Args:
        config: The configuration.
        chart: Its chart, or the reason why it is not available.
        varied_keys: Dotted keys that a study changes.
        load: Whether to import the user's modules, which hold charts and feeds.
    """
    return (
        _entities(config),
        _process(config, chart, load=load),
        Section("odd-concepts", "4. Design concepts", (Facts(words.design_concepts(config)),)),
        _initialization(config),
        Section("odd-input", "6. Input data", (_input(config),)),
        _submodels(config, varied_keys, load=load),
    )


def _entities(config: Config) -> Section:
    agents: list[doc.Row] = [(Code(name), meaning) for name, meaning in words.AGENT_VARIABLES.items()]
    agents += [(Code(f.name), f"{f.meaning} ({f.unit})") for f in AGENT_FIELDS.values()]
    posts: list[doc.Row] = [(code_spans(names), meaning) for names, meaning in words.POST_VARIABLES.items()]
    for name, params in config.attributes.items():
        (agents if params.of == "agent" else posts).append((Code(name), f"declared: {params.text}"))
    groups = (doc.Group("of an agent", tuple(agents)), doc.Group("of a post", tuple(posts)))
    minutes = config.clock.round_minutes
    network = words.NETWORKS["edges" if config.network.edges else config.network.kind]
    scales = (
        ("Agents", f"{config.agents.n:,}; each is a user of the platform and a statechart"),
        *([("Accounts", "; ".join(account.text for account in config.accounts))] if config.accounts else []),
        ("Network", f"who follows whom, directed: {network}"),
        (
            "Posts",
            f"texts with a vector of {config.posts.n_topics} topics, an author, a round, and counts of likes, replies "
            "and reshares; a reshare belongs to the cascade of its original post",
        ),
        ("Time", f"{config.rounds:,} rounds of {minutes:g} simulated minutes, {config.ticks_per_round:,} ticks each"),
        ("Space", "none, apart from the network"),
    )
    variables = doc.Table((Column("state variable"), Column("meaning", long=True)), groups)
    return Section("odd-entities", "2. Entities, state variables, and scales", (Facts(scales), variables))


def _process(config: Config, chart: Statechart | str | None, *, load: bool) -> Section:
    """Return the steps of a round, from the docstring of `run_round`, and the charts."""
    paragraphs = [" ".join(part.split()) for part in (run_round.__doc__ or "").split("\n\n")]
    numbered = next(text for text in paragraphs if text.startswith("1. "))
    steps = re.findall(r"(\d+)\. (\w+): (.*?)(?= \d+\. |$)", numbered)
    rows = [(number, Code(name), code_spans(text)) for number, name, text in steps]
    columns = (Column("", number=True), Column("step"), Column("what happens", long=True))
    owner = "every agent that has no chart of its own" if config.accounts else "every agent"
    charts = [(owner, "", chart)]
    for kind, account in enumerate(config.accounts):
        charts.append((f"accounts {account.name}", f"-{kind}", _chart(config, load=load, kind=kind)))
    blocks = (
        Paragraph("A round has these steps, in this order:"),
        simple_table(columns, rows),
        Paragraph(code_spans(paragraphs[-1])),
        *(block for owner, suffix, chart in charts for block in _chart_blocks(config, chart, owner, suffix)),
    )
    return Section("odd-process", "3. Process overview and scheduling", blocks)


def _chart_blocks(config: Config, chart: Statechart | str | None, owner: str, suffix: str) -> list[Block]:
    if not isinstance(chart, Statechart):
        return [Paragraph(chart, note=True)] if chart else []
    rows: list[doc.Row] = []
    chooses = "the oracle chooses" if chart.oracle_enabled else "the first target in this list is taken"
    for transition in sorted(chart.transitions, key=lambda transition: chart.codes[transition.source]):
        ticks = chart.timeouts.get(transition.source)
        trigger = transition.trigger + (f" after {ticks} ticks" if ticks and transition.trigger == TIMEOUT else "")
        target: Words = Code(transition.target.value) if transition.target else f"open: {chooses}"
        otherwise = "else" if chart.cells[transition.trigger][transition.source].guards else ""
        guard: Words = Code(transition.guard_label) if transition.guard_label else otherwise
        rows.append((Code(transition.source.value), Code(trigger), guard, target))
    columns = (Column("in state"), Column("trigger"), Column("if"), Column("goes to"))
    ticks = config.statechart.default_timeout_ticks
    caption = (
        f"A state without its own number of ticks times out after the agent's threshold ({ticks} ticks by default). "
        "Next to rows with guards, a row without a guard means else."
    )
    picture = f"The statechart of {owner}. A diamond marks a choice that the chart leaves open."
    return [
        doc.Picture(f"statechart{suffix}", picture, _Drawing(tuple(rows), chart)),
        doc.Fold(
            f"All transitions of {owner}" if suffix else "All transitions", (simple_table(columns, rows, caption),)
        ),
    ]


@dataclass(frozen=True)
class _Drawing:
    """A function that draws a chart; two are equal if their charts have the same transitions."""

    rows: tuple[doc.Row, ...]
    chart: Statechart = field(compare=False)

    @cache  # noqa: B019 - drawing a chart is slow, and there are few
    def __call__(self) -> "Figure":
        return draw_chart(self.chart)


def _initialization(config: Config) -> Section:
    p = config.agents
    profiles = f"read from {p.profiles}" if p.profiles else "drawn from the seed, agent by agent"
    facts: tuple[tuple[str, Words], ...] = (
        ("Agents", f"all idle; interests, personality, thresholds, activity and propensities {profiles}"),
        (
            "Thresholds",
            f"engagement: mean {p.threshold_mean:g}, sd {p.threshold_sd:g}; the band around it is {p.band:g} wide",
        ),
        ("Activity", words.activity(config)),
        ("Network", words.network(config)),
        ("Posts", "none before the first round"),
        ("Seed", "the same seed gives the same agents, network and texts in all arms that do not change them"),
    )
    return Section("odd-initialization", "5. Initialization", (Facts(facts),))


def _input(config: Config) -> Block:
    paths = {f"{group}.{name}": getattr(getattr(config, group), name, None) for group, name in INPUT_FILES}
    if rows := [(Code(key), Code(str(path)), words.FILES.get(key, "input")) for key, path in paths.items() if path]:
        return simple_table((Column("key"), Column("file"), Column("content")), rows)
    return Paragraph(
        "No files: the network and the agents are drawn, and the texts come with PRISM. No input is read during a run."
    )


def _submodels(config: Config, varied_keys: Collection[str], *, load: bool) -> Section:
    r, chart, size = config.reasoner.rule, config.statechart.chart, config.feed.size
    unread = "has not read from this sharer, nor engaged with" if config.feed.repeats else "has not read"
    order = words.feed_order(config.feed.mode, load=load) + words.candidates(config)
    judging = (
        "the agent ignores posts with utility below its band and engages above it; inside, the choice is open. "
        f"The band is {config.agents.band:g} wide around the agent's threshold"
    )
    engaging = "like, reply or reshare, drawn from the agent's propensities"
    if config.reasoner.asks_action:
        engaging = "like, reply or reshare, which the oracle is asked for"
    if chart is not None:
        judging = f"as the transitions of {chart} from evaluating define it"
        engaging = f"as the transitions of {chart} from composing define it"
    facts = (
        ("Feed", f"up to {size} posts of the last {config.feed.window} rounds that the reader {unread}: {order}"),
        ("Relevance", "(1 + cosine of the post's topics and the agent's interests) / 2, from 0 to 1"),
        ("Utility", words.utility(config)),
        ("Judging a post", judging),
        ("Open choices", words.decided_by(config)),
        (
            "The rule",
            f"P(engage) = logistic of -0.33 + {r.slope:g} x place in the band + {r.velocity:g} x log(1 + velocity) "
            f"+ {r.media:g} if the post has media + weights of personality (source: reasoner/rule.py)",
        ),
        ("Engaging", engaging),
        ("Homophily", words.homophily(config)),
        ("Network", words.network_dynamics(config) if config.network.dynamics == "live" else ""),
        ("Opinions", words.opinions(config)),
        ("Interventions", words.interventions(config, load=load)),
        ("Texts", words.writing(config)),
    )
    blocks = (Facts(tuple(fact for fact in facts if fact[1])), *_parameters(config, varied_keys))
    return Section("odd-submodels", "7. Submodels and parameters", blocks)


def _parameters(config: Config, varied_keys: Collection[str]) -> tuple[Block, ...]:
    """Return the parameters that differ from their defaults or that the study changes, then all parameters, folded."""
    columns = (Column("key"), Column("value"), Column("meaning", long=True))
    changed: list[doc.Row] = []
    groups: dict[Words, list[doc.Row]] = {}
    for title, key, info, value in _leaves(config):
        default = info.get_default(call_default_factory=True)
        value_parts: tuple[doc.Part, ...] = (Code(_as_configured(value)),)
        if value != default:
            value_parts = doc.Strong(_as_configured(value)), doc.Quiet(f"  default {_as_configured(default)}")
        value_parts += (doc.Quiet("  varies"),) if key in varied_keys else ()
        row = (Code(key), value_parts, info.description or "")
        groups.setdefault(title, []).append(row)
        if key not in ("name", "seed", "threads") and (value != default or key in varied_keys):
            changed.append(row)
    first: tuple[Block, ...] = (Paragraph("All parameters have their default values."),)
    if changed:
        text = "Values that differ from the default, or that the study changes:"
        first = (Paragraph(text), simple_table(columns, changed))
    group_rows = tuple(doc.Group(title, tuple(rows)) for title, rows in groups.items())
    return *first, doc.Fold("All parameters", (doc.Table(columns, group_rows),))


def _leaves(params: Params, prefix: str = "") -> Iterator[tuple[Words, str, FieldInfo, Any]]:
    """Yield (title of the group, dotted key, field, value) of each parameter, group by group."""
    title: Words = "The run"
    if prefix:
        title = Code(prefix[:-1]), doc.Quiet(f"  {(type(params).__doc__ or '').strip().partition('\n')[0]}")
    groups: list[tuple[str, Params]] = []
    for name, info in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, Params):
            groups.append((f"{prefix}{name}.", value))
        else:
            yield title, f"{prefix}{name}", info, value
    for group_prefix, group in groups:
        yield from _leaves(group, group_prefix)


def _as_configured(value: Any) -> str:
    """Return a value as in a configuration file, without keys that have default values."""
    if isinstance(value, Mapping | list | tuple):
        return doc.brief(_ANY_ADAPTER.dump_python(value, mode="json", exclude_defaults=True), 80)
    return doc.brief(level(value), 80)
