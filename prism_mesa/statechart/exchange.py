"""Charts as SCXML and as configurations of XState. Guards and actions are names, which are never evaluated."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET

from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.nesting import Node
from prism_mesa.statechart.states import state_name
from prism_mesa.statechart.timing import After, Rate, When, after, exponential, probability, rate, when
from prism_mesa.statechart.transitions import Transition, function_name

if TYPE_CHECKING:
    from prism_mesa.statechart.definition import ChartDefinition

_NAMESPACE: Final = "http://www.w3.org/2005/07/scxml"
_MAX_CHARS: Final = 1_000_000
_MAX_DEPTH: Final = 50
_HISTORY: Final = ".history"
_LACKS: Final = (
    "Where the conditions of several transitions are true, PRISM asks an oracle; SCXML takes the first. "
    "Ticks, rates and conditions are events, which their names describe."
)
_KNOWN: Final = frozenset("scxml state final initial history transition onentry onexit log".split())


def to_scxml(chart: "ChartDefinition") -> str:
    """Return a chart as SCXML; unguarded transitions come last, and comments say what SCXML lacks."""
    root = ET.Element("scxml", xmlns=_NAMESPACE, version="1.0", name=chart.name, initial=_node_id(chart, chart.initial))
    root.append(ET.Comment(f" {_LACKS} "))
    for node in _children(chart, None):
        _add_node(chart, root, node)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_node(chart: "ChartDefinition", parent: ET.Element, node: Node) -> None:
    hierarchy = chart.hierarchy
    element = ET.SubElement(parent, "state", id=_node_id(chart, node))
    for tag, actions in (("onentry", hierarchy.on_enter), ("onexit", hierarchy.on_exit)):
        if node in actions:
            _add_action(ET.SubElement(element, tag), actions[node])
    leaving = [t for t in chart.transitions if (t.placement.source or t.source) == node]
    unique = {(t.trigger, t.target, t.guard, t.action): t for t in leaving}.values()
    for t in sorted(unique, key=lambda t: (chart.triggers.index(t.trigger), t.guard is None)):
        if t.target is None:
            element.append(ET.Comment(f" {t}: PRISM asks an oracle "))
            continue
        target = _node_id(chart, _target(t)) + (_HISTORY if t.placement.recalled else "")
        event = ET.SubElement(element, "transition", event=_event(chart, t), target=target)
        if t.guard is not None:
            event.set("cond", t.guard_label)
        if t.action is not None:
            _add_action(event, t.action)
    if node in hierarchy.history:
        history = ET.SubElement(element, "history", id=_node_id(chart, node) + _HISTORY, type="deep")
        ET.SubElement(history, "transition", target=_node_id(chart, hierarchy.leaves(node)[0]))
    for child in _children(chart, node):
        _add_node(chart, element, child)


def _target(t: Transition) -> Node:
    """Return the node that a transition enters; this is the inner parent if only that has a history."""
    return t.placement.recalled or t.placement.target or t.target


def _children(chart: "ChartDefinition", parent: Node | None) -> list[Node]:
    hierarchy = chart.hierarchy
    if parent is not None:
        return list(hierarchy.children.get(parent, ()))
    return [node for node in (*hierarchy.children, *chart.ordered_states) if not hierarchy.ancestors(node)]


def _node_id(chart: "ChartDefinition", node: Node) -> str:
    """Return a node's name, or if it is no XML name an id by its code."""
    name = str(state_name(node))
    return name if re.fullmatch(r"[A-Za-z_][\w.-]*", name) else f"state_{chart.codes.get(node, hash(name) % 10**6)}"


def _event(chart: "ChartDefinition", t: Transition) -> str:
    ticks = chart.timeouts.get(t.source) if t.trigger == "timeout" else None
    return quote(t.trigger if ticks is None else str(after(ticks)), safe="()")


def _add_action(element: ET.Element, action: Any) -> None:
    ET.SubElement(element, "log", label="action", expr=f"'{function_name(action)}'")


def to_xstate(chart: "ChartDefinition") -> dict[str, Any]:
    """Return a chart as a configuration of an XState machine (JSON types); guards and actions are names."""
    root = {"id": chart.name, "initial": _path(chart, chart.initial)[0]}
    return root | {"states": {_node_id(chart, node): _xstate_node(chart, node) for node in _children(chart, None)}}


def _xstate_node(chart: "ChartDefinition", node: Node) -> dict[str, Any]:
    hierarchy, state = chart.hierarchy, dict[str, Any]()
    for key, actions in (("entry", hierarchy.on_enter), ("exit", hierarchy.on_exit)):
        if node in actions:
            state[key] = function_name(actions[node])
    leaving = [t for t in chart.transitions if (t.placement.source or t.source) == node and t.target is not None]
    for t in sorted(leaving, key=lambda t: t.guard is None):
        path = ".".join(_path(chart, _target(t)))
        entry = {"target": f"#{chart.name}.{path}{_HISTORY if t.placement.recalled else ''}"}
        entry |= {"guard": t.guard_label} if t.guard is not None else {}
        entry |= {"actions": function_name(t.action)} if t.action is not None else {}
        entries = state.setdefault("on", {}).setdefault(unquote(_event(chart, t)), [])
        if entry not in entries:
            entries.append(entry)
    if children := _children(chart, node):
        state["initial"] = _node_id(chart, children[0])
        state["states"] = {_node_id(chart, child): _xstate_node(chart, child) for child in children}
        if node in hierarchy.history:
            state["states"][_HISTORY[1:]] = {"type": "history", "history": "deep"}
    return state


def _path(chart: "ChartDefinition", node: Node) -> list[str]:
    return [_node_id(chart, part) for part in [*chart.hierarchy.ancestors(node)[::-1], node]]


def read_scxml(
    text: str, guards: Mapping[str, Any] | None, actions: Mapping[str, Callable[[Any, Any], None]] | None
) -> dict[str, Any]:
    """Return the arguments of the chart that an SCXML document describes.

    Raises:
        ChartError: If the document is too large, has a DTD, or has parts that charts lack or names that are not given.
    """
    if len(text) > _MAX_CHARS or "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ChartError(f"SCXML: longer than {_MAX_CHARS:,} characters, or with a DTD; leave out the DTD")
    try:
        root = ET.fromstring(text)  # noqa: S314 - without a DTD there are no entities
    except ET.ParseError as error:
        raise ChartError(f"SCXML: {error}") from None
    reader = _Reader(guards or {}, actions or {})
    reader.read(root, None, 0)
    if not reader.states:
        raise ChartError("SCXML: no state")
    return {
        "states": reader.states,
        "transitions": reader.transitions,
        "initial": root.get("initial") or reader.children_of_root[0],
        "nested": reader.nested,
        "history": reader.history,
        "on_enter": reader.on_enter,
        "on_exit": reader.on_exit,
        "name": root.get("name") or "chart",
    }


class _Reader:
    """Collects the parts of a chart from the elements of SCXML."""

    def __init__(self, guards: Mapping[str, Any], actions: Mapping[str, Any]) -> None:
        self._guards, self._actions = guards, actions
        self.states: list[str] = []
        self.children_of_root: list[str] = []
        self.transitions: list[Transition] = []
        self.nested: dict[str, list[str]] = {}
        self.history: list[str] = []
        self.on_enter: dict[str, Any] = {}
        self.on_exit: dict[str, Any] = {}

    def read(self, element: ET.Element, name: str | None, depth: int) -> None:
        """Read an element with the states in it."""
        if depth > _MAX_DEPTH:
            raise ChartError(f"SCXML: states are nested deeper than {_MAX_DEPTH}")
        children = self.children_of_root if name is None else list[str]()
        earlier: dict[str, list[Any]] = {}
        for part in element:
            match part.tag.rpartition("}")[2]:
                case "state" | "final":
                    child = _attribute(part, "id")
                    children.append(child)
                    self.read(part, child, depth + 1)
                case "transition" if name is not None:
                    self.transitions += self._read_transitions(part, name, earlier)
                case "onentry" | "onexit" as tag if name is not None:
                    (self.on_enter if tag == "onentry" else self.on_exit)[name] = self._read_action(part)
                case "history" if name is not None:
                    self.history.append(name)
                case tag:
                    raise ChartError(f"SCXML: <{tag}> in {name or 'the root'}: charts have no such element")
        if name is not None and children:
            first = element.get("initial", children[0])
            self.nested[name] = sorted(children, key=lambda child: child != first)
        elif name is not None:
            self.states.append(name)

    def _read_transitions(self, part: ET.Element, source: str, earlier: dict[str, list[Any]]) -> Iterator[Transition]:
        """Yield a transition for each event; in SCXML the first in the document wins, so later ones mean "and not"."""
        target, cond = _attribute(part, "target").removesuffix(_HISTORY), part.get("cond")
        guard = None if cond is None else self._find(self._guards, cond, "guards")
        action = self._read_action(part) if len(part) else None
        for event in _attribute(part, "event").split():
            others = earlier.setdefault(event, [])
            if not any(other is None for other in others):  # an unguarded one wins over all that follow
                full_guard = _and_not(guard, tuple(others)) if others and guard is not None else guard
                yield Transition(self._trigger(unquote(event)), source, target, full_guard, action)
                others.append(guard)

    def _read_action(self, part: ET.Element) -> Any:
        names = [log.get("expr", "").strip("'\"") for log in part if log.tag.rpartition("}")[2] == "log"]
        if len(names) != 1 or len(part) != 1:
            raise ChartError('SCXML: an action is one <log label="action" expr="\'name\'"/>')
        return self._find(self._actions, names[0], "actions")

    def _find(self, known: Mapping[str, Any], name: str, where: str) -> Any:
        if name not in known:
            raise ChartError(f"SCXML: no {where}[{name!r}] is given.{did_you_mean(name, known)}")
        return known[name]

    def _trigger(self, event: str) -> str | After | Rate | When:
        if event == "*":
            raise ChartError('SCXML: event="*": name the events')
        match = re.fullmatch(r"(after|exponential|rate|probability|when)\((.+)\)", event.partition(" #")[0])
        if match is None:
            return event
        kind, inner = match.groups()
        if kind == "after":
            mean = re.fullmatch(r"exponential\(([\d.e+-]+)\)", inner)
            return after(exponential(float(mean[1])) if mean else int(inner) if inner.isdecimal() else inner)  # type: ignore[arg-type]
        if kind == "when":
            return when(self._find(self._guards, inner, "guards"))
        is_number = re.fullmatch(r"[\d.e+-]+", inner)
        value = float(inner) if is_number else self._find(self._guards, inner, "guards")
        return rate(value) if kind == "rate" else probability(value)


def _attribute(part: ET.Element, name: str) -> str:
    value = part.get(name)
    if not value:
        raise ChartError(f"SCXML: <{part.tag.rpartition('}')[2]}> has no {name}")
    return value


def _and_not(guard: Any, earlier: tuple[Any, ...]) -> Any:
    """Return a guard that is true where `guard` is, and none of the earlier guards."""
    if all(isinstance(part, Expression) for part in (guard, *earlier)):
        for other in earlier:
            guard = guard & ~other
        return guard
    return lambda agent, context: not any(other(agent, context) for other in earlier) and guard(agent, context)
