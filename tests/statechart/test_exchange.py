"""Charts as SCXML and XState: what is written is read back, others read it alike, and nothing is evaluated."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prism_mesa import F, Statechart, Transition, after, draw_chart, exponential, rate, when
from prism_mesa.errors import ChartError
from prism_mesa.statechart import mermaid

BUSY = F.agent.load > 1


def rings(agent, _):
    agent.rings += 1


def is_late(agent, _):
    return agent.late


PHONE = Statechart(
    ["idle", "ringing", "talking", "broken"],
    [
        Transition("calls", "idle", "ringing", is_late, rings),
        Transition("calls", "idle", "broken", BUSY),
        Transition("drops", "on", "broken"),
        Transition("lifts", "ringing", "talking"),
        Transition("repairs", "broken", "on"),
        Transition(after(3), "ringing", "idle"),
        Transition(after(exponential(2.5)), "talking", "idle"),
        Transition(rate(0.5), "broken", "idle"),
        Transition(when(BUSY), "talking", "broken"),
    ],
    "idle",
    nested={"on": ["ringing", "talking"]},
    history={"on"},
    on_enter={"on": rings},
    name="phone",
)
NAMES = {"guards": {"agent.load > 1": BUSY, "is_late()": is_late}, "actions": {"rings": rings}}


def test_what_is_written_is_read_back():
    read = Statechart.from_scxml(PHONE.to_scxml(), **NAMES)
    assert read.to_scxml().replace('"lambda"', '"agent.load &gt; 1"') == PHONE.to_scxml()
    assert {str(t) for t in read.transitions if t.trigger != "calls"} == {
        str(t) for t in PHONE.transitions if t.trigger != "calls"
    }
    assert (read.initial, read.hierarchy.history, read.name) == ("idle", {"on"}, "phone")


def test_the_first_transition_of_scxml_wins_where_ours_would_ask():
    read = Statechart.from_scxml(PHONE.to_scxml(), **NAMES)
    agent = SimpleNamespace(
        state=read.initial, ticks_in_state=0, state_history=[], max_history_depth=0, load=2, late=True, rings=0
    )
    assert PHONE.select(agent, "calls")[0] == ("ringing", "broken")
    assert read.fire(agent, "calls") == "ringing"
    assert agent.rings == 2


def test_xstate_gets_json_with_guards_and_actions_by_name():
    config = json.loads(json.dumps(PHONE.to_xstate()))
    assert config["initial"] == "idle"
    assert config["states"]["idle"]["on"]["calls"] == [
        {"target": "#phone.on.ringing", "guard": "is_late()", "actions": "rings"},
        {"target": "#phone.broken", "guard": "agent.load > 1"},
    ]
    on = config["states"]["on"]
    assert (on["entry"], on["initial"], set(on["states"])) == ("rings", "ringing", {"ringing", "talking", "history"})
    assert config["states"]["broken"]["on"]["repairs"] == [{"target": "#phone.on.history"}]


def test_mermaid_and_the_figure_draw_a_box_around_nested_states():
    lines = [line.strip() for line in mermaid(PHONE).splitlines()]
    start = lines.index("state on {")
    assert lines[start + 1 : start + 3] == ["ringing", "talking"]
    assert lines.count("on --> broken: drops") == 1
    assert " on" in [text.get_text() for axes in draw_chart(PHONE).axes for text in axes.texts]


@st.composite
def charts_without_guards(draw):
    states = [f"s{i}" for i in range(draw(st.integers(2, 5)))]
    n = draw(st.integers(0, len(states) - 1))
    nested = {"p": states[1 : 1 + n]} if n else {}
    nodes = [*states, *nested]
    targets = draw(
        st.dictionaries(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(nodes)), st.sampled_from(nodes))
    )
    transitions = [Transition(trigger, source, target) for (trigger, source), target in targets.items()]
    return Statechart(states, transitions, states[0], nested=nested, history=set(nested) & draw(st.sets(st.just("p"))))


RECALLED = Statechart(
    ["s0", "s1", "s2"],
    [Transition("a", "s0", "s2"), Transition("a", "s2", "p")],
    "s0",
    nested={"p": ["s1", "s2"]},
    history={"p"},
)


@settings(deadline=None, max_examples=40)
@example(RECALLED, ["a", "a"])
@given(charts_without_guards(), st.lists(st.sampled_from(["a", "b"]), max_size=8))
def test_another_library_reads_our_scxml_and_fires_alike(chart, events):
    processor = pytest.importorskip("statemachine.io.scxml.processor").SCXMLProcessor()
    processor.parse_scxml("chart", chart.to_scxml())
    machine = processor.start()
    agent = SimpleNamespace(state=chart.initial, ticks_in_state=0, state_history=[], max_history_depth=0)
    for event in events:
        chart.fire(agent, event)
        machine.send(event)
        assert agent.state in {str(state) for state in machine.configuration_values}


def document(inside, **root):
    names = "".join(f' {name}="{value}"' for name, value in root.items())
    return f'<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"{names}>{inside}</scxml>'


def state(inside):
    return document(f'<state id="a">{inside}</state>')


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (state('<transition event="e" cond="__import__(1)" target="a"/>'), r"guards\['__import__\(1\)'\]"),
        (state('<onentry><log label="action" expr="\'f\'"/></onentry>'), r"actions\['f'\]"),
        (state("<onentry><script>x</script></onentry>"), "action"),
        (state('<parallel id="p"/>'), "<parallel>"),
        (document("<datamodel/>"), "<datamodel>"),
        ('<!DOCTYPE x [<!ENTITY a "b">]>' + document(""), "DTD"),
        (document(" " * 1_000_001), "longer"),
        (document("<state id='a'>" * 60 + "</state>" * 60), "two states|deeper"),
        (document("<state/>"), "no id"),
        (document(""), "no state"),
        ("<scxml", "SCXML: "),
        (state('<transition event="*" target="a"/>'), r"\*"),
        (state('<transition event="e"/>'), "no target"),
        (state('<transition event="after(0)" target="a"/>'), r"after\(0\)"),
        (state('<transition event="rate(-1)" target="a"/>'), "rate"),
        (state('<transition event="e" target="b"/>'), "'b'"),
    ],
)
def test_foreign_parts_are_refused_with_their_place(text, names):
    with pytest.raises(ChartError, match=names):
        Statechart.from_scxml(text)


def test_all_names_that_are_not_given_are_named_together():
    parts = (
        '<transition event="e" cond="hot" target="a"/>',
        '<transition event="when(cold)" target="a"><log label="action" expr="\'ring\'"/></transition>',
    )
    with pytest.raises(ChartError, match=r"guards\['hot'\].*actions\['ring'\].*guards\['cold'\]"):
        Statechart.from_scxml(state("".join(parts)))


def test_an_inner_parent_that_recalls_is_the_target_of_exports():
    transitions = [Transition("go", "off", "outer"), Transition("next", "a", "b"), Transition("stop", "outer", "off")]
    nested = {"outer": ["inner"], "inner": ["a", "b"]}
    chart = Statechart(["off", "a", "b"], transitions, "off", nested=nested, history={"inner"})
    root = ElementTree.fromstring(chart.to_scxml())
    ids = {element.get("id") for element in root.iter()}
    targets = {element.get("target") for element in root.iter() if element.get("target")}
    assert "inner.history" in targets <= ids
    assert chart.to_xstate()["states"]["off"]["on"]["go"] == [{"target": "#chart.outer.inner.history"}]


def test_an_open_choice_is_noted_in_a_document_that_parses():
    chart = Statechart(["a", "b"], [Transition("go", "a", "b", BUSY), Transition("go", "a", None)], "a")
    root = ElementTree.fromstring(chart.to_scxml())
    assert [element.get("event") for element in root.iter() if element.get("event")] == ["go"]
    assert "go" in chart.to_xstate()["states"]["a"]["description"]
