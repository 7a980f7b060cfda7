"""Checks of a chart's guards on this platform: unknown fields, and guards that raise or are never evaluated."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social.behavior import (
    EVALUATING,
    FEED_READY,
    FIRED,
    IDLE,
    IGNORES,
    ROUND_ENDS,
    SCROLLING,
    SEES_POST,
    TRIGGER_RULES,
    claims_below,
)
from prism_mesa.social.fields import FIELD_VALUES
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.round.columns import FIELDS
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import NO_ATTRIBUTES, Attributes
from prism_mesa.social.state.feeds import readable
from prism_mesa.social.tables import AGENTS, POSTS
from prism_mesa.statechart import TIMEOUT, Expression, Statechart, Transition, Values
from prism_mesa.statechart.checks import Finding, near_field

FEW_TIMES: Final = 5
"""A guard that was asked less often than this and raised each time does not end a run as failed."""

READABLE: Final = {name: FIELD_VALUES.get(name, Values()) for name in sorted(FIELDS)} | {
    f"agent.{name}": FIELD_VALUES.get(f"agent.{name}", Values())
    for name in (*dir(PlatformAgent), "row", "model", "unique_id")
    if not name.startswith("_")
}
"""What guard expressions can read of every agent and post, over columns or by row, and the values of each."""
_MET: Final = {(rule.trigger, rule.state) for rule in TRIGGER_RULES} | {(FEED_READY, IDLE)}
"""Triggers and the states in which a round fires them, besides those that it fires in all states but idle."""


def findings_on(chart: Statechart, tables: WalkTables, fields: Mapping[str, Values]) -> list[Finding]:
    """Return the findings of `Statechart.check`, transitions that no round evaluates, and engaging below the band."""
    findings = chart.check(FIRED, fields)
    for trigger, state, cell in chart.all_cells():
        is_fired = (trigger in (TIMEOUT, ROUND_ENDS) and state is not IDLE) or (trigger, state) in _MET
        never_ignores = trigger == IGNORES and tables.claimed is True
        if trigger in FIRED and (never_ignores or (cell.arms and not is_fired)):
            findings.append(Finding("note", "never-met", cell.place, "a round never fires this trigger in this state"))
    claimed = claims_below(chart) if EVALUATING in chart.cells.get(IGNORES, {}) else False
    if claimed is True or isinstance(claimed, Expression):
        text = f"agents can also engage with posts below their band{'' if claimed is True else f', where {claimed}'}"
        text += "; to leave these out, add & (F.post.utility > F.agent.high_threshold) to the condition"
        findings.append(Finding("note", "below-band", "evaluating --decides-->", text))
    return findings


def check_chart(
    chart: Statechart, tables: WalkTables, declared: Mapping[str, Values], glances: Iterable[int]
) -> tuple[str, ...]:
    """Check a chart, and return notes; `require_agent_fields` checks the fields of agents later.

    Args:
        chart: What is check_chart.
        tables: Its tables.
        declared: Further fields that guards can read: declared attributes.
        glances: All values of `feed.glances` during the run.

    Raises:
        ChartError: With the first error found.
    """
    readable = READABLE | dict(declared)
    fields = readable | {name: Values() for _, name in agent_fields(chart, readable)}
    notes = []
    if tables.why_each and max(glances) > 1 and SCROLLING in chart.cells.get(SEES_POST, {}):
        why = f"agents meet every post one at a time: {tables.why_each}; compare only with runs under feed.glances=1"
        notes.append(f"feed.glances has no effect, {why}")
    for finding in findings_on(chart, tables, fields):
        if finding.level == "error":
            raise ChartError(f"chart {chart.name}: {finding.where}: {finding.message} ('prism chart' shows all)")
        if finding.kind in ("widens", "never-met", "below-band"):
            notes.append(f"{finding.where}: {finding.message}")
    return tuple(f"chart {chart.name}: {note}" for note in notes)


_MESA_NAMES: Final = "remove pos cell random rng scenario create_agents from_dataframe".split()
"""Further attributes of an agent of Mesa."""


def require_free_names(declared: Attributes) -> None:
    """Check that agents, posts, their tables and feeds have nothing else of the name of an attribute.

    Raises:
        ConfigError: If one of them has.
    """
    agents = {name.removeprefix("agent.") for name in READABLE if name.startswith("agent.")} | {
        *AGENTS.names,
        *_MESA_NAMES,
        "llm",
    }
    posts = {name.removeprefix("post.") for name in READABLE if name.startswith("post.")} | set(POSTS.names)
    in_feeds = {name.partition(".")[::2] for name in readable(NO_ATTRIBUTES)}
    agents |= {name for root, name in in_feeds if root == "agent"}
    posts |= {name for root, name in in_feeds if root == "post"} | {f"author_{name}" for name in declared.agents}
    for owners, attributes, taken in (("agents", declared.agents, agents), ("posts", declared.posts, posts)):
        for name in attributes:
            if name in taken:
                raise ConfigError(f"attributes: {name}: {owners} have something of that name: give it another")


def agent_fields(chart: Statechart, readable: Mapping[str, Values]) -> Iterator[tuple[Transition, str]]:
    """Yield the agent fields that guards read and not every agent has, with their transitions."""
    for transition in chart.transitions:
        if isinstance(transition.guard, Expression):
            for name in sorted(transition.guard.fields - readable.keys()):
                if name.startswith("agent."):
                    yield transition, name


def require_agent_fields(
    chart: Statechart, agents: Iterable[object], declared: Mapping[str, Values], *, has_scripts: bool
) -> None:
    """Raise if a guard reads a field that no agent can have.

    An action or a script may give agents new fields later. Then nothing is checked here, and a guard that finds no
    field counts as raising.

    Args:
        chart: The chart with the guards.
        agents: The agents that were made so far, with those of your own classes.
        declared: As for `check_chart`.
        has_scripts: Whether any agent acts by a script.

    Raises:
        ChartError: For the first such guard.
    """
    if has_scripts or any(t.action is not None for t in chart.transitions):
        return
    made, readable = list(agents), READABLE | dict(declared)
    for transition, name in agent_fields(chart, readable):
        if not any(hasattr(agent, name.removeprefix("agent.")) for agent in made):
            raise ChartError(
                f"chart {chart.name}: {transition}: no agent has a field {name!r}.{near_field(name, readable)} "
                "(agents of a class of your own that have it are to be made before the first round)"
            )


class GuardWarnings:
    """Calls `warn` once for each guard of a chart that raised."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._warned: set[Transition] = set()
        self._depth = 0

    def warned_places(self, chart: Statechart) -> list[int]:
        """Return the places in the chart of the guards that users were warned of."""
        return [place for place, transition in enumerate(chart.transitions) if transition in self._warned]

    def restore_warned(self, chart: Statechart, places: Iterable[int]) -> None:
        """Take back what `warned_places` returned."""
        self._warned = {chart.transitions[place] for place in places}

    def warn_new(self, chart: Statechart) -> None:
        """Warn of the guards that have raised since the last warning; within `deferred` do nothing."""
        for guard in [] if self._depth else chart.failing_guards():
            if guard.transition not in self._warned:
                self._warned.add(guard.transition)
                counted = "(model.chart.guard_errors goes on counting; statechart.strict=true lets it raise)"
                self._warn(f"{guard} and counts as false there {counted}")

    @contextlib.contextmanager
    def deferred(self, chart: Statechart) -> Iterator[None]:
        """Defer warnings until the block ends, so that they have the counts of all of it."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.warn_new(chart)


def guards_that_always_fail(chart: Statechart) -> str:
    """Return the guards that raised every time they were evaluated, at least `FEW_TIMES`; empty if none did."""
    return "; ".join(str(guard) for guard in chart.failing_guards() if guard.every_time and guard.times >= FEW_TIMES)
