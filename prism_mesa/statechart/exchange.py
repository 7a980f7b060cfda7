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
_NUMBER: Final = r"[\d.e+-]+"
_LACKS: Final = (
    "Where the conditions of several transitions are true, PRISM asks an oracle; SCXML takes the first. "
    "Ticks, rates and conditions are events, which their names describe."
)


def to_xstate(chart: "ChartDefinition") -> dict[str, Any]:
    """Return the chart as the configuration of an XState machine, in JSON types; guards and actions are names."""
    states = {_node_id(chart, node): _read_node(chart, node) for node in chart.hierarchy.tops}
    return {"id": chart.name, "initial": _path(chart, chart.initial)[0], "states": states}


def _read_node(chart: "ChartDefinition", node: Node) -> dict[str, Any]:
    """Return the configuration of a state or a parent; unguarded transitions come last."""
    hierarchy, state = chart.hierarchy, dict[str, Any]()
    for key, functions in (("entry", hierarchy.on_enter), ("exit", hierarchy.on_exit)):
        if node in functions:
            state[key] = function_name(functions[node])
    leaving = [t for t in chart.transitions if (t.placement.source or t.source) == node]
    for t in sorted(leaving, key=lambda t: (chart.triggers.index(t.trigger), t.guard is None)):
        if t.target is None:
            state["description"] = f"An oracle may choose on {t.trigger}."
            continue
        recalled, target = t.placement.recalled, t.placement.recalled or t.placement.target or t.target
        if recalled in hierarchy.ancestors(node):  # the state that is left is the one to recall
            recalled, target = "", node
        path = ".".join(_path(chart, target)) + (_HISTORY if recalled else "")
        arrow = {"target": f"#{chart.name}.{path}"}
        arrow |= {"guard": t.guard_label} if t.guard is not None else {}
        arrow |= {"actions": function_name(t.action)} if t.action is not None else {}
        ticks = chart.timeouts.get(t.source) if t.trigger == "timeout" else None
        arrows = state.setdefault("on", {}).setdefault(t.trigger if ticks is None else str(after(ticks)), [])
        if arrow not in arrows:
            arrows.append(arrow)
    if children := hierarchy.is_parent(node) and hierarchy.children[node]:
        history = {_HISTORY[1:]: {"type": "history", "history": "deep"}} if node in hierarchy.history else {}
        state["initial"] = _node_id(chart, children[0])
        state["states"] = history | {_node_id(chart, child): _read_node(chart, child) for child in children}
    return state


def _node_id(chart: "ChartDefinition", node: Node) -> str:
    """Return a node's name, or if it is no plain name an id by its code."""
    name = str(state_name(node))
    return name if re.fullmatch(r"[A-Za-z_][\w-]*", name) else f"state_{chart.codes.get(node, hash(name) % 10**6)}"


def _path(chart: "ChartDefinition", node: Node) -> list[str]:
    return [_node_id(chart, part) for part in [*chart.hierarchy.ancestors(node)[::-1], node]]


def to_scxml(chart: "ChartDefinition") -> str:
    """Return the chart as SCXML; guards and actions are names, and comments say what SCXML lacks."""
    root = ET.Element("scxml", xmlns=_NAMESPACE, version="1.0", name=chart.name, initial=_node_id(chart, chart.initial))
    root.append(ET.Comment(f" {_LACKS} "))
    for name, state in to_xstate(chart)["states"].items():
        _add_state(root, name, state)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_state(parent: ET.Element, name: str, state: Mapping[str, Any]) -> None:
    """Add a state of a configuration of XState, with the states in it."""
    element = ET.SubElement(parent, "state", id=name)
    if "description" in state:
        element.append(ET.Comment(f" {state['description'].replace('--', '- -')} "))
    for tag, key in (("onentry", "entry"), ("onexit", "exit")):
        if key in state:
            _add_action(ET.SubElement(element, tag), state[key])
    for event, arrow in [(event, arrow) for event, arrows in state.get("on", {}).items() for arrow in arrows]:
        *_, above, target = arrow["target"].split(".")
        target = above + _HISTORY if target == _HISTORY[1:] else target
        part = ET.SubElement(element, "transition", event=quote(event, safe="()"), target=target)
        if "guard" in arrow:
            part.set("cond", arrow["guard"])
        if "actions" in arrow:
            _add_action(part, arrow["actions"])
    for child, inner in state.get("states", {}).items():
        if inner.get("type") != "history":
            _add_state(element, child, inner)
            continue
        history, first, entered = ET.SubElement(element, "history", id=name + _HISTORY, type="deep"), name, state
        while "initial" in entered:
            first = entered["initial"]
            entered = entered["states"][first]
        ET.SubElement(history, "transition", target=first)


def _add_action(element: ET.Element, name: str) -> None:
    ET.SubElement(element, "log", label="action", expr=f"'{name}'")


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
    tops = reader.read(root, None, 0)
    if reader.missing:
        raise ChartError(f"SCXML: not given: {'; '.join(dict.fromkeys(reader.missing))}")
    if not reader.arguments["states"]:
        raise ChartError("SCXML: no state")
    return reader.arguments | {"initial": root.get("initial") or tops[0], "name": root.get("name") or "chart"}


class _Reader:
    """Collects the arguments of a chart from the elements of SCXML."""

    def __init__(self, guards: Mapping[str, Any], actions: Mapping[str, Any]) -> None:
        self._guards, self._actions = guards, actions
        self.missing: list[str] = []
        self.arguments: dict[str, Any] = {"states": [], "transitions": [], "nested": {}, "history": []}
        self.arguments |= {"on_enter": {}, "on_exit": {}}

    def read(self, element: ET.Element, name: str | None, depth: int) -> list[str]:
        """Read an element with the states in it, and return the names of these states."""
        if depth > _MAX_DEPTH:
            raise ChartError(f"SCXML: states are nested deeper than {_MAX_DEPTH}")
        children: list[str] = []
        earlier: dict[str, list[Any]] = {}
        for part in element:
            match part.tag.rpartition("}")[2]:
                case "state" | "final":
                    children.append(_attribute(part, "id"))
                    self.read(part, children[-1], depth + 1)
                case "transition" if name is not None:
                    self.arguments["transitions"] += self._read_transitions(part, name, earlier)
                case "onentry" | "onexit" as tag if name is not None:
                    self.arguments["on_enter" if tag == "onentry" else "on_exit"][name] = self._read_action(part)
                case "history" if name is not None:
                    self.arguments["history"].append(name)
                case tag:
                    raise ChartError(f"SCXML: <{tag}> in {name or 'the root'}: charts have no such element")
        if children and name is not None:
            first = element.get("initial", children[0])
            self.arguments["nested"][name] = sorted(children, key=lambda child: child != first)
        elif name is not None:
            self.arguments["states"].append(name)
        return children

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

    def _trigger(self, event: str) -> str | After | Rate | When:
        if event == "*":
            raise ChartError('SCXML: event="*": name the events')
        match = re.fullmatch(r"(after|rate|probability|when)\((.+)\)", event.partition(" #")[0])
        if match is None:
            return event
        kind, inner = match.groups()
        if kind == "after":
            mean = re.fullmatch(rf"exponential\(({_NUMBER})\)", inner)
            return after(exponential(float(mean[1])) if mean else int(inner) if inner.isdecimal() else inner)  # type: ignore[arg-type]
        value = float(inner) if re.fullmatch(_NUMBER, inner) else self._find(self._guards, inner, "guards")
        make: dict[str, Callable[[Any], Rate | When]] = {"rate": rate, "probability": probability, "when": when}
        return make[kind](value)

    def _find(self, known: Mapping[str, Any], name: str, where: str) -> Any:
        """Return what is known by a name; a name that is not given is noted, so that all can be named together."""
        if name not in known:
            self.missing.append(f"{where}[{name!r}]{did_you_mean(name, known)}")
        return known.get(name, lambda agent, context: False)


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
