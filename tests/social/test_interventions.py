"""Settings that change while a run goes on."""

import numpy as np
import pytest

from prism_mesa.errors import ConfigError, NotedWarning
from prism_mesa.runs.config import make_config
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run
from prism_mesa.social.model import SocialModel

WORLD = {"agents.n": 80, "rounds": 8, "network.mean_degree": 10, "agents.band": 0.02, "agents.activity": 0.6}
WORLD |= {"agents.session": 15, "agents.post_rate": 0.4}  # so that the order of a feed counts


def rows(model):
    model.run_model()
    return model.datacollector.get_model_vars_dataframe()


def with_change(at, **changed):
    settings = {key.replace("__", "."): value for key, value in changed.items()}
    return make_config({**WORLD, "interventions": [{"at": at, "set": settings}]})


@pytest.mark.parametrize(
    "changed",
    [
        {"feed__mode": "random"},
        {"feed__glances": 1},
        {"utility__theta": 3.0},
        {"agents__band": 0.3},
        {"agents__hours": [0.0] * 23 + [1.0]},
        {"agents__session": 2.0},
    ],
)
def test_rounds_before_it_are_those_of_the_run_without_it_and_those_from_it_on_are_not(changed):
    without, found = rows(SocialModel(make_config(WORLD))), rows(SocialModel(with_change(4, **changed)))
    differs = (without != found).any(axis=1).tolist()
    assert not any(differs[:4])
    assert any(differs[4:])


def test_agents_one_by_one_do_as_columns_do():
    config = with_change(3, feed__glances=1, utility__theta=2.0, agents__band=0.1)
    one_by_one = config.model_copy(update={"scheduler": "mesa"})
    assert rows(SocialModel(config)).equals(rows(SocialModel(one_by_one)))


def test_several_hold_together_each_from_its_round_on():
    config = make_config(
        {
            **WORLD,
            "interventions": [
                {"at": 2, "set": {"feed": {"mode": "random"}, "agents.band": 0.1}},
                {"at": 5, "set": {"feed.mode": "preference"}},
            ],
        }
    )
    model, seen = SocialModel(config), []
    for _ in range(8):
        model.step()
        seen.append((model.params.feed.mode, model.params.agents.band))
    assert seen == [("chronological", 0.02)] * 2 + [("random", 0.1)] * 3 + [("preference", 0.1)] * 3


def test_a_run_with_one_is_replayed_equal_and_its_notes_name_it(tmp_path):
    result = run(with_change(3, feed__mode="random"), out=tmp_path)
    assert "from round 3 on: feed.mode=random (interventions)" in result.summary["notes"]
    assert replay(result.run_dir).equal


@pytest.mark.parametrize(
    ("set_", "said"),
    [
        ({"feed.mode": "chronological"}, "feed.mode: no effect"),
        ({"feed.x_algo.author_decay": 0.1}, "no effect: .*feed.mode=x_2023"),
    ],
)
def test_what_changes_nothing_is_said(set_, said):
    with pytest.warns(NotedWarning, match=said):
        SocialModel(make_config({**WORLD, "interventions": [{"at": 3, "set": set_}]}))


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ({"at": 8, "set": {"feed.mode": "random"}}, r"at=8 is not a round of this run \(0 to 7\)"),
        ({"at": 3, "set": {"agents.n": 9}}, r"agents.n cannot change during a run .*agents\.homophily\.\*"),
        ({"at": 3, "set": {"agents.perssistence": 0.5}}, "Did you mean 'agents.persistence'"),
        ({"at": 3, "set": {"feed.size": 9}}, "feed.size cannot change during a run"),
        ({"at": 3, "set": {"feed.mod": "random"}}, "Did you mean 'feed.mode'"),
        ({"at": 3, "set": {"feed.mode": "best"}}, "interventions: 0: feed.mode: .*, not 'best'"),
        ({"at": 3, "set": {"utility.sensitivity": 0}}, "cannot go from or to 0"),
        ({"at": 3}, "interventions.0: the intervention does nothing"),
        ({"at": 3, "set": {}}, "interventions.0: the intervention does nothing"),
        ({"at": 3, "set": {"feed.mode": "random", "feed": {"mode": "x_algo"}}}, "feed.mode is set twice"),
        ({"at": -1, "set": {"feed.mode": "random"}}, "interventions.0.at"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(one, said):
    with pytest.raises(ConfigError, match=said) as told:
        make_config({**WORLD, "interventions": [one]})
    assert "\n" not in str(told.value)


def test_one_that_ends_lets_the_settings_be_as_they_were():
    given = [{"at": 2, "until": 4, "set": {"feed.mode": "random", "utility.theta": 2.0}}]
    model = SocialModel(make_config({**WORLD, "interventions": given}))
    modes = []
    for _ in range(6):
        model.step()
        modes.append((model.params.feed.mode, model.params.utility.theta))
    before = (WORLD.get("feed.mode", "chronological"), SocialModel(make_config(WORLD)).params.utility.theta)
    assert modes == [before] * 2 + [("random", 2.0)] * 2 + [before] * 2
    assert "in rounds 2 to 3: feed.mode=random, utility.theta=2.0 (interventions)" in model.notes


BUSY = {"agents.post_rate": 0.9, "agents.post_sigma": 0.1, "agents.posting": "always"}


def feeds_by_round(interventions):
    """Return all feeds of all rounds."""
    declared = {"leaning": {"of": "agent", "range": [-1, 1]}}
    model = SocialModel(make_config({**WORLD, "attributes": declared, "interventions": interventions, **BUSY}))
    found, people = [], model.population
    for _ in range(WORLD["rounds"]):
        model.step()
        found.append([people.feed[i, : people.n_feed[i]].tolist() for i in range(len(people))])
    return found, people.attributes[:, 0]


def test_agents_whom_one_names_have_another_feed_and_all_others_have_theirs():
    some = [{"at": 0, "set": {"feed.mode": "random"}, "agents": "agent.leaning > 0.2 and not agent.leaning > 0.8"}]
    first, leaning = feeds_by_round(some)
    named = (leaning > 0.2) & (leaning <= 0.8)
    assert 10 < named.sum() < 40
    everybody, _ = feeds_by_round([{"at": 0, "set": {"feed.mode": "random"}}])
    nobody, _ = feeds_by_round([])
    for row in range(len(leaning)):  # in the first round alone: what others did differs later
        assert first[0][row] == (everybody if named[row] else nobody)[0][row]
    assert any(first[0][row] != nobody[0][row] for row in np.flatnonzero(named))


def test_of_several_for_the_same_agents_the_later_one_lies_on_top():
    both = [
        {"at": 0, "set": {"feed.mode": "random", "feed.candidates.trending": 3}, "agents": "agent.leaning > 0"},
        {"at": 0, "set": {"feed.mode": "preference"}, "agents": "agent.leaning > 0.5"},
    ]
    found, leaning = feeds_by_round(both)
    random, _ = feeds_by_round([{"at": 0, "set": {"feed.mode": "random", "feed.candidates.trending": 3}}])
    near, _ = feeds_by_round([{"at": 0, "set": {"feed.mode": "preference", "feed.candidates.trending": 3}}])
    for row in range(len(leaning)):
        if leaning[row] > 0:
            assert found[0][row] == (near if leaning[row] > 0.5 else random)[0][row]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ({"at": 3, "until": 3, "set": {"feed.mode": "random"}}, "until=3 is not after at=3"),
        ({"at": 3, "until": 9, "set": {"feed.mode": "random"}}, "until=9 is after the last round"),
        (
            {"at": 3, "set": {"agents.band": 0.1}, "agents": "agent.activity > 0.5"},
            "agents.band cannot change for some",
        ),
        ({"at": 3, "set": {"feed.mode": "random"}, "agents": "post.likes > 1"}, "post.likes"),
        ({"at": 3, "set": {"feed.mode": "random"}, "agents": "__import__('os')"}, "is not allowed in an expression"),
        ({"at": 3, "set": {"feed.mode": "random"}, "agents": "agent.activty > 0"}, "agent.activty cannot be read. Did"),
    ],
)
def test_what_cannot_end_or_names_nobody_is_refused_in_one_line(one, said):
    with pytest.raises(ConfigError, match=said) as error:
        SocialModel(make_config({**WORLD, "interventions": [one]}))
    assert "\n" not in str(error.value)


SOME = "agent.leaning > 0"


@pytest.mark.parametrize("agents", [None, SOME])
def test_of_settings_for_some_and_for_all_the_later_entry_counts(agents):
    first = {"at": 3, "set": {"feed.mode": "random"}, "agents": SOME}
    later = {"at": 3, "set": {"feed.mode": "preference"}, **({} if agents is None else {"agents": agents})}
    assert feeds_by_round([first, later])[0] == feeds_by_round([later])[0]
    assert feeds_by_round([later, first])[0] != feeds_by_round([later])[0]


def test_of_many_that_hold_at_a_time_each_counts():
    nobody = [{"at": 2, "set": {"feed.candidates.trending": 5}, "agents": "agent.row < -1"}] * 70
    last = {"at": 2, "set": {"feed.mode": "random"}, "agents": SOME}
    with pytest.warns(NotedWarning, match="no effect: no agent matches agent.row < -1"):
        found, _ = feeds_by_round([*nobody, last])
    assert found == feeds_by_round([last])[0]


def test_weights_of_a_feed_that_begins_later_have_an_effect():
    later = [{"at": 3, "set": {"feed.mode": "x_2023"}}]
    model = SocialModel(make_config({**WORLD, "feed.x_algo.author_decay": 0.3, "interventions": later}))
    assert not [said for said in model.notes if "no effect" in said]


def test_what_some_had_otherwise_before_is_no_setting_without_effect():
    some = {"at": 2, "set": {"feed.mode": "random"}, "agents": "agent.activity >= 0"}
    model = SocialModel(
        make_config({**WORLD, "interventions": [some, {"at": 4, "set": {"feed.mode": "chronological"}}]})
    )
    assert not [said for said in model.notes if "no effect" in said]
