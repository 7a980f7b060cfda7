"""Fires per second of the statechart engine and of two packages, on one chart: two states, one guarded transition each.

The chart: scrolling --sees_post--> evaluating --decides--> scrolling, both guarded by ``post.relevance >
agent.threshold`` (an expression for ours, a method of the model for the others). Measured, in many short repeats
taken in turn: scalar `Statechart.fire` that keeps a history of 50 changes and that keeps none (`now`, the simulated
time, is given), `Statechart.fire_many` (selection only, rows instead of fires; with the expression over columns, and
with a Python function row by row), and the packages `transitions` and `python-statemachine`, which keep no history; one
that is not installed is said to be missing.

It asserts results, not times: all engines go through the same 1,001 posts, of which guards refuse some, and must
take the same transitions. Targets are printed as met or not.

    uv run --group bench python benchmarks/statechart.py
"""

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, override

import numpy as np
from measuring import Times, cpu_s, machine, verdict

from prism_mesa import AgentState, F, Statechart, StateTransition, Transition
from prism_mesa.domain import Post
from prism_mesa.statechart import STATES, ArrayColumns
from prism_mesa.statechart.transitions import Guard

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
THRESHOLD: Final = 0.3
GOOD: Final = Post(post_id=7, relevance=0.8)
TRANSITIONS: Final = (("sees_post", "scrolling", "evaluating"), ("decides", "evaluating", "scrolling"))
TRIGGER: Final = {source: trigger for trigger, source, _ in TRANSITIONS}
BY_ROW: Final = "fire_many, Python function row by row"
TARGETS_M: Final = {"fire, history of 50": 0.7, "fire, no history": 2.0}


class Engine(ABC):
    """One agent in one engine, scrolling at first."""

    label: str

    @abstractmethod
    def fire(self, trigger: str, post: Post) -> object:
        """Fire one trigger."""

    @abstractmethod
    def state(self) -> str:
        """Return the agent's state."""

    @abstractmethod
    def there_and_back(self, times: int) -> None:
        """Fire both triggers, `times` times, as fast as the engine's own interface allows."""


@dataclass
class Agent:
    """An agent with the fields of the data model."""

    state: AgentState = AgentState.SCROLLING
    ticks_in_state: int = 0
    timeout_threshold: int = 5
    max_history_depth: int = 50
    state_history: list[StateTransition] = field(default_factory=list)
    threshold: float = THRESHOLD


def compares(agent: Any, post: Any) -> Any:
    """Return what the expression gives."""
    return post.relevance > agent.threshold


GUARDS: Final[dict[str, Guard]] = {
    "fire_many": F.post.relevance > F.agent.threshold,
    BY_ROW: compares,
}


def chart(guard: Guard) -> Statechart:
    """Return the chart for our own engine."""
    transitions = [Transition(trigger, AgentState(a), AgentState(b), guard=guard) for trigger, a, b in TRANSITIONS]
    return Statechart([AgentState.SCROLLING, AgentState.EVALUATING], transitions, AgentState.SCROLLING)


class Own(Engine):
    """`Statechart.fire`, with or without history."""

    def __init__(self, depth: int) -> None:
        self.label = f"fire, history of {depth}" if depth else "fire, no history"
        self.chart, self.agent = chart(GUARDS["fire_many"]), Agent(max_history_depth=depth)

    @override
    def fire(self, trigger: str, post: Post) -> object:
        return self.chart.fire(self.agent, trigger, post, now=NOW)

    @override
    def state(self) -> str:
        return self.agent.state.value

    @override
    def there_and_back(self, times: int) -> None:
        fire, agent = self.chart.fire, self.agent
        for _ in range(times):
            fire(agent, "sees_post", GOOD, now=NOW)
            fire(agent, "decides", GOOD, now=NOW)


class WithTransitions(Engine):
    """The package `transitions`; triggers are methods of the model."""

    label = "transitions"

    def __init__(self) -> None:
        from transitions import Machine

        class User:
            state: str
            threshold = THRESHOLD

            def keen(self, post: Post) -> bool:
                return post.relevance > self.threshold

        self.user: Any = User()
        transitions = [{"trigger": t, "source": a, "dest": b, "conditions": "keen"} for t, a, b in TRANSITIONS]
        states = ["scrolling", "evaluating"]
        Machine(model=self.user, states=states, transitions=transitions, initial="scrolling", auto_transitions=False)

    @override
    def fire(self, trigger: str, post: Post) -> object:
        return getattr(self.user, trigger)(post)

    @override
    def state(self) -> str:
        return str(self.user.state)

    @override
    def there_and_back(self, times: int) -> None:
        sees_post, decides = self.user.sees_post, self.user.decides
        for _ in range(times):
            sees_post(GOOD)
            decides(GOOD)


class WithPythonStatemachine(Engine):
    """The package `python-statemachine`; triggers are methods of the machine."""

    label = "python-statemachine"

    def __init__(self) -> None:
        from statemachine import State, StateMachine

        class Scroller(StateMachine):
            allow_event_without_transition = True
            scrolling = State(initial=True, value="scrolling")
            evaluating = State(value="evaluating")
            sees_post = scrolling.to(evaluating, cond="keen")
            decides = evaluating.to(scrolling, cond="keen")

            def keen(self, post: Post) -> bool:
                return post.relevance > THRESHOLD

        self.machine: Any = Scroller()

    @override
    def fire(self, trigger: str, post: Post) -> object:
        return getattr(self.machine, trigger)(post)

    @override
    def state(self) -> str:
        return str(self.machine.current_state_value)

    @override
    def there_and_back(self, times: int) -> None:
        sees_post, decides = self.machine.sees_post, self.machine.decides
        for _ in range(times):
            sees_post(GOOD)
            decides(GOOD)


@dataclass
class Many:
    """`Statechart.fire_many`; half of the rows scroll, and guards refuse three in ten."""

    label: str
    rows: int

    def __post_init__(self) -> None:
        place = np.arange(self.rows)
        self.chart = chart(GUARDS[self.label])
        self.codes = np.where(place % 2, AgentState.EVALUATING.code, AgentState.SCROLLING.code).astype(np.uint8)
        self.triggers = (place % 2).astype(np.int16)
        self.agents = ArrayColumns({"threshold": np.full(self.rows, THRESHOLD)})
        self.posts = ArrayColumns({"relevance": place * 37 % 101 / 100})

    def select(self) -> Any:
        """Select for all rows."""
        return self.chart.fire_many(self.codes, self.triggers, self.agents, self.posts)

    def assert_equal_to_fire(self, rows: Iterable[int]) -> None:
        """Assert that scalar `fire` goes where `fire_many` went."""
        fired = self.select()
        assert bool(fired.row_by_row_guards) == (self.label == BY_ROW), fired.row_by_row_guards
        for i in rows:
            state = STATES[self.codes[i]]
            agent = Agent(state, max_history_depth=0)
            alone = self.chart.fire(agent, self.chart.triggers[self.triggers[i]], self.posts.row(i), now=NOW)
            many = None if fired.transition_indices[i] < 0 else fired.transitions[fired.transition_indices[i]].target
            assert alone is many, (i, alone, many)


def engines() -> list[Engine]:
    """Return the engines that are here, and say which are not."""
    found: list[Engine] = [Own(50), Own(0)]
    packages: tuple[tuple[str, type[Engine]], ...] = (
        ("transitions", WithTransitions),
        ("statemachine", WithPythonStatemachine),
    )
    for module, kind in packages:
        if find_spec(module):
            found.append(kind())
        else:
            print(f"{kind.label} is not installed (uv run --group bench ...): left out", file=sys.stderr)
    return found


def way_of(engine: Engine) -> list[str]:
    """Return the states that an engine passes through before 1,001 posts; it ends in evaluating."""
    states = []
    for i in range(1001):
        engine.fire(TRIGGER[engine.state()], Post(post_id=i, relevance=i * 37 % 101 / 100))
        states.append(engine.state())
    return states


def measured(found: list[Engine], columns: list[Many], repeats: int) -> dict[str, Times]:
    """Measure all engines in turn, in CPU seconds per fire or row."""
    times = {label: Times() for label in [*(engine.label for engine in found), *(many.label for many in columns)]}
    pairs = {engine.label: 5000 if isinstance(engine, Own) else 200 for engine in found}
    for _ in range(repeats):
        for engine in found:
            n = pairs[engine.label]
            times[engine.label].all.append(cpu_s(partial(engine.there_and_back, n)) / (2 * n))
        for many in columns:
            times[many.label].all.append(cpu_s(many.select) / many.rows)
    return times


def report(times: dict[str, Times]) -> None:
    """Print one row per engine, as Markdown, and the targets by the minima."""
    slowest = max(time.minimum for time in times.values())
    print("| engine | M/s, best (median) | us each, best | times the slowest |\n|---|--:|--:|--:|")
    for label, time in times.items():
        print(
            f"| {label} | {1e-6 / time.minimum:.4g} ({1e-6 / time.median:.4g}) "
            f"| {time.minimum * 1e6:.3g} | {slowest / time.minimum:,.0f} |"
        )
    print()
    for label, target in TARGETS_M.items():
        best, usual = 1e-6 / times[label].minimum, 1e-6 / times[label].median
        print(
            f"- {label}, at least {target} M/s: {best:.2f} at best, {usual:.2f} by the median: "
            f"**{verdict(best >= target)}**"
        )


def main() -> None:
    """Check that the engines agree, measure, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--repeats", type=int, default=60, help="short repeats of each engine")
    options.add_argument("--rows", type=int, default=1_000_000, help="rows of fire_many")
    given = options.parse_args()
    found = engines()
    columns = [Many(label, given.rows // 100 if label == BY_ROW else given.rows) for label in GUARDS]
    present = [engine.label for engine in found if not isinstance(engine, Own)]
    print(f"{machine('numpy', *present)}\n")
    ways = {engine.label: way_of(engine) for engine in found}
    for label, way in ways.items():
        assert way == ways[found[0].label], f"{label} goes another way"
    for many in columns:
        many.assert_equal_to_fire(range(0, many.rows, max(1, many.rows // 1000)))
    times = measured(found, columns, given.repeats)
    ends = {engine.label: engine.state() for engine in found}
    assert len(set(ends.values())) == 1, ends
    report(times)


if __name__ == "__main__":
    main()
