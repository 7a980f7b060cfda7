"""Checks of a chart's guards on this platform: unknown fields, and guards that raise or are never evaluated."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social import behavior
from prism_mesa.social.fields import FIELD_VALUES
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.round.columns import FIELDS
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import NO_ATTRIBUTES, Attributes
from prism_mesa.social.state.feeds import readable
from prism_mesa.social.tables import AGENTS, POSTS
from prism_mesa.statechart import TIMEOUT, Expression, Statechart, Transition, Values
from prism_mesa.statechart.checks import Finding, near_field

MIN_TIMES: Final = 5
"""Number of evaluations from which on a run fails if a guard raised in all of them."""

READABLE: Final = {name: FIELD_VALUES.get(name, Values()) for name in sorted(FIELDS)} | {
    f"agent.{name}": FIELD_VALUES.get(f"agent.{name}", Values())
    for name in (*dir(PlatformAgent), "row", "model", "unique_id")
    if not name.startswith("_")
}
"""Fields that guard expressions can read, over columns or by row, and their values."""
_FIRED: Final = {(rule.trigger, rule.state) for rule in behavior.TRIGGER_RULES} | {(behavior.FEED_READY, behavior.IDLE)}
"""Triggers that a round fires only in one state, with that state."""


def findings_on(chart: Statechart, tables: WalkTables, fields: Mapping[str, Values]) -> list[Finding]:
    """Return the findings of `Statechart.check`, cells that no round reaches, and engagement below the band."""
    findings = chart.check(behavior.FIRED, fields)
    for trigger, state, cell in chart.all_cells():
        is_fired = (trigger in (TIMEOUT, behavior.ROUND_ENDS) and state is not behavior.IDLE) or (
            trigger,
            state,
        ) in _FIRED
        never_ignores = trigger == behavior.IGNORES and tables.claimed is True
        if trigger in behavior.FIRED and (never_ignores or (cell.arms and not is_fired)):
            findings.append(Finding("note", "never-met", cell.place, "a round never fires this trigger in this state"))
    claimed = behavior.claims_below(chart) if behavior.EVALUATING in chart.cells.get(behavior.IGNORES, {}) else False
    if claimed is True or isinstance(claimed, Expression):
        text = f"agents can also engage with posts below their band{'' if claimed is True else f', where {claimed}'}"
        text += "; to leave these out, add & (F.post.utility > F.agent.high_threshold) to the condition"
        findings.append(Finding("note", "below-band", "evaluating --decides-->", text))
    return findings


def check_chart(
    chart: Statechart, tables: WalkTables, declared: Mapping[str, Values], glances: Iterable[int]
) -> tuple[str, ...]:
    """Check a chart, and return notes; `require_agent_fields` checks the fields of agents later.

    Guards can also read the `declared` attributes. `glances` are all values of `feed.glances` during the run.

    Raises:
        ChartError: With the first error found.
    """
    readable = READABLE | dict(declared)
    fields = readable | {name: Values() for _, name in agent_fields(chart, readable)}
    notes = []
    if tables.why_each and max(glances) > 1 and behavior.SCROLLING in chart.cells.get(behavior.SEES_POST, {}):
        why = f"agents stop at every post: {tables.why_each}; compare only with runs under feed.glances=1"
        notes.append(f"feed.glances has no effect: {why}")
    for finding in findings_on(chart, tables, fields):
        if finding.level == "error":
            raise ChartError(f"chart {chart.name}: {finding.where}: {finding.message} ('prism chart' shows all)")
        if finding.kind in ("widens", "never-met", "below-band"):
            notes.append(f"{finding.where}: {finding.message}")
    return tuple(f"chart {chart.name}: {note}" for note in notes)


_MESA_NAMES: Final = "remove pos cell random rng scenario create_agents from_dataframe".split()
"""Further attributes of an agent of Mesa."""


def require_free_names(declared: Attributes) -> None:
    """Check that the names of attributes are not fields of agents or posts, or columns of tables or feeds.

    Raises:
        ConfigError: If one of them is.
    """
    fields = (*READABLE, *readable(NO_ATTRIBUTES))
    taken_agents = {*AGENTS.names, *_MESA_NAMES, "llm"}
    taken_posts = {*POSTS.names, *(f"author_{name}" for name in declared.agents)}
    for root, attributes, taken in (("agent", declared.agents, taken_agents), ("post", declared.posts, taken_posts)):
        for name in attributes:
            if name in taken or f"{root}.{name}" in fields:
                raise ConfigError(f"attributes: {name}: {root}s already have a field of that name: choose another")


def agent_fields(chart: Statechart, readable: Mapping[str, Values]) -> Iterator[tuple[Transition, str]]:
    """Yield the transitions and fields of agents that guards read, but that not every agent has."""
    for transition in chart.transitions:
        if isinstance(transition.guard, Expression):
            for name in sorted(transition.guard.fields - readable.keys()):
                if name.startswith("agent."):
                    yield transition, name


def require_agent_fields(
    chart: Statechart, agents: Iterable[object], declared: Mapping[str, Values], *, has_scripts: bool
) -> None:
    """Check that some agent has each field that a guard reads.

    `agents` has those made so far; for `declared` see `check_chart`. Actions and scripts may add fields later; if there
    are any, nothing is checked here, and a guard without its field raises.

    Raises:
        ChartError: For the first guard that fails the check.
    """
    if has_scripts or any(t.action is not None for t in chart.transitions):
        return
    made_agents, readable = list(agents), READABLE | dict(declared)
    for transition, name in agent_fields(chart, readable):
        if not any(hasattr(agent, name.removeprefix("agent.")) for agent in made_agents):
            raise ChartError(
                f"chart {chart.name}: {transition}: no agent has a field {name!r}.{near_field(name, readable)} "
                "(make the agents of your class that have it before the first round)"
            )


class GuardWarnings:
    """Calls `warn` once for each guard of a chart that raised."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._warned: set[Transition] = set()
        self._depth = 0

    def warned_places(self, chart: Statechart) -> list[int]:
        """Return the indices of the transitions for which a warning was given."""
        return [index for index, transition in enumerate(chart.transitions) if transition in self._warned]

    def restore_warned(self, chart: Statechart, indices: Iterable[int]) -> None:
        """Restore what `warned_places` returned."""
        self._warned = {chart.transitions[index] for index in indices}

    def warn_new(self, chart: Statechart) -> None:
        """Warn of each guard that has raised and was not warned of yet; do nothing within `deferred`."""
        for guard in [] if self._depth else chart.failing_guards():
            if guard.transition not in self._warned:
                self._warned.add(guard.transition)
                advice = "(model.chart.guard_errors keeps the count; statechart.strict=true lets it raise)"
                self._warn(f"{guard} and counts as false there {advice}")

    @contextlib.contextmanager
    def deferred(self, chart: Statechart) -> Iterator[None]:
        """Defer warnings to the end of the block, so that they give the final counts."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.warn_new(chart)


def guards_that_always_fail(chart: Statechart) -> str:
    """Return the guards that raised every time they were evaluated, at least `MIN_TIMES`; empty if none did."""
    return "; ".join(str(guard) for guard in chart.failing_guards() if guard.every_time and guard.times >= MIN_TIMES)
