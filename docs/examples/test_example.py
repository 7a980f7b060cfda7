"""Tests of each part of this project."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from agents import add_spreaders
from attributes import alarming, heed, labelled
from charts import doubting
from feeds import demoting
from measures import untrue_read, untrue_reshares
from reasoners import sceptics

from prism_mesa import AgentState, Study, load_config, run

SMALL = ["agents.n=60", "network.mean_degree=10", "rounds=16", "reasoner.kind=rule"]


@pytest.fixture(autouse=True, scope="module")
def _here():
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(Path(__file__).parent)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return what makes a small run, whose folder is gone after the tests."""

    def make(*overrides, **own):
        config = load_config("config.yaml", [*SMALL, *overrides])
        return run(config, out=tmp_path_factory.mktemp("runs"), pictures=False, **own)

    return make


@pytest.fixture(scope="module")
def plain(made):
    return made()


def after(trigger, *, utility, interests=("health",), heed=0.2, neuroticism=2.0, **post):
    """Return the state of a reader after a trigger, or the states that are left open."""
    reader = SimpleNamespace(
        state=AgentState.EVALUATING,
        ticks_in_state=0,
        state_history=[],
        max_history_depth=0,
        low_threshold=0.4,
        high_threshold=0.6,
        interests=interests,
        heed=heed,
        neuroticism=neuroticism,
    )
    given = {"labelled": False, "untrue": True, "alarming": False, "subject": "politics", "utility": utility}
    return doubting.fire(reader, trigger, SimpleNamespace(**given | post))


def test_a_label_stops_who_heeds_labels_and_nobody_else():
    assert after("decides", utility=0.9) is AgentState.COMPOSING
    assert after("decides", utility=0.9, labelled=True) is AgentState.COMPOSING
    assert after("decides", utility=0.9, labelled=True, heed=0.8) is AgentState.SCROLLING


def test_alarm_moves_the_nervous_unless_they_heed_a_label():
    assert after("ignores", utility=0.1, alarming=True) is AgentState.SCROLLING
    assert after("ignores", utility=0.1, alarming=True, neuroticism=4.0) is AgentState.COMPOSING
    heeding = {"neuroticism": 4.0, "labelled": True, "heed": 0.8}
    assert after("ignores", utility=0.1, alarming=True, **heeding) is AgentState.SCROLLING


def test_who_is_interested_and_knows_better_is_left_to_decide():
    open_choice = [AgentState.SCROLLING, AgentState.COMPOSING]
    assert after("decides", utility=0.9, subject="health") == open_choice
    assert after("decides", utility=0.9, subject="health", untrue=False) is AgentState.COMPOSING


def test_posts_have_a_label_if_they_are_untrue_and_were_checked(plain):
    columns = {"untrue": np.array([True, True, False]), "checked": np.array([True, False, True])}
    assert labelled(columns).tolist() == [True, False, False]
    posts = plain.table("posts")
    of_posts = posts[posts["kind"] == "post"]
    assert (posts["labelled"] == (posts["untrue"] & posts["checked"])).all()
    assert 0 < of_posts["labelled"].sum() < of_posts["untrue"].sum()
    assert not posts["untrue"][posts["kind"] == "reply"].any()


def test_alarm_is_in_the_words_and_heed_in_the_character():
    assert alarming({"text": ["BREAKING: a well!", "A well is open.", "What they hide"]}).tolist() == [
        True,
        False,
        True,
    ]
    traits = {"conscientiousness": np.array([1.0, 3.0, 5.0]), "agreeableness": np.array([1.0, 4.0, 5.0])}
    assert heed(traits).tolist() == [0.0, 0.625, 1.0]


def test_the_feed_has_the_newest_first_and_what_has_a_label_behind_the_posts_of_a_day():
    posts = [(1, False), (2, False), (23, False), (0, True), (30, False)]
    scores = [demoting(None, SimpleNamespace(age=age, labelled=label)) for age, label in posts]
    assert scores == sorted(scores, reverse=True)


def test_the_feed_is_switched_on_at_noon(made, plain):
    without = made("interventions=[]")
    rounds, rounds_without = plain.table("rounds"), without.table("rounds")
    assert rounds[:12].equals(rounds_without[:12])
    assert not rounds[12:].equals(rounds_without[12:])
    assert untrue_read(plain) < untrue_read(without)


def test_measures_are_of_untrue_posts():
    posts = {"post": [0, 1, 2], "kind": ["post", "post", "reply"], "untrue": [True, False, False]}
    tables = {
        "posts": pd.DataFrame(posts | {"reshares": [3, 9, 0]}),
        "impressions": pd.DataFrame({"root": [0, 1, 1, 2]}),
    }
    finished = SimpleNamespace(table=tables.__getitem__)
    assert (untrue_read(finished), untrue_reshares(finished)) == (0.25, 3.0)


def test_spreaders_reshare_what_is_untrue_and_do_nothing_else(made, plain):
    spread = made(prepare=add_spreaders)
    agents, done = spread.table("agents"), spread.table("engagements")
    own = done[done["agent"].isin(agents["agent"][agents["scripted"]])]
    untrue = spread.table("posts").set_index("post")["untrue"]
    assert agents["scripted"].sum() == 5
    assert set(own["action"]) == {"reshare"}
    assert untrue.loc[own["root"]].all()
    assert untrue_reshares(spread) > untrue_reshares(plain)


def test_sceptics_pass_over_labels_and_cries_and_decide_in_a_run(made):
    heard = []
    with sceptics() as reasoner:
        reasoner.on_answer = lambda question, answer: heard.append((question.question.post, answer))
        result = made("attributes.labelled.told=true", reasoner=reasoner)
    assert set(result.summary["decisions"]["by_source"]) <= {"llm", "cache"}
    assert {choice.choice for _, choice in heard} == {AgentState.SCROLLING, AgentState.COMPOSING}
    for post, answer in heard:
        doubted = "labelled: true" in post.about or post.text.endswith("!")
        assert answer.choice is (AgentState.SCROLLING if doubted else AgentState.COMPOSING)


def test_the_arms_of_the_study_differ_in_labels_and_feed_alone(made, tmp_path):
    study = Study("study.yaml", seeds=1, out=tmp_path)
    assert [condition.arm for condition in study.design.conditions] == ["nothing", "labels", "labels_and_feed"]
    nothing = made("rounds=4", "attributes.checked.share=[0, 1]", "interventions=[]").table("posts")
    assert nothing["untrue"].any()
    assert not nothing["labelled"].any()
