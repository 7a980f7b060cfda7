"""Tools of agents on the platform: what they refuse, and what they do."""

import json
import re
from collections import Counter

import pytest
from minds import Mind, busy, published, thought
from tool_worlds import KINDS, feed_of, rows_of, step_with, talking, toolbox, untouched

from prism_mesa.domain import ACTIONS
from prism_mesa.social.content.activity import NOTE_CAP
from prism_mesa.social.state.posts import WORDS_CAP


def noted(model):
    """Return all that a round has noted down, as plain values."""
    events = model.events
    columns = [column.tolist() for column in (*(c for part in events.impressions for c in part), *events.engaged())]
    return [*columns, list(events.written), dict(events.texts), list(events.notes)]


# -- what is not allowed -------------------------------------------------------------------------------


NOT_IN_FEED = "is not in your feed"


REFUSED = [
    ("like", {"post": -1}, "post -1 is not in your feed"),
    ("like", {"post": 10**30}, NOT_IN_FEED),
    ("like", {"post": 2**31}, NOT_IN_FEED),
    ("like", {"post": True}, "Input should be a number"),
    ("like", {"post": "1; drop"}, "unable to parse"),
    ("like", {"post": None}, "Input should be a valid integer"),
    ("like", {"post": 0, "times": 100}, "there is no such parameter"),
    ("like", {}, "is missing"),
    ("reply", {"post": "FEED", "text": "  \n "}, "is empty: say something"),
    ("reply", {"post": "FEED", "text": "\x00\x07"}, "is empty: say something"),
    ("reshare", {"post": "FEED", "comment": " "}, "is empty: say something"),
    ("reshare", {"post": 10**9}, NOT_IN_FEED),
    ("post", {"text": ""}, "is empty: say something"),
    ("remember", {"note": "so", "importance": 0}, r"0 is not in 1\.\.10"),
    ("remember", {"note": "so", "importance": 11}, r"11 is not in 1\.\.10"),
    ("remember", {"note": " ", "importance": 5}, "is empty: say what to remember"),
    ("read_thread", {"post": -1}, "there is no post -1"),
    ("read_thread", {"post": 10**30}, "there is no post"),
    ("look_at_profile", {"agent": -1}, "there is no user -1"),
    ("look_at_profile", {"agent": 10**30}, "there is no user"),
    ("delete_platform", {"now": True}, "There is no tool 'delete_platform'"),
    ("_act", {"action": "like", "post": "FEED"}, "There is no tool '_act'"),
    ("__init__", {}, "There is no tool '__init__'"),
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


def test_a_post_of_nobodys_feed_and_one_of_somebody_elses_cannot_be_acted_upon(monkeypatch):
    def activity(model):
        row = untouched(model)
        outside = [post for post in range(len(model.posts)) if post not in feed_of(model, row)]
        before, box = noted(model), toolbox(model, row)
        calls = [("like", {}), ("reply", {"text": "Hear me"}), ("reshare", {"comment": "Hear me"})]
        results = [box.execute(name, {"post": post, **more}) for post in outside for name, more in calls]
        assert noted(model) == before
        return {result.ok for result in results}

    assert step_with(monkeypatch, talking(rounds=1), activity) == [{False}]


def test_ten_megabytes_become_a_line_of_the_usual_length_and_half_a_pair_a_question_mark(monkeypatch):
    long = "so \ud800\n" * 2_000_000

    def activity(model):
        row = untouched(model)
        box, post = toolbox(model, row), feed_of(model, row)[0]
        calls = (
            ("reply", {"post": post, "text": long}),
            ("reshare", {"post": post, "comment": long}),
            ("post", {"text": long}),
            ("remember", {"note": long, "importance": 3}),
            ("search_posts", {"words": long}),
            ("recall", {"about": long}),
        )
        assert all(box.execute(name, given).ok for name, given in calls)
        return row

    model = talking()
    [row] = step_with(monkeypatch, model, activity)
    words = [text for kind, round_, author, text in published(model) if author == row and round_ == 1]
    assert [len(text) for text in words] == [WORDS_CAP] * 3
    assert all(text.startswith("so ? so ?") for text in words)
    [note] = model.notebook.of(row)
    assert len(note.text) == NOTE_CAP


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
    assert {int(model.posts.root[i]) for i in feed} <= set(model.exposure.of(row).tolist())
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


def test_what_the_chart_has_done_a_tool_cannot_do_again_but_something_else():
    told = Counter()

    def insists(prompt):
        post = int((re.findall(r"post (\d+) by", prompt) or [0])[-1])
        calls = [("reply", {"post": post, "text": "Once more"}), ("reshare", {"post": post}), ("like", {"post": post})]
        return thought(*calls)

    model = talking(Mind(thinks=insists), 3)
    for row in rows_of(model, "thoughts", event="tool"):
        call = json.loads(row["text"])
        told[row["action"], call["tool_name"], re.sub(r"\d+", "N", call["result"]["text"])] += 1
    assert told["reply", "reply", "you have done that to post N already"] > 5
    assert told["reshare", "reply", "You reply to post N; others see it in the next round."] > 5
    assert told["reshare", "reshare", "you have done that to post N already"] > 5
    assert told["reply", "reshare", "You reshare post N; others see it in the next round."] > 5
    assert told["reshare", "like", "You like post N."] > 5
    assert not any((action, name) == ("reply", "reply") and text.startswith("You") for action, name, text in told)
    per_round = Counter(
        (row["round"], row["agent"], row["root"], str(row["action"])) for row in rows_of(model, "engagements")
    )
    assert max(n for (*_, action), n in per_round.items() if action != "reply") == 1


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


@pytest.mark.slow
def test_an_engagement_does_not_come_before_its_impression():
    model = talking(Mind(thinks=busy), 6, deliberation_iterations=2)
    read = {(row["round"], row["agent"], row["post"]): row["tick"] for row in rows_of(model, "impressions")}
    engaged = rows_of(model, "engagements")
    assert all(read[row["round"], row["agent"], row["post"]] <= row["tick"] for row in engaged)
    assert len(engaged) > 100
