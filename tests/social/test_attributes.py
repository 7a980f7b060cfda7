"""Attributes that a configuration declares of agents and posts."""

import numpy as np
import pytest

from prism_mesa.errors import AgentError, ConfigError, DataError, NotedWarning
from prism_mesa.runs.config import make_config
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.statechart import F

WORLD = {"agents.n": 80, "rounds": 6, "network.mean_degree": 10, "agents.band": 0.02, "agents.activity": 0.6}
DECLARED = {
    "leaning": {"of": "agent", "range": [-1, 1]},
    "party": {"of": "agent", "values": ["left", "right"], "share": [1, 3]},
    "age": {"of": "agent", "range": [18, 90], "mean": 40, "sd": 15},
    "cohort": {"of": "agent", "values": [1, 2, 3]},
    "veracity": {"of": "post", "values": [True, False], "share": [0.8, 0.2]},
    "slant": {"of": "post", "range": [-2, 2], "inherits": "leaning", "noise": 0.1},
    "side": {"of": "post", "values": ["right", "left", "none"], "inherits": "party"},
}


def world(attributes=DECLARED, **more):
    return make_config({**WORLD, "attributes": attributes, **{key.replace("__", "."): v for key, v in more.items()}})


def twice(columns):
    return np.clip(2 * columns["leaning"], -1, 1)


def by_party(columns):
    return (columns["author.party"] == "left") & (columns["kind"] == "post") & (columns["round"] > 0)


def too_short(columns):
    return columns["leaning"][:-1]


def no_number(columns):
    return columns["leaning"] * np.nan


def writes(columns):
    columns["leaning"][0] = 1.0
    return columns["leaning"]


ASKED = iter(range(2, 100))


def another_each_time(columns):
    return np.full(len(columns["leaning"]), 1 / next(ASKED))


def of_function(function, of="agent", **what):
    name = {"agent": "strong", "post": "mine"}[of]
    return DECLARED | {name: {"of": of, "function": f"{__name__}:{function}", **(what or {"range": [-1, 1]})}}


def test_their_columns_say_which_key_declares_them():
    known = SocialModel(world()).platform.attributes.schema
    for name, attribute in (*known.agents.items(), *known.posts.items()):
        assert f"attributes.{name}" in attribute.to_table_column("agents").meaning


def test_they_are_drawn_as_declared_and_each_by_itself():
    model = SocialModel(world(agents__n=4000, rounds=1))
    values = {name: [] for name in ("leaning", "party", "age", "cohort")}
    for row in range(0, 4000, 4):
        for name, found in values.items():
            found.append(getattr(model.agent(row), name))
    assert -1 <= min(values["leaning"]) < -0.98
    assert 0.98 < max(values["leaning"]) <= 1
    assert values["party"].count("right") / 1000 == pytest.approx(0.75, abs=0.05)
    assert np.mean(values["age"]) == pytest.approx(40.5, abs=1.5)
    assert min(values["age"]) == 18
    assert {type(value) for value in values["cohort"]} == {int}
    assert set(values["cohort"]) == {1, 2, 3}
    alone = SocialModel(world({"party": DECLARED["party"]}, agents__n=4000, rounds=1))
    assert [alone.agent(row).party for row in range(0, 4000, 4)] == values["party"]


def test_posts_inherit_and_reshares_have_what_their_roots_have():
    model = SocialModel(world(rounds=12))
    model.run_model()
    posts, people, known = model.posts, model.population, model.platform.attributes.schema
    own = np.flatnonzero(posts.kind != RESHARE)
    reshares = np.flatnonzero(posts.kind == RESHARE)
    assert len(reshares)
    assert (posts.attributes[reshares] == posts.attributes[posts.root[reshares]]).all()
    slant = posts.attributes[own, known.post_attribute("slant")[0]]
    leaning = people.attributes[posts.author[own], known.agent_attribute("leaning")[0]]
    assert 0.02 < np.abs(slant - leaning).std() < 0.1
    side = known.post_attribute("side")[1].column(posts.attributes[own, known.post_attribute("side")[0]])
    party = known.agent_attribute("party")[1].column(
        people.attributes[posts.author[own], known.agent_attribute("party")[0]]
    )
    assert ((side == "left") == (party == "left")).all()
    true = posts.attributes[own, known.post_attribute("veracity")[0]]
    assert 0.6 < true.mean() < 0.95


GUARD = (F.post.veracity == True) & (F.post.side != "left") & (F.agent.leaning > -0.5) & (F.agent.cohort < 3)  # noqa: E712


@pytest.mark.parametrize("guard", [GUARD, lambda a, p: p.veracity and p.side != "left" and a.leaning > -0.5])
def test_guards_read_them_by_columns_and_agent_by_agent_alike(guard):
    chart, found = build_chart(engages=guard), []
    for scheduler in ("columns", "mesa"):
        model = SocialModel(world(scheduler=scheduler, agents__activity=0.9), chart=chart)
        model.run_model()
        found.append(model.datacollector.get_model_vars_dataframe())
        assert not model.chart.guard_errors
    assert found[0].equals(found[1])
    plain = SocialModel(world(agents__activity=0.9))
    plain.run_model()
    assert not plain.datacollector.get_model_vars_dataframe().equals(found[0])


def test_tables_hold_them_and_a_replay_the_same(tmp_path):
    found = run(world(), out=tmp_path)
    agents, posts = found.table("agents"), found.table("posts")
    assert agents["party"].isin(["left", "right"]).all()
    assert agents["cohort"].dtype == "int32"
    assert agents["leaning"].between(-1, 1).all()
    assert posts["veracity"].dtype == bool
    roots = posts.loc[posts["root"], ["veracity", "slant", "side"]].reset_index(drop=True)
    reshares = (posts["kind"] == "reshare").to_numpy()
    assert reshares.any()
    assert posts.loc[reshares, ["veracity", "slant"]].to_numpy().tolist() == (
        roots.loc[reshares, ["veracity", "slant"]].to_numpy().tolist()
    )
    assert not replay(found).differences


def test_a_function_of_ones_own_gives_them():
    model = SocialModel(world(of_function("twice") | of_function("by_party", "post", values=[True, False])))
    model.run_model()
    people, known = model.population, model.platform.attributes.schema
    leaning, strong = (people.attributes[:, known.agent_attribute(name)[0]] for name in ("leaning", "strong"))
    assert (strong == np.clip(2 * leaning, -1, 1)).all()
    own = model.posts.kind != RESHARE
    party = people.attributes[model.posts.author[own], known.agent_attribute("party")[0]]
    expected = (party == 0) & (model.posts.kind[own] == POST) & (model.posts.round[own] > 0)
    assert (model.posts.attributes[own, known.post_attribute("mine")[0]] == expected).all()
    assert 0 < expected.sum() < len(expected)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("too_short", "too_short: wrong return value: 79 values for 80 rows"),
        ("no_number", "no_number: wrong return value: nan is not a number in -1..1"),
        ("writes", "writes: raised ValueError: assignment destination is read-only"),
        ("another_each_time", "another_each_time: a second call with the same rows returned other"),
        ("not_there", "not_there is not a function"),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_in_one_line(function, said):
    with pytest.raises(ConfigError) as error:
        SocialModel(world(of_function(function)))
    assert said in str(error.value)
    assert str(error.value).startswith("attributes.strong.function: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"x": {"of": "agent"}}, "give either values or range"),
        ({"x": {"of": "agent", "range": [1, 0]}}, "range: 1 is not below 0"),
        ({"x": {"of": "agent", "values": ["a", 1]}}, "all be true or false, all numbers, or all texts"),
        ({"x": {"of": "agent", "values": ["a", "a"]}}, "two of them are equal"),
        ({"x": {"of": "agent", "values": [10**400, 1]}}, "numbers must be in -1e+12..1e+12"),
        ({"x": {"of": "agent", "values": ["a", " b"]}}, "begins or ends with a blank"),
        ({"x": {"of": "agent", "values": ["a", "b"], "share": [1]}}, "share: give 2 numbers"),
        ({"x": {"of": "agent", "range": [0, 1], "mean": 2, "sd": 1}}, "mean: 2 is not in 0..1"),
        ({"x": {"of": "agent", "range": [0, 1], "noise": 1}}, "noise: "),
        ({"x": {"of": "agent", "range": [0, 1], "inherits": "y"}}, "can only inherit from its community"),
        ({"x": {"of": "post", "range": [0, 1], "inherits": "y"}}, "'y' is not an attribute of agents (none)"),
        ({**DECLARED, "x": {"of": "post", "range": [0, 1], "inherits": "leaning"}}, "is not within that of x"),
        ({**DECLARED, "x": {"of": "post", "values": ["left"], "inherits": "party"}}, "has values that x does not have"),
        ({"x": {"of": "agent", "range": [0, 1], "column": "c"}}, "agents.profiles names no file"),
        ({"x": {"of": "post", "range": [0, 1], "column": "c", "function": "a:b"}}, "give only one of these"),
        ({"not a name": {"of": "post", "range": [0, 1]}}, "is not a name"),
    ],
)
def test_declarations_that_contradict_themselves_are_refused_in_one_line(attributes, said):
    with pytest.raises(ConfigError) as error:
        world(attributes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("activity", "agent"),
        ("remove", "agent"),
        ("likes", "post"),
        ("in_network", "post"),
    ],
)
def test_a_name_that_is_taken_is_refused(name, of):
    with pytest.raises(ConfigError, match=f"attributes: {name}: {of}s already have a field of that name"):
        SocialModel(world({name: {"of": of, "range": [0, 1]}}))


def files(tmp_path, agents, posts):
    (tmp_path / "agents.csv").write_text(agents)
    (tmp_path / "posts.csv").write_text(posts)
    return {"agents__profiles": str(tmp_path / "agents.csv"), "posts__file": str(tmp_path / "posts.csv")}


READ = {
    "party": {"of": "agent", "values": ["left", "right"], "share": [0, 1], "column": "vote"},
    "veracity": {"of": "post", "values": [True, False], "share": [0, 1], "column": "checked"},
    "weight": {"of": "post", "range": [0, 9], "column": "kg"},
}
POSTS = "text,checked,kg\nthe moon is here,true,1\nthe sea is far,FALSE,\nbread is warm,,9\n"


def test_files_give_them_and_what_they_leave_blank_is_drawn_and_said(tmp_path):
    config = world(READ, **files(tmp_path, "agent,vote\n3,left\n4,\n", POSTS), rounds=8, agents__post_rate=0.5)
    model = SocialModel(config)
    model.run_model()
    assert [model.agent(row).party for row in (2, 3, 4)] == ["right", "left", "right"]
    posts = model.posts
    own = np.flatnonzero(posts.kind == 0)
    found = {(posts.texts[posts.text_id[i]], *posts.attributes[i].tolist()) for i in own.tolist()}
    assert {row[:2] for row in found} == {("the moon is here", 1), ("the sea is far", 0), ("bread is warm", 0)}
    assert {row[2] for row in found if row[0] != "the sea is far"} == {1, 9}
    assert len({row[2] for row in found if row[0] == "the sea is far"}) > 3
    told = "; ".join(model.platform.notes)
    assert "attributes.party: agents.profiles: drawn for 79 agents without a value" in told
    assert "attributes.veracity: posts.file: drawn for 1 text without a value" in told


@pytest.mark.parametrize(
    ("agents", "posts", "said"),
    [
        ("agent,vote\n3,up\n", POSTS, "vote: line 2: up is not one of left, right (attributes.party)"),
        ("agent,vote\n3,left\n", "text,checked,kg\na,maybe,1\n", "checked: line 2: maybe is not one of true, false"),
        ("agent,vote\n3,left\n", "text,checked,kg\na,true,1\nb,true,10\n", "kg: line 3: 10 is not a number in 0..9"),
    ],
)
def test_a_file_that_says_something_else_is_refused_in_one_line(tmp_path, agents, posts, said):
    with pytest.raises(DataError) as error:
        SocialModel(world(READ, **files(tmp_path, agents, posts)))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_agent_is_given_one_and_newcomers_have_them():
    model = SocialModel(world())
    model.agent(3).leaning = -0.25
    assert model.population.attributes[3, 0] == -0.25
    newcomer = SocialAgent(model, follows=[3], leaning=0.5)
    assert newcomer.leaning == 0.5
    assert newcomer.party in ("left", "right")
    for value, said in ((2, "2 is not a number in -1..1"), ("left", "'left' is not a number"), (True, "True is not")):
        with pytest.raises(AgentError, match=said):
            model.agent(3).leaning = value
    with pytest.raises(AgentError, match=r"'lef' is not one of left, right. Did you mean 'left'"):
        model.agent(3).party = "lef"
    model.run_model()


def test_prompts_tell_of_those_that_are_told():
    told = DECLARED | {
        "leaning": {**DECLARED["leaning"], "told": True},
        "veracity": {**DECLARED["veracity"], "told": True},
    }
    with pytest.warns(NotedWarning, match=r"attributes.leaning.told: no effect: no LLM is asked; attributes.veracity"):
        model = SocialModel(world(told))
    model.run_model()
    assert f"; leaning: {model.agent(0).leaning:.3g}" in model.agent(0).personality
    assert "party" not in model.agent(0).personality
    post = model.platform.post(0, 0)
    assert post.about == f"veracity: {str(post.veracity).lower()}"
    assert SocialModel(world()).agent(0).personality in model.agent(0).personality


@pytest.mark.filterwarnings("ignore:.*told. no effect:prism_mesa.errors.NotedWarning")
@pytest.mark.parametrize("persona", ["individual", "archetype"])
def test_prompts_for_archetypes_do_not_tell_of_attributes_which_a_note_says(server, persona):
    told = {"leaning": {**DECLARED["leaning"], "told": True}}
    asked = {"reasoner__kind": "ollama", "reasoner__host": server.url, "reasoner__persona": persona}
    model = SocialModel(world(told, **asked))
    model.close()
    assert any("attributes.leaning.told: no effect" in note for note in model.notes) == (persona == "archetype")
