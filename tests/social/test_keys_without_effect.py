"""Keys that are said to have no effect have none."""

import pytest
from key_worlds import NOBODY, another, differing_tables, idle_in, in_plain_world, outcome, without_embedded
from worlds import named

from prism_mesa import Config
from prism_mesa.errors import PrismWarning
from prism_mesa.llm.clients.embedded import embedded_fault
from prism_mesa.params import list_leaves

# -- worlds in which keys have no effect -----------------------------------------------------------------


WRITES = {"content": "llm", "agents.post_rate": 0.4, "agents.n": 12, "rounds": 2}


LEANING, ALIKE = {"leaning": {"of": "agent", "range": [-1, 1]}}, {"agents.homophily.by": "leaning"}
OPINIONS = {"attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}, "opinions.of": "leaning"}


WORLDS = {
    "the plain one": lambda made: ({}, {}),
    "alike, and nobody follows": lambda made: ({"attributes": LEANING, **ALIKE, "utility.sensitivity": 0.05}, {}),
    "alike, and utility is relevance": lambda made: ({"attributes": LEANING, **ALIKE, "network.dynamics": "live"}, {}),
    "opinions that repel": lambda made: ({**OPINIONS, "opinions.rule": "assimilation_repulsion"}, {}),
    "a rule of one's own": lambda made: ({**OPINIONS, "opinions.rule": named(lambda c: c["read"], "rule")}, {}),
    "clocks, and all hours are alike": lambda made: (
        {"attributes": {"zone": {"of": "agent", "values": [-5, 9]}}, "agents.hours": None},
        {"agents.time_zone": "zone"},
    ),
    "no appeal": lambda made: ({"utility.sensitivity": 0.05, "utility.appeal_sigma": 0}, {}),
    "no close ties": lambda made: ({"utility.sensitivity": 0.05, "network.close_ties": 0}, {}),
    "blocks": lambda made: ({"network.kind": "stochastic_block"}, {}),
    "edges": lambda made: (
        {"network.edges": made["edges"], "network.mean_degree": None},
        {"network.kind": "barabasi_albert", "agents.n": 77},
    ),
    "profiles": lambda made: ({"agents.profiles": made["profiles"], "agents.activity": None}, {}),
    "a chart in Python": lambda made: ({}, {}),
    "a reasoner in Python": lambda made: (
        {},
        {"reasoner.kind": "ollama", "reasoner.ledger_path": "x", "reasoner.distilled": "x", "reasoner.llm_share": 0.5},
    ),
    "no oracle": lambda made: ({"statechart.oracle_enabled": False}, {"reasoner.ledger_path": "x"}),
    "no LLM there": lambda made: ({"reasoner.kind": "auto", "reasoner.host": NOBODY}, {"reasoner.ledger_path": "x"}),
    "distilled": lambda made: ({"reasoner.kind": "distilled", "reasoner.distilled": made["distilled"]}, {}),
    "a server": lambda made: (
        {**made["server"], "reasoner.attempts": 1, "reasoner.answer": "probabilities"},
        {"reasoner.distilled": made["distilled"]},
    ),
    "a decision": lambda made: ({**made["decides"], "reasoner.answer": "decision"}, {}),
    "embedded": lambda made: ({"reasoner.kind": "embedded", **TINY}, {}),
    "embedded in its place": lambda made: (
        {"reasoner.kind": "auto", "reasoner.host": NOBODY, **TINY},
        {"reasoner.model": "x"},
    ),
    "a writer without tools": lambda made: (
        {**WRITES, **made["server"], "deliberation.max_tool_calls": 0, "deliberation.iterations": 2},
        {},
    ),
}


TINY = {"agents.n": 12, "rounds": 1}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_said_to_have_no_effect_has_none(world, made, monkeypatch):
    if "embedded" in world and embedded_fault():
        pytest.skip(f"the embedded LLM {embedded_fault()}")
    base, more = WORLDS[world](made)
    defaults = dict(list_leaves(Config))
    with without_embedded(monkeypatch, world):
        base = in_plain_world(base, world)
        idle = idle_in(base, world)
        changed = {key: another(key, defaults[key]) for key in idle if key not in base}
        changed = {key: value for key, value in changed.items() if value is not None} | more
        if base.get("content") == "llm":
            del changed["deliberation.max_seconds"]  # which is refused
        plain, notes = outcome(base, world)
        assert not any("no effect" in note for note in notes), "the world itself sets nothing in vain"
        with pytest.warns(PrismWarning, match=r"^SocialModel: .*: no effect: "):
            other, notes = outcome(base | changed, world)
    said = {key for note in notes if ": no effect: " in note for key in note.partition(": no effect: ")[0].split(", ")}
    assert said == set(changed)
    assert differing_tables(plain, other) == set()


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    """Some keys name a file that is made where it is missing."""
    monkeypatch.chdir(tmp_path)
