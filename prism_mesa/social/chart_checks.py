"""Checks of a chart's guards on this platform: unknown fields, guards that raise, guards that are never evaluated."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social import behavior
from prism_mesa.social.fields import FIELD_VALUES
from prism_mesa.social.params import InterventionParams
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.round.columns import FIELDS
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import NO_ATTRIBUTES, Attributes
from prism_mesa.social.state.feeds import readable_fields
from prism_mesa.social.tables import AGENTS, POSTS
from prism_mesa.statechart import TIMEOUT, Expression, Statechart, Transition, Values
from prism_mesa.statechart.checks import Finding, suggest_field

MIN_EVALUATIONS: Final = 5
"""Minimum number of evaluations after which a run fails if a guard raised in all of them."""

GUARD_FIELDS: Final = {name: FIELD_VALUES.get(name, Values()) for name in sorted(FIELDS)} | {
    f"agent.{name}": FIELD_VALUES.get(f"agent.{name}", Values())
    for name in (*dir(PlatformAgent), "row", "model", "unique_id")
    if not name.startswith("_")
}
"""Fields that guard expressions can read from columns or agent by agent, with their values."""
_FIRED: Final = {(rule.trigger, rule.state) for rule in behavior.TRIGGER_RULES} | {(behavior.FEED_READY, behavior.IDLE)}
"""Pairs of a trigger and a state in which a round fires it; the other triggers fire in all states except IDLE."""


def find_chart_problems(chart: Statechart, tables: WalkTables, fields: Mapping[str, Values]) -> list[Finding]:
    """Return the findings of `Statechart.check`, and notes on unreachable cells and engagement below the band."""
    findings = chart.check(behavior.FIRED_TRIGGERS, fields)
    for trigger, state, cell in chart.all_cells():
        is_always_fired = trigger in (TIMEOUT, behavior.ROUND_ENDS) and state is not behavior.IDLE
        is_fired = is_always_fired or (trigger, state.resembled) in _FIRED
        never_ignores = trigger == behavior.IGNORES and tables.claim_condition is True
        if trigger in behavior.FIRED_TRIGGERS and (never_ignores or (cell.guards and not is_fired)):
            findings.append(Finding("note", "never-met", cell.label, "a round never fires this trigger in this state"))
    claim = behavior.claim_condition(chart) if behavior.EVALUATING in chart.cells.get(behavior.IGNORES, {}) else False
    if claim is True or isinstance(claim, Expression):
        text = f"agents can also engage with posts below their band{'' if claim is True else f', where {claim}'}"
        text += "; to leave these out, add & (F.post.utility > F.agent.high_threshold) to the condition"
        findings.append(Finding("note", "below-band", "evaluating --decides-->", text))
    return findings


def check_chart(
    chart: Statechart, tables: WalkTables, declared: Mapping[str, Values], glances: Iterable[int]
) -> tuple[str, ...]:
    """Check a chart, and return notes; `require_agent_fields` checks the fields of agents later.

    Guards can also read the `declared` attributes. `glances` lists all values of `feed.glances` during the run.

    Raises:
        ChartError: For the first error.
    """
    known_fields = GUARD_FIELDS | dict(declared)
    fields = known_fields | {name: Values() for _, name in agent_fields(chart, known_fields)}
    notes = []
    if tables.no_glance_reason and max(glances) > 1 and behavior.SCROLLING in chart.cells.get(behavior.SEES_POST, {}):
        reason = f"agents stop at every post: {tables.no_glance_reason}; compare only with runs under feed.glances=1"
        notes.append(f"feed.glances has no effect: {reason}")
    for finding in find_chart_problems(chart, tables, fields):
        if finding.level == "error":
            raise ChartError(f"chart {chart.name}: {finding.where}: {finding.message} ('prism chart' shows all)")
        if finding.kind in ("widens", "never-met", "below-band"):
            notes.append(f"{finding.where}: {finding.message}")
    return tuple(f"chart {chart.name}: {note}" for note in notes)


_MESA_NAMES: Final = "remove pos cell random rng scenario create_agents from_dataframe".split()
"""Further attributes of a Mesa agent."""


def require_free_names(declared: Attributes, interventions: Sequence[InterventionParams]) -> None:
    """Check that names of attributes and interventions are not those of fields, or of columns of tables or feeds.

    Raises:
        ConfigError: If an attribute or an intervention has such a name.
    """
    fields = (*GUARD_FIELDS, *readable_fields(NO_ATTRIBUTES))
    agent_names = {*AGENTS.names, *_MESA_NAMES, "llm"}
    post_names = {*POSTS.names, *(f"author_{name}" for name in declared.agents)}
    for root, attributes, used_names in (("agent", declared.agents, agent_names), ("post", declared.posts, post_names)):
        for name in attributes:
            if name in used_names or f"{root}.{name}" in fields:
                raise ConfigError(f"attributes: {name}: {root}s already have a field of that name: choose another")
    names = {*agent_names, *declared.agents, *declared.posts, *POSTS.names}
    post_names |= {f"{act.name}_round" for act in interventions if act.name is not None}
    for act in interventions:
        if {act.name, f"{act.name}_round"} & names or act.name in post_names:
            raise ConfigError(f"interventions: {act.name}: agents or posts already have a column of that name")


def agent_fields(chart: Statechart, known_fields: Mapping[str, Values]) -> Iterator[tuple[Transition, str]]:
    """Yield each field of agents that a guard reads but not every agent has, with the guard's transition."""
    for transition in chart.transitions:
        if isinstance(transition.guard, Expression):
            for name in sorted(transition.guard.fields - known_fields.keys()):
                if name.startswith("agent."):
                    yield transition, name


def require_agent_fields(
    chart: Statechart, agents: Iterable[object], declared: Mapping[str, Values], *, has_scripts: bool
) -> None:
    """Check that each field that a guard reads exists on some agent.

    `agents` are the agents made so far, and `declared` the declared attributes. If there are actions or scripts, which
    may add fields later, nothing is checked; a guard without its field then raises.

    Raises:
        ChartError: For the first guard that fails the check.
    """
    if has_scripts or any(t.action is not None for t in chart.transitions):
        return
    existing_agents, known_fields = list(agents), GUARD_FIELDS | dict(declared)
    for transition, name in agent_fields(chart, known_fields):
        if not any(hasattr(agent, name.removeprefix("agent.")) for agent in existing_agents):
            raise ChartError(
                f"chart {chart.name}: {transition}: no agent has a field {name!r}.{suggest_field(name, known_fields)} "
                "(make the agents of your class that have it before the first round)"
            )


class GuardWarnings:
    """Warns once about each guard that raised.

    Attributes:
        warned: The indices of the transitions whose guards were reported, over all charts.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.warned: set[int] = set()
        self._depth = 0

    def warn_new(self, charts: Sequence[Statechart]) -> None:
        """Warn about each guard that has raised and is not reported yet; do nothing within `deferred`."""
        transitions = [transition for chart in charts for transition in chart.transitions]
        for guard in [] if self._depth else [guard for chart in charts for guard in chart.failing_guards()]:
            if (place := transitions.index(guard.transition)) not in self.warned:
                self.warned.add(place)
                advice = "(model.chart.guard_errors keeps the count; statechart.strict=true lets it raise)"
                self._warn(f"{guard} and counts as false there {advice}")

    @contextlib.contextmanager
    def deferred(self, charts: Sequence[Statechart]) -> Iterator[None]:
        """Defer warnings to the end of the block, so that they give the final counts."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.warn_new(charts)


def guards_that_always_fail(charts: Sequence[Statechart]) -> str:
    """Return a message on guards that raised in all of at least `MIN_EVALUATIONS` evaluations; empty without any."""
    guards = [guard for chart in charts for guard in chart.failing_guards() if guard.always_fails]
    text = "; ".join(str(guard) for guard in guards if guard.n_errors >= MIN_EVALUATIONS)
    return f"{text}; correct or remove it ('prism chart' shows its place)" if text else ""
