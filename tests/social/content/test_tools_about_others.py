"""Tools by which agents follow, unfollow, mute, block and report: as scripts do, where the network moves."""

import re

import numpy as np
import pytest
from tool_worlds import feed_of, rows_of, step_with, talking, toolbox, untouched
from worlds import differing

DECIDE = ("follow", "unfollow", "mute", "block", "report")
BACK = ("unmute", "unblock")
LIVE = {"network_dynamics": "live"} | {
    f"network_rates_{name}": 0.0 for name in ("follow", "follow_back", "triad", "unfollow", "mute", "block", "report")
}


def by_tool_or_script(decide, monkeypatch, **params):
    """Return a model after a round in which something was decided, and one more."""
    model = talking(rounds=1, **params)
    others = others_of(model)
    model.agent(0).mute(others["unmute"])
    model.agent(0).block(others["unblock"])
    step_with(monkeypatch, model, decide)
    model.step()
    return model


def others_of(model):
    followed = set(model.network.followees(0).tolist())
    strangers = [row for row in range(1, 30) if row not in followed]
    kept = {"mute": [strangers[2]], "block": [strangers[3]]}
    about = {"follow": strangers[0], "unfollow": min(followed), "mute": strangers[1], "block": max(followed)}
    return about | {f"un{name}": other for name, [other] in kept.items()}


def test_they_make_the_events_that_scripts_make(monkeypatch):
    def with_tools(model):
        for name, other in others_of(model).items():
            result = toolbox(model, 0).execute(name, {"agent": other})
            assert result.ok, result.text
        row = untouched(model)
        assert toolbox(model, row).execute("report", {"post": feed_of(model, row)[0]}).ok

    def with_scripts(model):
        for name, other in others_of(model).items():
            assert getattr(model.agent(0), name)(other)
        row = untouched(model)
        assert model.agent(row).report(model.post(feed_of(model, row)[0], row))

    models = [by_tool_or_script(decide, monkeypatch, **LIVE) for decide in (with_tools, with_scripts)]
    told = [[{**row, "why": ""} for row in rows_of(model, "follows")] for model in models]
    assert told[0] == told[1]
    assert {row["event"] for row in told[0] if row["round"] == 1} == {*DECIDE, *BACK}
    assert [{row["why"] for row in rows_of(model, "follows")} for model in models] == [
        {"script", "tool", "block"},
        {"script", "block"},
    ]
    assert differing(*models) == ["records"]


REFUSED = [
    ("follow", {"agent": 0}, "agent 0 cannot do that to itself"),
    ("mute", {"agent": 30}, r"30 is no agent \(rows: 0 \.\. 29\)"),
    ("unfollow", {"agent": "STRANGER"}, "you do not follow agent"),
    ("follow", {"agent": "FOLLOWEE"}, "you follow agent .* already"),
    ("unmute", {"agent": 3}, "you have not muted agent 3"),
    ("unblock", {"agent": 3}, "you have not blocked agent 3"),
    ("report", {"post": -1}, "post -1 is not in your feed"),
]


@pytest.mark.parametrize(("name", "given", "told"), REFUSED)
def test_what_cannot_be_is_refused_in_words_and_nothing_is_noted(name, given, told, monkeypatch):
    def activity(model):
        others = others_of(model)
        known = {"STRANGER": others["follow"], "FOLLOWEE": others["unfollow"]}
        result = toolbox(model, 0).execute(name, {key: known.get(value, value) for key, value in given.items()})
        assert model.events.decided == {}
        return result

    [result] = step_with(monkeypatch, talking(**LIVE), activity)
    assert not result.ok
    assert re.search(told, result.text)


def answers(model, other):
    """Return what another one has written, and who else has answered it with what, of the rounds that ran."""
    posts = model.posts
    there = np.arange(posts.n_visible(model.round))
    own = there[posts.author[there] == other]
    return own.tolist(), there[np.isin(posts.parent[there], own) & (posts.author[there] != other)].tolist()


def looked_up(model, other):
    """Return what agent 0 finds of another one: its profile, and the threads of its posts and of answers to them."""
    tools = toolbox(model, 0)
    threads = [[tools.execute("read_thread", {"post": post}).text for post in of] for of in answers(model, other)]
    return tools.execute("look_at_profile", {"agent": other}).text, *map("\n".join, threads)


def test_a_profile_and_a_thread_show_nothing_across_a_block_and_a_muted_one_who_is_looked_at():
    model = talking(rounds=3, agents_reply=0.9, agents_threshold_mean=0.3, **LIVE)
    other = max(range(1, 30), key=lambda row: len(answers(model, row)[1]))
    by_it, who = f"(agent {other}), round", model.agent(0)
    assert all(by_it in text for text in looked_up(model, other))
    who.mute(other)
    model.step()
    profile, own, replies = looked_up(model, other)
    assert by_it in profile
    assert by_it in own
    assert by_it not in replies
    assert "is not shown: you have muted its author" in replies
    who.unmute(other)
    model.agent(other).block(0)  # it is the other who blocks
    model.step()
    profile, own, replies = looked_up(model, other)
    assert profile == f"You see nothing of agent {other}: a block stands between the two of you."
    assert by_it not in own + replies
    assert all("is not shown: a block stands between you and its author" in text for text in (own, replies))
