"""Tools by which agents follow, unfollow, mute, block and report: as scripts do, where the network moves."""

import re

import pytest
from minds import Mind, thought, whim
from tool_worlds import feed_of, rows_of, step_with, talking, toolbox, untouched
from worlds import differing

from prism_mesa.social.content.tools import PlatformTools

DECIDE = ("follow", "unfollow", "mute", "block", "report")
LIVE = {"network_dynamics": "live"} | {
    f"network_rates_{name}": 0.0 for name in ("follow", "follow_back", "triad", "unfollow", "mute", "block", "report")
}


def test_they_are_offered_where_the_network_moves_and_there_is_a_feed():
    fixed, moving = (set(toolbox(talking(**params), 0).names) for params in ({}, LIVE))
    assert moving - fixed == set(DECIDE)
    assert not set(DECIDE) & set(PlatformTools(talking(**LIVE).platform, 0, tick=0).registry(acts=False).names)


def by_tool_or_script(decide, monkeypatch, **params):
    """Return a model after a round in which something was decided, and one more."""
    model = talking(rounds=1, **params)
    step_with(monkeypatch, model, decide)
    model.step()
    return model


def others_of(model):
    followed = set(model.network.followees(0).tolist())
    strangers = [row for row in range(1, 30) if row not in followed]
    return {"follow": strangers[0], "unfollow": min(followed), "mute": strangers[1], "block": max(followed)}


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
    assert {row["event"] for row in told[0]} == set(DECIDE)
    assert [{row["why"] for row in rows_of(model, "follows")} for model in models] == [
        {"tool", "block"},
        {"script", "block"},
    ]
    assert differing(*models) == ["records"]


REFUSED = [
    ("follow", {"agent": 0}, "agent 0 cannot do that to itself"),
    ("mute", {"agent": 30}, r"30 is no agent \(rows: 0 \.\. 29\)"),
    ("block", {"agent": 10**30}, "is no agent"),
    ("unfollow", {"agent": "STRANGER"}, "you do not follow agent"),
    ("follow", {"agent": "FOLLOWEE"}, "you follow agent .* already"),
    ("report", {"post": -1}, "post -1 is not in your feed"),
    ("mute", {"agent": True}, "Input should be a number"),
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


def test_a_search_finds_nothing_by_one_who_is_muted(monkeypatch):
    def found(model):
        words = {model.posts.texts[text] for text in model.posts.text_id.tolist()}
        return "".join(toolbox(model, 0).execute("search_posts", {"words": text}).text for text in sorted(words))

    model = talking(rounds=2, **LIVE)
    author = next(row for row in range(1, 30) if f"(agent {row})" in found(model))
    model.agent(0).mute(author)
    model.step()
    assert f"(agent {author})" not in found(model)


def opinionated(prompt):
    """Think of something to decide about another one."""
    name = DECIDE[whim(prompt, 4)]
    return thought((name, {"agent": whim(prompt + "x", 30)}))


def test_an_llm_that_calls_them_moves_the_network():
    model = talking(Mind(thinks=opinionated), rounds=3, **LIVE)
    assert {row["why"] for row in rows_of(model, "follows")} >= {"tool"}
    assert model.network.checksum != model.first_network.checksum
    model.close()
