"""Keys that were set and change nothing: each is named, and it is true; all others do change something."""

import csv
import warnings
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from minds import THINKS, quiet
from worlds import Memory, named

from prism_mesa import Config, Reasoner, load_config
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.without_effect import TABLE as OF_NATIONS
from prism_mesa.errors import ConfigError, PrismWarning
from prism_mesa.llm import LLMClient, LLMParams, factory
from prism_mesa.llm.clients.embedded import embedded_fault
from prism_mesa.llm.stand_in import StandIn
from prism_mesa.params import leaves, nested, said_of
from prism_mesa.reasoner.distilled import DECLARATION, LINEAR_NAMES, NAMES, DistilledModel, Linear, OptionModel
from prism_mesa.runs.config import EconomyConfig, load
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import build_chart, social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.without_effect import TABLE, _known
from prism_mesa.social.world.build import make_world

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9"
SMALL = {"agents.n": 30, "rounds": 3, "network.mean_degree": 6, "agents.band": 0.3, "agents.activity": 0.8}

# where the next value by a rule is not allowed, or says nothing; None: it cannot be changed here
ANOTHER = {
    "agents.profiles": None,
    "clock.start": "2027-03-01T00:00:00Z",
    "content": "template",
    "feed.mode": "random",
    "feed.size": 2,
    "files.encoding": "latin-1",
    "feed.velocity_window": 1,
    "feed.window": 1,
    "name": None,
    "network.direction": "src_follows_dst",
    "network.edges": None,
    "network.kind": "erdos_renyi",
    "network.within": 0.5,
    "posts.authors": "rank",
    "posts.embedder": "wordllama",
    "posts.file": None,
    "reasoner.answer": "probabilities",
    "reasoner.rule.media": 6.0,
    "records.engagements": 0.5,
    "records.impressions": 0.5,
    "records.transitions": 0.5,
    "reasoner.distilled": None,
    "reasoner.fallback": "rule",
    "reasoner.host": NOBODY,
    "reasoner.kind": None,
    "reasoner.ledger": None,
    "reasoner.ledger_path": None,
    "reasoner.llm_share": None,
    "reasoner.model": "another",
    "reasoner.persona": "archetype",
    "reasoner.spend_on": "followed",
    "scheduler": "mesa",
    "statechart.chart": named(build_chart(asks_action=True), "asking"),
    "economy.domain": "trade",
    "economy.first_quarter": "2010Q1",
    "economy.limits.lower_bound": 3.0,
    "economy.limits.highest_rate": 1.0,
    "economy.limits.rate_step": 0.05,
    "economy.macro.demand_lag_1": 1.2,
    "economy.macro.demand_lag_2": -0.5,
    "economy.nations": None,
    "economy.policy": None,
    "economy.prompt_style": "examples",
}


def another(key, value):
    """Return another value of a key, or None if it is left as it is."""
    if key in ANOTHER:
        return ANOTHER[key]
    match value:
        case bool():
            return not value
        case int():
            return value + 3
        case float():
            return value * 1.5 + 0.01 if value > 1 or value * 1.5 + 0.01 <= 1 else value / 2
    return 7


# -- worlds in which keys have no effect -----------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with StandIn() as server:
        yield server


def table(file, columns, rows):
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([columns, *rows])
    return str(file)


def words(i):
    return ("tea", "jazz", "rain")[i % 3]


@pytest.fixture
def made(tmp_path, server):
    """Return what the worlds are made from: files, a server, and a ledger of it."""
    follows = [(i, (i + step) % 30) for i in range(30) for step in (1, 3, 7)]
    numbers = "engagement_threshold timeout_threshold activity post_rate like reply reshare".split()
    profile = (0.5, 4, 0.8, 0.3, 0.5, 0.25, 0.25)
    choices = [
        OptionModel(
            options=list(options),
            scores=[Linear(intercept=0.1, weights=[0.1] * len(LINEAR_NAMES))] * (len(options) - 1),
            rows=1,
        )
        for options in WalkTables(social_chart).option_sets
        if len(options) > 1
    ]
    distilled = DistilledModel(
        format=1,
        kind="logistic",
        features=list(NAMES),
        declaration=DECLARATION,
        persona="individual",
        archetypes=8,
        choices=choices,
        provenance={},
        report={},
    )
    (tmp_path / "distilled.json").write_text(distilled.text(), encoding="utf-8")
    pd.DataFrame({"text": [f"{words(i)} {i}" for i in range(30)]}).to_parquet(tmp_path / "bare.parquet")
    return {
        "edges": table(tmp_path / "edges.csv", ["src", "dst"], follows),
        "profiles": table(tmp_path / "p.csv", ["agent", *numbers], [(i, *profile) for i in range(30)]),
        "bare": table(tmp_path / "bare.csv", ["text"], [(f"{words(i)} {i}",) for i in range(30)]),
        "parquet": str(tmp_path / "bare.parquet"),
        "labels": table(tmp_path / "labels.csv", ["text", "topic"], [(f"{words(i)} {i}", words(i)) for i in range(30)]),
        "distilled": str(tmp_path / "distilled.json"),
        "server": {"reasoner.kind": "ollama", "reasoner.host": server.url},
        "tmp": tmp_path,
    }


X = "feed.x_algo."
ZEROS = ["good_click", "profile_click", "negative", "report"]
WEIGHTLESS = {f"{X}weight_{name}": 0 for name in [*ZEROS, "like", "reshare", "reply_engaged"]}
NEVER = {f"{X}rate_{name}": 0 for name in ZEROS} | {f"{X}reply_engaged": 0}
WRITES = {"content": "llm", "agents.post_rate": 0.4}

WORLDS = {
    "the default": lambda made: ({}, {}),
    "one block": lambda made: ({"network.kind": "stochastic_block", "network.blocks": 1}, {}),
    "edges": lambda made: (
        {"network.edges": made["edges"], "network.mean_degree": None},
        {"network.kind": "barabasi_albert", "agents.n": 77},
    ),
    "profiles": lambda made: ({"agents.profiles": made["profiles"], "agents.activity": None}, {}),
    "only likes": lambda made: ({"agents.reply": 0, "agents.reshare": 0}, {}),
    "bare texts": lambda made: ({"posts.file": made["bare"]}, {}),
    "texts in Parquet": lambda made: ({"posts.file": made["parquet"]}, {}),
    "labels alone": lambda made: ({"posts.file": made["labels"], "posts.label_weight": 1}, {}),
    "weights of 0": lambda made: (
        {"feed.mode": "x_algo", **WEIGHTLESS, f"{X}out_of_network": 0, f"{X}author_decay": 1},
        {},
    ),
    "rates of 0": lambda made: ({"feed.mode": "x_algo", **NEVER}, {}),
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
    "embedded": lambda made: ({"reasoner.kind": "embedded", **TINY}, {}),
    "embedded in its place": lambda made: (
        {"reasoner.kind": "auto", "reasoner.host": NOBODY, **TINY},
        {"reasoner.model": "x"},
    ),
    "no band": lambda made: ({"agents.band": 0}, {}),
    "a writer without tools": lambda made: (
        {**WRITES, **made["server"], "deliberation.max_tool_calls": 0, "deliberation.iterations": 2},
        {},
    ),
}
TINY = {"agents.n": 12, "rounds": 1}
GIVEN = {"a chart in Python": {"chart": social_chart}, "a reasoner in Python": {"reasoner": lambda: Reasoner(says)}}


def says(prompt):
    return ("composing", "scrolling")[len(prompt) % 2]


@contextmanager
def without_embedded(monkeypatch, world):
    with monkeypatch.context() as patch:
        if "there" in world or world == "distilled in its place":
            patch.setattr(factory, "embedded_fault", lambda path: "is not there")
        yield


def given_in(world):
    own = GIVEN.get(world, {})
    return {name: value() if name == "reasoner" else value for name, value in own.items()}


def outcome(values, world, out):
    """Return the bytes of all tables of a run, and its notes."""
    result = run(values, out=out, **given_in(world))
    assert result.status == "done"
    found = {str(file.relative_to(result.run_dir)): file.read_bytes() for file in result.run_dir.rglob("*.parquet")}
    return found, read_manifest(result.run_dir)["notes"]


def idle_in(values, world):
    """Return the keys that have no effect in a world, whoever sets them, each with the place of its entry."""
    own = given_in(world)
    model = SocialModel(Config.model_validate(nested(values)), **own)
    model.close()
    made = make_world(model.params, model.streams)
    known = _known(model, made, said_of(model.params), given="reasoner" in own, chart_given="chart" in own)
    holding = [(place, row) for place, row in enumerate(TABLE) if row.when(known)]
    found = {key: next((place for place, row in holding if row.holds(key)), None) for key, _ in leaves(Config)}
    return {key: place for key, place in found.items() if place is not None}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_said_to_have_no_effect_has_none(world, made, monkeypatch):
    if "embedded" in world and embedded_fault():
        pytest.skip(f"the embedded LLM {embedded_fault()}")
    base, more = WORLDS[world](made)
    base = {key: value for key, value in (SMALL | base).items() if value is not None}
    defaults = dict(leaves(Config))
    with without_embedded(monkeypatch, world):
        idle = idle_in(base, world)
        changed = {key: another(key, defaults[key]) for key in idle if key not in base}
        changed = {key: value for key, value in changed.items() if value is not None} | more
        if base.get("content") == "llm":
            del changed["deliberation.max_seconds"]  # which is refused
        plain, notes = outcome(base, world, made["tmp"] / "plain")
        assert not any("no effect" in note for note in notes), "the world itself sets nothing in vain"
        with pytest.warns(PrismWarning, match=r"^SocialModel: .*: no effect: "):
            other, notes = outcome(base | changed, world, made["tmp"] / "changed")
    said = {key for note in notes if ": no effect: " in note for key in note.partition(": no effect: ")[0].split(", ")}
    assert said == set(changed)
    assert {name for name in plain if plain[name] != other.get(name)} == set()


@pytest.mark.slow
@pytest.mark.skipif(bool(embedded_fault()), reason=f"the embedded LLM {embedded_fault()}")
def test_every_entry_of_the_table_is_tried_in_some_world(made, monkeypatch):
    tried = set()
    for world, of in WORLDS.items():
        base, more = of(made)
        values = {key: value for key, value in (SMALL | base | more).items() if value is not None}
        with without_embedded(monkeypatch, world), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrismWarning)
            tried |= set(idle_in(values, world).values())
    assert [row.keys for place, row in enumerate(TABLE) if place not in tried] == []


@pytest.mark.parametrize(("table", "kind"), [(TABLE, Config), (OF_NATIONS, EconomyConfig)])
def test_every_entry_of_a_table_is_about_keys_that_there_are(table, kind):
    known = [key for key, _ in leaves(kind)]
    for own in (own for row in table for own in row.keys.split()):
        assert own in known or (own.endswith(".*") and any(key.startswith(own[:-1]) for key in known))


# -- all others have one -----------------------------------------------------------------------------------

NO_TABLE_SHOWS = {
    "clock.round_minutes",
    "clock.start",
    "scheduler",
    "statechart.max_history_depth",
    "threads",
}
"""Keys that are no factors: how fast it is, and what only Python sees."""


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    """Some keys name a file that is made where it is missing."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "keys"), [("chronological", ""), ("x_algo", "feed.")])
def test_all_other_keys_change_the_tables_and_nothing_is_said_of_them(mode, keys, tmp_path):
    base = SMALL | {"feed.mode": mode, "agents.n": 60, "rounds": 6, "agents.post_rate": 0.4}
    plain, _ = outcome(base, "", tmp_path)
    idle, defaults = idle_in(base, ""), dict(leaves(Config))
    same = []
    for key in defaults.keys() - idle.keys() - NO_TABLE_SHOWS - {"feed.x_algo.author_floor"}:
        if not key.startswith(keys):
            continue
        value = another(key, base.get(key, defaults[key]))
        if value is not None:
            found, notes = outcome(base | {key: value}, "", tmp_path)
            assert not any("no effect" in note for note in notes)
            same += [key] * (found == plain)
    assert same == []


# -- how it is said ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "real", "million"])
def test_the_files_that_come_with_prism_set_nothing_in_vain(name):
    config = load_config(ROOT / "configs" / f"{name}.yaml", ["reasoner.kind=rule", "agents.n=1000"])
    if name != "real":  # which reads a large file
        assert not any("no effect" in note for note in SocialModel(config).notes)
    assert said_of(config).keys() <= {key for key, _ in leaves(Config)}


def test_the_command_says_it_in_its_summary_and_nowhere_else(prism, tmp_path):
    code, out, err = prism(
        "run", "agents.n=30", "rounds=1", "reasoner.kind=rule", "reasoner.model=mine", "--out", tmp_path
    )
    assert code == 0
    assert "input       reasoner.model: no effect: the rule decides in this run" in out
    assert "Warning" not in err


def test_a_value_that_is_the_default_is_not_set():
    assert SocialModel(agents_n=30, feed_x_algo_rate_like=0.00234, reasoner_archetypes=8).notes == ()


def test_a_kind_of_network_beside_edges_is_told_as_it_was_said_however_the_config_came(tmp_path):
    edges = table(tmp_path / "e.csv", ["src", "dst"], [(1, 2), (2, 3)])
    config = load_config(None, ["network.kind=erdos_renyi", f"network.edges={edges}"])
    assert config.network.kind == "edges"
    assert said_of(config)["network.kind"] == "erdos_renyi"
    for given in ({"config": config}, {"config": config, "rng": 3}):
        with pytest.warns(PrismWarning, match=r"network.kind: no effect: network.edges brings the network"):
            SocialModel(**given)
    assert "network.kind" not in "".join(SocialModel(network_edges=edges, network_kind="edges").notes)
    with pytest.raises(ConfigError, match=r"network\.kind: Input should be 'erdos_renyi'"):
        SocialModel(network_edges=edges, network_kind="erdös")


def test_a_number_of_agents_beside_edges_is_told_unless_it_is_that_of_the_graph(tmp_path):
    edges = table(tmp_path / "e.csv", ["src", "dst"], [(1, 2), (2, 3)])
    with pytest.warns(PrismWarning, match=r"^SocialModel: agents.n: no effect: network.edges brings its 3 agents$"):
        model = SocialModel(network_edges=edges, agents_n=7)
    assert model.notes[-1] == "agents.n: no effect: network.edges brings its 3 agents"
    assert SocialModel(network_edges=edges, agents_n=3).notes == ()


# -- nations ----------------------------------------------------------------------------------------------


def advises(prompt):
    if prompt.endswith(THINKS):
        return quiet(prompt)
    return '{"action": "Cut interest rates by 25 basis points", "reasoning": "Growth.", "confidence": 0.5}'


OWN = {"name": "Ruritania", "policy": "nothing"}
NATIONS = {
    "the default": lambda made: ({}, {}),
    "chance": lambda made: ({"economy.policy": "random"}, {}),
    "one nation": lambda made: ({"economy.nations": ["Sweden"]}, {}),
    "its own policy": lambda made: ({"economy.nations": [OWN]}, {"economy.policy": "random"}),
    "an LLM in Python": lambda made: ({"economy.policy": "llm"}, {}),
    "a client in Python": lambda made: ({"economy.policy": "llm"}, {}),
    "no tools": lambda made: (
        {
            "economy.policy": "llm",
            "economy.deliberate": True,
            "deliberation.max_tool_calls": 0,
            "reasoner.attempts": 1,
        },
        {},
    ),
    "the rule in its place": lambda made: ({"economy.policy": "llm", "reasoner.kind": "rule"}, {}),
    "no LLM there": lambda made: ({"economy.policy": "llm", "reasoner.host": NOBODY}, {}),
}
ADVISORS = {
    "no tools": lambda: advises,
    "an LLM in Python": lambda: advises,
    "a client in Python": lambda: LLMClient(advises, LLMParams(kind="python", timeout_s=60.0)),
}


def quarters(values, world):
    llm = ADVISORS.get(world)
    memory = Memory()
    model = EconomyModel(EconomyConfig.model_validate(nested(values)), llm=llm and llm(), recorder=memory)
    for _ in range(6):
        model.step()
    model.close()
    return memory.tables, model.notes


def notes_of(values, world):
    llm = ADVISORS.get(world)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = EconomyModel(EconomyConfig.model_validate(nested(values)), llm=llm and llm())
    model.close()
    return model.notes


@pytest.mark.slow
@pytest.mark.parametrize("world", NATIONS)
def test_so_it_is_with_nations(world, made, monkeypatch):
    base, more = NATIONS[world](made)
    defaults = dict(leaves(EconomyConfig))
    with without_embedded(monkeypatch, world):
        plain, notes = quarters(base, world)
        assert notes == ()
        changed = {}
        for key in defaults.keys() - base.keys():
            value = another(key, defaults[key])
            if value is not None:
                changed |= {key: value} if notes_of(base | {key: value}, world) else {}
        changed |= more
        with pytest.warns(PrismWarning, match=r"^EconomyModel: .*: no effect: "):
            other, notes = quarters(base | changed, world)
    said = {key for note in notes for key in note.partition(": no effect: ")[0].split(", ")}
    assert said == set(changed)
    assert other == plain


def test_the_command_of_nations_says_it_too(prism, tmp_path):
    code, out, err = prism("economy", "rounds=2", "economy.policy=taylor", "economy.noise=1", "--out", tmp_path)
    assert code == 0
    assert "economy.noise" not in err
    assert "input       economy.noise: no effect: no LLM decides for any nation (economy.policy=llm)" in out


def test_the_file_of_nations_sets_nothing_in_vain():
    config = load(EconomyConfig, ROOT / "configs" / "economy.yaml", ["economy.policy=taylor"])
    assert EconomyModel(config).notes == ()
