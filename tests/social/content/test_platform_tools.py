"""Tools of agents on the platform: what they refuse, and what they do."""

import re
from collections import Counter

import pytest
from minds import published
from tool_worlds import KINDS, feed_of, rows_of, step_with, talking, toolbox, untouched

from prism_mesa.domain import ACTIONS


def noted(model):
    """Return all that a round has noted down, as plain values."""
    events = model.events
    impressions = (column for part in events.impressions for column in part)
    columns = [column.tolist() for column in (*impressions, *events.all_engagements())]
    return [*columns, list(events.written), dict(events.texts), list(events.notes)]


# -- what is not allowed -------------------------------------------------------------------------------


NOT_IN_FEED = "is not in your feed"


REFUSED = [
    ("like", {"post": -1}, "post -1 is not in your feed"),
    ("like", {"post": True}, "Input should be a number"),
    ("like", {"post": 0, "times": 100}, "there is no such parameter"),
    ("like", {}, "is missing"),
    ("reply", {"post": "FEED", "text": "  \n "}, "is empty: say something"),
    ("reshare", {"post": 10**9}, NOT_IN_FEED),
    ("post", {"text": ""}, "is empty: say something"),
    ("remember", {"note": "so", "importance": 11}, r"11 is not in 1\.\.10"),
    ("remember", {"note": " ", "importance": 5}, "is empty: say what to remember"),
    ("read_thread", {"post": -1}, "there is no post -1"),
    ("look_at_profile", {"agent": -1}, "there is no user -1"),
    ("delete_platform", {"now": True}, "There is no tool 'delete_platform'"),
    ("_act", {"action": "like", "post": "FEED"}, "There is no tool '_act'"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given", "told"), REFUSED)
def test_what_is_not_allowed_is_refused_in_words_and_changes_nothing(name, given, told, monkeypatch):
    model = talking(rounds=1)

    def activity(model):
        row = untouched(model)
        before, read = noted(model), model.population.n_read.tolist()
        own = {key: feed_of(model, row)[0] if value == "FEED" else value for key, value in given.items()}
        result = toolbox(model, row).execute(name, own)
        assert (noted(model), model.population.n_read.tolist()) == (before, read)
        return result

    [result] = step_with(monkeypatch, model, activity)
    assert not result.ok
    assert re.search(told, result.text)
    assert len(result.text) <= model.params.deliberation.result_chars


# -- what is allowed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS)
def test_an_act_is_in_every_table_as_any_other(action, monkeypatch):
    words = {"like": {}, "reply": {"text": "Hear me"}, "reshare": {"comment": "Hear me"}}[action]

    def activity(model):
        row = untouched(model)
        post = feed_of(model, row)[-1]
        assert toolbox(model, row).execute(action, {"post": post, **words}).ok
        return row, post, feed_of(model, row)

    model = talking(rounds=1)
    counts = {name: getattr(model.posts, name).copy() for name in ("likes", "replies", "reshares", "impressions")}
    [(row, post, feed)] = step_with(monkeypatch, model, activity)
    root = int(model.posts.root[post])
    engaged = rows_of(model, "engagements", round=1, agent=row)
    read = rows_of(model, "impressions", round=1, agent=row)
    assert [(one["tick"], one["post"], one["root"]) for one in engaged] == [(3, post, root)]
    assert [ACTIONS.index(action)] == [ACTIONS.index(str(one["action"])) for one in engaged]
    assert Counter(one["post"] for one in read) == Counter(feed)
    assert {int(model.posts.root[i]) for i in feed} <= set(model.platform.roots_read(row).tolist())
    of_root = Counter(str(one["action"]) for one in rows_of(model, "engagements", round=1) if one["root"] == root)
    for name, of in (("like", "likes"), ("reply", "replies"), ("reshare", "reshares")):
        assert getattr(model.posts, of)[root] - counts[of][root] == of_root[name]
    assert of_root[action] >= 1
    published_ = [found for found in published(model) if found[:3] == (KINDS.get(action), 2, row)]
    assert [text for *_, text in published_] == ([] if action == "like" else ["Hear me"])


def test_a_root_is_liked_and_reshared_and_a_post_answered_once_whoever_does_it(monkeypatch):
    def activity(model):
        row = untouched(model)
        post = feed_of(model, row)[0]
        box = toolbox(model, row)
        said = {"like": {}, "reply": {"text": "So"}, "reshare": {}}
        firsts = [box.execute(action, {"post": post, **more}).ok for action, more in said.items()]
        again = [box.execute(action, {"post": post, **more}).text for action, more in said.items()]
        return firsts, set(again), post

    [(firsts, again, post)] = step_with(monkeypatch, talking(rounds=1), activity)
    assert firsts == [True, True, True]
    assert again == {f"you have done that to post {post} already"}


def test_the_feed_is_read_once_and_what_was_read_before_does_not_count_again(monkeypatch):
    def activity(model):
        row = untouched(model)
        box = toolbox(model, row)
        first = box.execute("read_feed", {}).text
        after = noted(model)
        assert box.execute("read_feed", {}).text == first
        assert noted(model) == after
        return row, feed_of(model, row), first

    model = talking(rounds=1, deliberation_result_chars=10_000)
    [(row, feed, text)] = step_with(monkeypatch, model, activity)
    assert [int(post) for post in re.findall(r"^post (\d+) by", text, re.MULTILINE)] == feed
    assert Counter(one["post"] for one in rows_of(model, "impressions", round=1, agent=row)) == Counter(feed)
    assert model.counts["impressions"] == len(rows_of(model, "impressions", round=1))
