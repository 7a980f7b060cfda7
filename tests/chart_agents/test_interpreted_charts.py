"""Random charts over random enums: one by one and all at once, agents do what the plain interpreter does."""

from enum import Enum

import mesa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import Interpreter

from prism_mesa import F, Statechart, StatechartAgent, Transition, after, exponential, rate, tick_all
from prism_mesa.chart_agents import column

GUARDS = {
    None: None,
    "high": (lambda fields: fields["energy"] > 2, F.agent.energy > 2),
    "low": (lambda fields: fields["energy"] <= 2, F.agent.energy <= 2),
    "odd": (lambda fields: fields["energy"] % 2 == 1, lambda agent, _: agent.energy % 2 == 1),
}


@st.composite
def charts(draw):
    states = [f"s{i}" for i in range(draw(st.integers(2, 6)))]
    children, left = {}, states[1:]
    for parent in draw(st.sampled_from([[], ["p"], ["p", "q"]])):
        size = draw(st.integers(0, len(left)))
        if size:
            children[parent], left = tuple(left[:size]), [parent, *left[size:]]
    history = draw(st.sets(st.sampled_from(sorted(children)))) if children else set()
    nodes = st.sampled_from([*states, *children])
    transitions, seen = [], set()
    for _ in range(draw(st.integers(4, 14))):
        kind = draw(st.sampled_from(["event", "event", "after", "wait", "rate"]))
        source = draw(st.sampled_from(states) if kind in ("after", "wait") else nodes)
        number = draw(st.integers(1, 2)) if kind in ("event", "after") else draw(st.sampled_from([0.1, 0.5, 2.0]))
        names = {"event": f"e{number}", "after": f"after({number})", "wait": f"after(exponential({number:g}))"}
        name = names.get(kind, f"rate {len(transitions)}")
        free = [guard for guard in GUARDS if (name, source, guard) not in seen]
        free = [guard for guard in free if not (guard == "odd" and any(s[:2] == (name, source) for s in seen))]
        free = [guard for guard in free if (name, source, "odd") not in seen or guard is None]
        if free:
            guard = draw(st.sampled_from(free))
            seen.add((name, source, guard))
            parts = {"trigger": (kind, number), "name": name, "source": source, "target": draw(nodes)}
            transitions.append(parts | {"guard": guard})
    return states, transitions, children, history


def made(states, transitions, children, history, log):
    kind = Enum("Own", [(name.upper(), name) for name in states])
    triggers = {"after": after, "wait": lambda mean: after(exponential(mean)), "rate": rate}
    parts = [
        Transition(
            t["name"] if t["trigger"][0] == "event" else triggers[t["trigger"][0]](t["trigger"][1]),
            t["source"],
            t["target"],
            GUARDS[t["guard"]] and GUARDS[t["guard"]][1],
        )
        for t in transitions
    ]
    nodes = [*states, *children]
    exits = {node: (lambda agent, _, node=node: log[agent.unique_id].append(("exit", node))) for node in nodes}
    entries = {node: (lambda agent, _, node=node: log[agent.unique_id].append(("enter", node))) for node in nodes}
    hooks = {"on_enter": entries, "on_exit": exits} if log is not None else {}
    return Statechart(kind, parts, states[0], nested=children, history=history, **hooks)


def agents_of(chart, n, energies):
    class Own(StatechartAgent, mesa.Agent):
        energy = column(0)

    Own.chart = chart
    model = mesa.Model(rng=5)
    for i in range(n):
        Own(model).energy = energies[i]
    return model


@pytest.mark.filterwarnings("ignore:.*is not a trigger of:prism_mesa.errors.PrismWarning")
@settings(deadline=None, max_examples=200)
@given(charts(), st.lists(st.integers(0, 4), min_size=5, max_size=5), st.data())
def test_agents_agree_with_the_interpreter_one_by_one_and_all_at_once(drawn, energies, data):
    states, transitions, children, history = drawn
    logs = [{i: [] for i in range(1, 6)} for _ in range(2)]
    models = [agents_of(made(*drawn, log), 5, energies) for log in logs]
    plain = agents_of(made(*drawn, None), 5, energies)
    streams = vars(models[0])["_chart_agents"].streams
    parts = [t | {"guard": GUARDS[t["guard"]] and GUARDS[t["guard"]][0]} for t in transitions]
    expected = [
        Interpreter(parts, children, states[0], lambda p, t, i=i: streams.uniform(p, i, round_=t)[0], history)
        for i in range(1, 6)
    ]
    for event in data.draw(st.lists(st.sampled_from(["tick", "e1", "e2"]), min_size=4, max_size=12)):
        if event == "tick":
            models[0].agents.do("tick")
            tick_all(models[1].agents)
            tick_all(plain.agents)
        else:
            for model in (*models, plain):
                model.agents.do("fire", event)
        for one, energy in zip(expected, energies, strict=True):
            one.tick({"energy": energy}) if event == "tick" else one.fire(event, {"energy": energy})
        wanted = [(one.state, one.made - one.entered) for one in expected]
        for model in (*models, plain):
            assert [(agent.state.value, agent.ticks_in_state) for agent in model.agents] == wanted
    for log in logs:
        assert list(log.values()) == [one.log for one in expected]
    for model in models[1:]:
        for agent, other in zip(model.agents, models[0].agents, strict=True):
            assert [str(entry) for entry in agent.state_history] == [str(entry) for entry in other.state_history]
