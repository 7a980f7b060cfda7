"""Keys that are said to have no effect have none."""

import warnings

import pytest
from key_worlds import NOBODY, another, differing_tables, idle_in, in_plain_world, outcome, table, without_embedded
from worlds import named, plain_keywords

from prism_mesa import Config
from prism_mesa.errors import PrismWarning
from prism_mesa.llm.clients.embedded import embedded_fault
from prism_mesa.params import leaves
from prism_mesa.social.model import SocialModel
from prism_mesa.social.without_effect import TABLE

# -- worlds in which keys have no effect -----------------------------------------------------------------


WRITES = {"content": "llm", "agents.post_rate": 0.4, "agents.n": 12, "rounds": 2}


LEANING, ALIKE = {"leaning": {"of": "agent", "range": [-1, 1]}}, {"agents.homophily.by": "leaning"}
OPINIONS = {"attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}, "opinions.of": "leaning"}


WORLDS = {
    "the plain one": lambda made: ({}, {}),
    "nothing goes by who is alike": lambda made: ({"attributes": LEANING}, ALIKE),
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
    "all are equally popular": lambda made: ({"network.follower_sigma": 0, "network.followee_sigma": 0.8}, {}),
    "blocks": lambda made: ({"network.kind": "stochastic_block"}, {}),
    "edges": lambda made: (
        {"network.edges": made["edges"], "network.mean_degree": None},
        {"network.kind": "barabasi_albert", "agents.n": 77},
    ),
    "profiles": lambda made: ({"agents.profiles": made["profiles"], "agents.activity": None}, {}),
    "activity of a file and posting apart": lambda made: (
        {"agents.profiles": activities(made["tmp"]), "agents.post_sigma": 0.5, "agents.activity": None},
        {},
    ),
    "nobody posts": lambda made: ({"agents.post_rate": 0, "posts.seeded.count": 3}, {"agents.posting": "always"}),
    "nobody comes online": lambda made: ({"agents.activity": 0}, {}),
    "bare texts": lambda made: ({"posts.file": made["bare"]}, {}),
    "a chart in Python": lambda made: ({}, {}),
    "a reasoner in Python": lambda made: (
        {},
        {"reasoner.kind": "ollama", "reasoner.ledger_path": "x", "reasoner.distilled": "x", "reasoner.llm_share": 0.5},
    ),
    "no oracle": lambda made: ({"statechart.oracle_enabled": False}, {"reasoner.ledger_path": "x"}),
    "no oracle, but a writer": lambda made: ({"statechart.oracle_enabled": False, **WRITES, **made["server"]}, {}),
    "no LLM there": lambda made: ({"reasoner.kind": "auto", "reasoner.host": NOBODY}, {"reasoner.ledger_path": "x"}),
    "distilled": lambda made: ({"reasoner.kind": "distilled", "reasoner.distilled": made["distilled"]}, {}),
    "distilled in its place": lambda made: (
        {"reasoner.kind": "auto", "reasoner.host": NOBODY, "reasoner.distilled": made["distilled"]},
        {"reasoner.llm_share": 0.5},
    ),
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
    "a network that moves by others than these": lambda made: (
        {"network.dynamics": "live", "network.rates.follow": 0, "network.rates.unfollow": 0},
        {},
    ),
    "no band": lambda made: ({"agents.band": 0}, {}),
    "a writer without tools": lambda made: (
        {**WRITES, **made["server"], "deliberation.max_tool_calls": 0, "deliberation.iterations": 2},
        {},
    ),
}


def activities(folder):
    return table(folder / "a.csv", ["agent", "activity"], [(i, 0.3 + i / 60) for i in range(30)])


TINY = {"agents.n": 12, "rounds": 1}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_said_to_have_no_effect_has_none(world, made, monkeypatch):
    if "embedded" in world and embedded_fault():
        pytest.skip(f"the embedded LLM {embedded_fault()}")
    base, more = WORLDS[world](made)
    defaults = dict(leaves(Config))
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


@pytest.mark.slow
@pytest.mark.skipif(bool(embedded_fault()), reason=f"the embedded LLM {embedded_fault()}")
def test_every_entry_of_the_table_is_tried_in_some_world(made, monkeypatch):
    tried = set()
    for world, of in WORLDS.items():
        base, more = of(made)
        with without_embedded(monkeypatch, world), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrismWarning)
            tried |= set(idle_in(in_plain_world(base, world) | more, world).values())
    assert [row.keys for place, row in enumerate(TABLE) if place not in tried] == []


@pytest.mark.parametrize(
    "posting",
    [{"agents_posting": "online", "agents_post_sigma": 0.5, "agents_popularity": 0.5}, {"agents_posting": "online"}],
)
def test_activity_of_a_file_leaves_its_keys_to_the_scale_of_posting_online(posting, tmp_path):
    given = plain_keywords(agents_n=30, agents_profiles=activities(tmp_path), **posting)
    unchanged = SocialModel(**given)
    for changed in ({"agents_activity": 0.2}, {"agents_activity_sigma": 0.4}):
        model = SocialModel(**given | changed)
        assert not any("no effect" in note for note in model.notes)
        assert model.population.activity.tolist() == unchanged.population.activity.tolist()
        assert model.population.post_rate.tolist() != unchanged.population.post_rate.tolist()


def test_every_entry_of_the_table_is_about_keys_that_there_are():
    known = [key for key, _ in leaves(Config)]
    for own in (own for row in TABLE for own in row.keys.split()):
        assert own in known or (own.endswith(".*") and any(key.startswith(own[:-1]) for key in known))


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    """Some keys name a file that is made where it is missing."""
    monkeypatch.chdir(tmp_path)
