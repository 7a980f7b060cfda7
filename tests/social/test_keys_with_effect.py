"""All other keys have an effect, and how it is said which have none."""

import pytest
from key_worlds import ROOT, SMALL, another, differing_tables, idle_in, outcome, table
from worlds import PLAIN_FILE, plain

from prism_mesa import Config, load_config
from prism_mesa.errors import ConfigError, PrismWarning
from prism_mesa.params import explicit_values, list_leaves
from prism_mesa.social.model import SocialModel

# -- all others have one -----------------------------------------------------------------------------------


NO_TABLE_SHOWS = {
    "checkpoint_every",
    "clock.round_minutes",
    "clock.start",
    "scheduler",
    "statechart.max_history_depth",
    "statechart.strict",
    "threads",
}
"""Keys that are no factors: how fast it is, and what only Python sees."""


MOVES = {"network.dynamics": "live", "network.rates.engaged": 2.0, "agents.reshare": 0.8, "network.mutual": 0.8} | {
    f"network.rates.{name}": 0.2 for name in ("follow", "follow_back", "triad", "unfollow", "mute", "block", "report")
}
"""So much moves that every rate shows."""


AGAIN = {"feed.repeats": True, "utility.sensitivity": 0.05, "utility.weight": 0.5, "agents.reshare": 0.9}
AGAIN |= {"agents.threshold_mean": 0.4, "agents.band": 0.1, "agents.post_rate": 0.1, "network.mean_degree": 20}
"""Much is shown again."""
WEIGHS = {
    "utility.sensitivity": 0.05,
    "agents.threshold_mean": 0.1,
    "network.mutual": 0.8,
    "network.mean_degree": 12,
}
"""Agents engage with posts for several reasons."""
LEANING = {"attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}, "agents.homophily.by": "leaning"}
SLANTED = WEIGHS | {"attributes": {"slant": {"of": "post", "range": [0, 1]}}}
SLANTED |= {"utility.appeal_by.attribute": "slant", "utility.appeal_by.effect": 5.0}
RETURNING = WEIGHS | {"agents.session": 4.0, "agents.returns.online": 200.0, "agents.returns.session": 200.0}
RETURNING |= {"agents.returns.first": 2, "rounds": 12}
OPINIONS = {"attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}, "opinions.of": "leaning"}


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    """Some keys name a file that is made where it is missing."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "keys"),
    [
        ({"rounds": 9}, ""),  # agents.returns.first are 5
        ({"feed.mode": "x_algo"}, "feed."),
        ({"feed.slots.trending": 2, "agents.reshare": 0.8}, "feed.slots."),
        (WEIGHS | {"utility.gamma": 1.0}, "utility."),
        ({"agents.session": 4.0}, "agents.session"),
        (AGAIN, "utility.per_source"),
        (SLANTED, "utility.appeal_by."),
        (RETURNING, "agents.returns."),
        (MOVES, "network.rates."),
        (MOVES | LEANING | WEIGHS, "agents.homophily."),
        (OPINIONS, "opinions."),
        (OPINIONS | {"opinions.rule": "assimilation_repulsion"}, "opinions.repulsion"),
    ],
)
def test_all_other_keys_change_the_tables_and_nothing_is_said_of_them(world, keys):
    world = SMALL | {"agents.n": 60, "rounds": 6, "agents.post_rate": 0.4, **world}
    base = plain(world)
    unchanged, _ = outcome(base, "")
    idle, defaults = idle_in(base, ""), dict(list_leaves(Config))
    same = []
    for key in defaults.keys() - idle.keys() - NO_TABLE_SHOWS - {"feed.x_algo.author_floor"}:
        if not key.startswith(keys):
            continue
        value = another(key, base.get(key, defaults[key]))
        if value is not None:
            found, notes = outcome(plain({**world, key: value}), "")
            assert not any("no effect" in note for note in notes)
            same += [key] * (not differing_tables(found, unchanged))
    assert same == []


# -- how it is said ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["default", "plain", "real", "million"])
def test_the_files_that_come_with_prism_set_nothing_in_vain(name):
    config = load_config(ROOT / "configs" / f"{name}.yaml", ["reasoner.kind=rule", "agents.n=1000"])
    if name != "real":  # which reads a large file
        assert not any("no effect" in note for note in SocialModel(config).notes)
    assert explicit_values(config).keys() <= {key for key, _ in list_leaves(Config)}


@pytest.mark.slow
def test_the_command_says_it_in_its_summary_and_nowhere_else(prism, tmp_path):
    code, out, err = prism(
        "run", PLAIN_FILE, "agents.n=30", "rounds=1", "reasoner.kind=rule", "reasoner.model=mine", "--out", tmp_path
    )
    assert code == 0
    assert "input       reasoner.model: no effect: the rule decides in this run" in out
    assert "Warning" not in err


def test_a_kind_of_network_beside_edges_is_told_as_it_was_said_however_the_config_came(tmp_path):
    edges = table(tmp_path / "e.csv", ["src", "dst"], [(1, 2), (2, 3)])
    config = load_config(None, ["network.kind=erdos_renyi", f"network.edges={edges}"])
    assert config.network.kind == "edges"
    assert explicit_values(config)["network.kind"] == "erdos_renyi"
    for given in ({"config": config}, {"config": config, "rng": 3}):
        with pytest.warns(PrismWarning, match=r"network.kind: no effect: the file network.edges defines the network"):
            SocialModel(**given)
    assert "network.kind" not in "".join(SocialModel(network_edges=edges, network_kind="edges").notes)
    with pytest.raises(ConfigError, match=r"network\.kind: Input should be 'erdos_renyi'"):
        SocialModel(network_edges=edges, network_kind="erdös")


def test_a_number_of_agents_beside_edges_is_told_unless_it_is_that_of_the_graph(tmp_path):
    edges = table(tmp_path / "e.csv", ["src", "dst"], [(1, 2), (2, 1), (2, 3)])
    with pytest.warns(PrismWarning, match=r"^SocialModel: agents.n: no effect: the file network.edges has 3 agents$"):
        model = SocialModel(network_edges=edges, agents_n=7)
    assert model.notes[-1] == "agents.n: no effect: the file network.edges has 3 agents"
    assert not any("agents.n" in note for note in SocialModel(network_edges=edges, agents_n=3).notes)
