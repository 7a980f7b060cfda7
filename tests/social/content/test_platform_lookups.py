"""Tools that look at the platform as it stood when the round opened, and notes."""

import re

import numpy as np
from minds import Mind, busy, thought, whim
from tool_worlds import feed_of, step_with, talking, toolbox
from worlds import ran, small

from prism_mesa.social.content.activity import recent_activities

# -- the platform as it stood --------------------------------------------------------------------------


def looked(model):
    """Return all that anybody can look up."""
    box = toolbox(model, 0)
    found = [box.execute("read_thread", {"post": post}).text for post in range(len(model.posts) + 3)]
    found += [box.execute("look_at_profile", {"agent": row}).text for row in range(len(model.population))]
    found += [box.execute("search_posts", {"words": words}).text for words in ("Hear me", "music", "election", "")]
    found += [toolbox(model, row).execute("recall", {}).text for row in range(len(model.population))]
    return found


def test_tools_see_the_platform_as_it_stood_when_the_round_opened(monkeypatch):
    model = talking(Mind(thinks=busy), 2)

    def everybody_acts(model):
        for row in range(len(model.population)):
            box = toolbox(model, row)
            for post in feed_of(model, row):
                box.execute("like", {"post": post})
                box.execute("reply", {"post": post, "text": "Hear me"})
                box.execute("reshare", {"post": post, "comment": "Hear me"})
            box.execute("post", {"text": "Hear me too"})
            box.execute("remember", {"note": "I was heard", "importance": 9})
        return looked(model)

    before, after = step_with(monkeypatch, model, looked, everybody_acts)
    assert before == after
    assert not any("Hear me" in text for text in after)
    [later] = step_with(monkeypatch, model, looked)
    assert sum("Hear me" in text for text in later) > 10
    assert sum("I was heard" in text for text in later) == len(model.population)
    assert sum("Round 2: you liked" in text for text in later) == len(model.population)


def test_a_thread_is_the_post_what_it_answers_and_its_latest_replies(monkeypatch):
    model = talking(rounds=4, deliberation_result_chars=5000)
    posts = model.posts
    opened = model.round + 1

    def activity(model):
        return [toolbox(model, 0).execute("read_thread", {"post": i}).text for i in range(len(posts))]

    [threads] = step_with(monkeypatch, model, activity)
    first = posts.first_visible(opened, model.params.feed.window)
    checked = 0
    for i, text in enumerate(threads):
        named = [int(n) for n in re.findall(r"^post (\d+) by", text, re.MULTILINE)]
        above = [int(posts.parent[i])] if posts.parent[i] >= 0 else []
        below = [j for j in range(first, len(threads)) if posts.parent[j] == i][-5:]
        assert named == [*above, i, *below]
        checked += bool(above and below)
    assert checked


# -- notes ---------------------------------------------------------------------------------------------


def test_notes_enter_prompts_from_the_next_round_on():
    def remembers(prompt):
        return thought(("remember", {"note": f"secret {whim(prompt, 1000)}", "importance": 5}))

    mind = Mind(thinks=remembers)
    model = talking(mind)
    model.step()
    assert not any("You thought: <<< secret" in prompt for prompt in mind.prompts)
    assert len(model.notebook)
    mind.prompts.clear()
    model.step()
    assert any("You thought: <<< secret" in prompt for prompt in mind.prompts)


def test_what_comes_to_mind_is_recent_relevant_and_important(monkeypatch):
    most, per_round = (
        3,
        (("music is dear to me", 5), ("the election is near", 4), ("it rains", 9), ("music is loud", 3)),
    )
    model = talking(deliberation_notes_told=most, agents_post_rate=0.0, clock_round_minutes=60 * 24)
    for round_ in range(3):
        given = [(f"{text}, {round_}", importance) for text, importance in per_round]

        def activity(model, given=given):
            for text, importance in given:
                assert toolbox(model, 3).execute("remember", {"note": text, "importance": importance}).ok

        step_with(monkeypatch, model, activity)

    def mind(about):
        return lambda model: toolbox(model, 3).execute("recall", {"about": about}).text.splitlines()[:most]

    def count(text, importance, round_, about):
        one, other = model.topics.embed_texts([text, about]).astype(float)
        near = (1 + one @ other / np.sqrt((one @ one) * (other @ other))) / 2
        return 0.995 ** (24 * (3 - round_)) * near * importance

    for about, found in zip(
        ("music", "election"), step_with(monkeypatch, model, mind("music"), mind("election")), strict=True
    ):
        notes = [(f"{text}, {r}", importance, r) for r in range(3) for text, importance in per_round]
        best = sorted(notes, key=lambda note: -count(*note, about))[:most]
        assert found == [f"Note: <<< {text} >>>" for text, *_ in best]


def test_likes_by_the_chart_are_told_with_the_round_and_the_tick_of_their_transition():
    model = ran(
        small(agents_activity=1.0, agents_threshold_mean=0.5, agents_like=1, agents_reply=0, agents_reshare=0), 3
    )
    moved = [row for row in model.recorder.tables["transitions"] if row["to_state"] == "engaging_like"]
    done = {(row["round"], row["tick"], row["agent"], row["post"]) for row in moved if row["round"] < 2}
    told = {
        (activity.round, activity.tick, agent, activity.post)
        for agent in range(30)
        for activity in recent_activities(model.platform, agent, 1000)
        if activity.action == "like"
    }
    assert told == done
    assert len({(round_, tick) for round_, tick, _, _ in done}) > 4
