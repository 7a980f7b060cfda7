"""Hierarchy as notation: transitions of nested states, flattened to transitions between the states in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.statechart.states import State, find_state, state_name
from prism_mesa.statechart.transitions import Action, Placement, Transition

type Node = Any
"""A state, or the name of a parent."""


class Hierarchy:
    """The parents of states, and functions to run on entering and leaving states and parents.

    Attributes:
        children: The states and parents in each parent, in order.
        history: The parents that are entered in the state in which they were left.
    """

    def __init__(
        self,
        states: Sequence[State],
        nested: Mapping[str, Iterable[Any]] | None,
        history: Iterable[str],
        on_enter: Mapping[Any, Action] | None,
        on_exit: Mapping[Any, Action] | None,
    ) -> None:
        self.states, nested = states, dict(nested or {})
        for name in nested:
            if not isinstance(name, str) or not name.strip() or name in [state.value for state in states]:
                raise ChartError(f"nested: {name!r} cannot name a parent; choose a string that is not a state")
        self.children: dict[str, tuple[Node, ...]] = dict.fromkeys(nested, ())
        self.children = {name: tuple(self.find(child) for child in nested[name]) for name in nested}
        self._parent: dict[Node, str] = {}
        for name, children in self.children.items():
            if not children:
                raise ChartError(f"nested: {name!r} has no states; give at least one")
            for child in children:
                if child in self._parent:
                    raise ChartError(f"nested: {state_name(child)!r} is in {self._parent[child]!r} and in {name!r}")
                self._parent[child] = name
        for name in self.children:
            self._require_no_cycle(name)
        self.history = frozenset(history)
        for name in sorted(self.history - self.children.keys()):
            raise ChartError(f"history: {name!r} is not in nested.{did_you_mean(name, self.children)}")
        self.on_enter, self.on_exit = self._read_actions("on_enter", on_enter), self._read_actions("on_exit", on_exit)

    def _require_no_cycle(self, name: str) -> None:
        path, parent = [name], self._parent.get(name)
        while parent is not None and parent not in path:
            path.append(parent)
            parent = self._parent.get(parent)
        if parent is not None:
            raise ChartError(f"nested: a cycle, {' in '.join([*path, parent])}; a parent cannot contain itself")

    def _read_actions(self, name: str, actions: Mapping[Any, Action] | None) -> dict[Node, Action]:
        for state, action in (actions or {}).items():
            if not callable(action):
                raise ChartError(f"{name}: {state_name(state)}: {action!r} is not a callable (agent, context)")
        return {self.find(state): action for state, action in (actions or {}).items()}

    def find(self, node: Any) -> Node:
        """Return the state or the parent for a state, a value or a name. Raises ChartError if there is none."""
        return node if isinstance(node, str) and node in self.children else find_state(node, self.states)

    @property
    def tops(self) -> list[Node]:
        """The parents and states that are in no parent."""
        return [node for node in (*self.children, *self.states) if node not in self._parent]

    def leaves(self, node: Node) -> list[State]:
        """Return the states in a parent, in order; a state by itself."""
        if not self.is_parent(node):
            return [node]
        return [leaf for child in self.children[node] for leaf in self.leaves(child)]

    def is_parent(self, node: Node) -> bool:
        """Return whether a node is the name of a parent."""
        return isinstance(node, str) and node in self.children

    def ancestors(self, node: Node) -> list[str]:
        """Return the parent of a node, its parent, and so on."""
        parents: list[str] = []
        while (parent := self._parent.get(parents[-1] if parents else node)) is not None:
            parents.append(parent)
        return parents

    def flatten(self, transition: Transition, source: Node, target: Node | None) -> list[Transition]:
        """Return the transitions between states that a transition between nodes stands for."""
        leaf_target = None if target is None else self.leaves(target)[0]
        return [
            transition.between(leaf, leaf_target, self._place(leaf, source, target)) for leaf in self.leaves(source)
        ]

    def _place(self, leaf: State, source: Node, target: Node | None) -> Placement:
        above_target = [] if target is None else self.ancestors(target)
        common = next((parent for parent in self.ancestors(source) if parent in above_target), None)
        left = self._path(leaf, common)
        level = 1 + self.ancestors(leaf).index(source) if self.is_parent(source) else 0
        recalled: Node = target
        while self.is_parent(recalled) and recalled not in self.history:
            recalled = self.children[recalled][0]
        entries = {
            state: tuple(self.on_enter[node] for node in reversed(self._path(state, common)) if node in self.on_enter)
            for state in (self.leaves(target) if target is not None else ())
        }
        placement = Placement(
            level,
            source if level else "",
            str(target) if self.is_parent(target) else "",
            tuple(self.on_exit[node] for node in left if node in self.on_exit),
            {state: functions for state, functions in entries.items() if functions},
            tuple(node for node in left if node in self.history),
            recalled if self.is_parent(recalled) else "",
        )
        return placement if any(vars(placement).values()) else Transition.placement

    def _path(self, leaf: State, common: str | None) -> list[Node]:
        """Return a state and its parents below `common`, innermost first."""
        ancestors = self.ancestors(leaf)
        return [leaf, *ancestors[: ancestors.index(common) if common in ancestors else None]]
