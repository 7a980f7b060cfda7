"""What can be wrong with the guards of a chart on this platform: fields nobody has, guards that raise or are slow."""

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
from prism_mesa.statechart import TIMEOUT, Expression, FailingGuard, Statechart, Transition, Values
from prism_mesa.statechart.checks import Finding, near_field
from prism_mesa.statechart.values import UNKNOWN

FEW_TIMES: Final = 5
"""A guard that was asked less often than this and raised each time does not end a run as failed."""

READABLE: Final = {name: FIELD_VALUES.get(name, UNKNOWN) for name in sorted(FIELDS)} | {
    f"agent.{name}": FIELD_VALUES.get(f"agent.{name}", UNKNOWN)
    for name in (*dir(PlatformAgent), "row", "model", "unique_id")
    if not name.startswith("_")
}
"""What guard expressions can read of every agent and post, over columns or by row, and the values of each."""
_MET: Final = {(rule.trigger, rule.state) for rule in TRIGGER_RULES} | {(FEED_READY, IDLE)}
"""Triggers and the states in which a round fires them, besides those that it fires in all states but idle."""


def findings_on(chart: Statechart, tables: WalkTables, fields: Mapping[str, Values]) -> list[Finding]:
    """Return what `Statechart.check` finds, transitions that no round evaluates, and engaging below the band."""
    found = chart.check(FIRED, fields)
    for trigger, state, cell in chart.all_cells():
        is_fired = (trigger in (TIMEOUT, ROUND_ENDS) and state is not IDLE) or (trigger, state) in _MET
        never_ignores = trigger == IGNORES and tables.claimed is True
        if trigger in FIRED and (never_ignores or (cell.arms and not is_fired)):
            text = "a round never fires this trigger in this state"
            found.append(Finding("note", "never-met", cell.place, text))
    claimed = claims_below(chart) if EVALUATING in chart.cells.get(IGNORES, {}) else False
    if claimed is True or isinstance(claimed, Expression):
        text = f"agents can also engage with posts below their band{'' if claimed is True else f', where {claimed}'}"
        text += "; to leave these out, add & (F.post.utility > F.agent.high_threshold) to the condition"
        found.append(Finding("note", "below-band", "evaluating --decides-->", text))
    return found


def checked(
    chart: Statechart, tables: WalkTables, declared: Mapping[str, Values], glances: Iterable[int]
) -> tuple[str, ...]:
    """Check a chart, and return notes; `require_agent_fields` looks at the fields of agents later.

    Args:
        chart: What is checked.
        tables: Its tables.
        declared: Further fields that guards can read: the declared attributes.
        glances: All values that `feed.glances` has during the run.

    Raises:
        ChartError: With the first error found.
    """
    readable = READABLE | dict(declared)
    fields = readable | {name: UNKNOWN for _, name in agent_fields(chart, readable)}
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


_OF_MESA: Final = "remove pos cell random rng scenario create_agents from_dataframe".split()
"""What else an agent of Mesa has."""


def require_free_names(declared: Attributes) -> None:
    """Check that no attribute is called like something that agents or posts, or their tables, have already.

    Raises:
        ConfigError: If one is.
    """
    agents = {name.removeprefix("agent.") for name in READABLE if name.startswith("agent.")} | {
        *AGENTS.names,
        *_OF_MESA,
        "llm",
    }
    posts = {name.removeprefix("post.") for name in READABLE if name.startswith("post.")} | set(POSTS.names)
    of_feeds = {name.partition(".")[::2] for name in readable(NO_ATTRIBUTES)}
    agents |= {name for of, name in of_feeds if of == "agent"}
    posts |= {name for of, name in of_feeds if of == "post"} | {f"author_{name}" for name in declared.agents}
    for whose, own, taken in (("agents", declared.agents, agents), ("posts", declared.posts, posts)):
        for name in own:
            if name in taken:
                raise ConfigError(f"attributes: {name}: {whose} have something of that name: give it another")


def agent_fields(chart: Statechart, readable: Mapping[str, Values]) -> Iterator[tuple[Transition, str]]:
    """Yield the fields of agents that guards of a chart read and not every agent has, each with its transition."""
    for transition in chart.transitions:
        if isinstance(transition.guard, Expression):
            for name in sorted(transition.guard.fields - readable.keys()):
                if name.startswith("agent."):
                    yield transition, name


def require_agent_fields(
    chart: Statechart, agents: Iterable[object], declared: Mapping[str, Values], *, has_scripts: bool
) -> None:
    """Raise if a guard reads a field of agents that none can have.

    An action or a script may give agents new fields while they act: then nothing is known beforehand, and a guard that
    finds none is counted as raising.

    Args:
        chart: Whose guards.
        agents: The agents that were made so far; those of classes of a user's own are among them.
        declared: As for `checked`.
        has_scripts: Whether any of them acts by a script.

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
        self._said: set[Transition] = set()
        self._held = 0

    def explicit_values(self, chart: Statechart) -> list[int]:
        """Return the places in the chart of the guards that were spoken of."""
        return [place for place, transition in enumerate(chart.transitions) if transition in self._said]

    def leave_said(self, chart: Statechart, places: Iterable[int]) -> None:
        """Take back what `explicit_values` returned."""
        self._said = {chart.transitions[place] for place in places}

    def say(self, chart: Statechart) -> None:
        """Warn of the guards that raised and were not spoken of yet; not during `hold`."""
        for guard in [] if self._held else chart.failing_guards():
            if guard.transition not in self._said:
                self._said.add(guard.transition)
                self._warn(_warning_text(guard))

    @contextlib.contextmanager
    def hold(self, chart: Statechart) -> Iterator[None]:
        """Keep warnings back until the block ends, for the counts of all of it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.say(chart)


def _warning_text(guard: FailingGuard) -> str:
    return (
        f"{guard} and counts as false there (model.chart.guard_errors goes on counting; "
        "statechart.strict=true lets it raise)"
    )


def guards_that_always_fail(chart: Statechart) -> str:
    """Return in words which guards raised each time that they were asked, at least `FEW_TIMES`; empty if none did."""
    found = [guard for guard in chart.failing_guards() if guard.every_time and guard.times >= FEW_TIMES]
    return "; ".join(map(str, found))
