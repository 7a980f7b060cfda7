"""Words that scripts give, the table of posts that holds them, and records of them."""

from copy import deepcopy

import numpy as np
from talking_worlds import Talker, said, talkers, view
from worlds import plain, ran, small

from prism_mesa.domain import ACTIONS
from prism_mesa.runs.config import make_config
from prism_mesa.runs.run_files import read_table
from prism_mesa.runs.social import run
from prism_mesa.social.content.writer import SENTENCES
from prism_mesa.social.round.engagements import new_engagements
from prism_mesa.social.state.posts import POST, REPLY, RESHARE, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus

LIKE, REPLIES, RESHARES = range(len(ACTIONS))


# scripts' own words


def test_a_script_says_what_it_likes_and_readers_see_it():
    model = talkers([4])
    by_kind = {kind: (words, text) for kind, _, _, words, text in said(model)}
    assert by_kind[REPLY][0] == "Not so fast"
    assert by_kind[RESHARE][0] == "Read this"
    post = int(np.flatnonzero(model.posts.kind == RESHARE)[0])
    core = model.posts.added_text(post)
    assert view(model, post).text == f"Read this (resharing: {core})"
    assert view(model, post).words == "Read this"


def test_the_first_words_of_an_engagement_count():
    class Insists(Talker):
        def step(self):
            if self.feed:
                self.reply(self.feed[0], f"At tick {self.model.tick}")

    model = talkers([4], talker=Insists)
    assert said(model)
    assert {words for *_, words, _ in said(model)} == {"At tick 1"}


def test_a_reply_without_words_to_one_with_words_is_about_what_that_says():
    class Chatty(Talker):
        def step(self):
            answered = [post for post in self.feed if post.kind == "reply"]
            if self.model.tick == 1 and self.feed:
                if answered:
                    self.reply(answered[0])
                    self.reshare(answered[0])
                else:
                    self.reply(self.feed[0], "So it is")

    model = talkers(range(8), talker=Chatty, rounds=5, network_mean_degree=15)
    posts = model.posts
    worded = [i for i in range(len(posts)) if posts.kind[i] == REPLY and posts.words[i] < 0]
    seen = {view(model, i).text for i in worded if posts.words[posts.parent[i]] >= 0}
    assert seen == {"(in reply to: So it is)"}
    passed_on = {view(model, i).text for i in range(len(posts)) if posts.kind[i] == RESHARE}
    assert any(text.startswith("So it is (in reply to: ") for text in passed_on)
    assert not any(text.count("in reply to") > 1 for text in seen | passed_on)


# the table of posts


def table(texts=("one", "two"), labels=(), media=()):
    placed = []

    def place(more, about=()):
        placed.append((list(more), list(about)))
        return np.full((len(more), 2), len(placed), np.int8)

    topics = Topics(np.zeros((len(texts), 2), np.int8), [], np.zeros((0, 2), np.int8), place)
    types = list(media)
    return Posts(
        Corpus(list(texts), labels=list(labels), media_types=types, media_descriptions=types), topics, 3
    ), placed


def worded():
    """A post and a reply to it that has words."""
    posts, _ = table()
    posts.add(np.array([0]), np.array([0]), 0, POST, -1, None)
    assert posts.words.tolist() == [-1]
    text_id, words = posts.compose_texts(np.array([0]), np.array([REPLY]), ["Why?"], np.array([0]))
    posts.add(np.array([1]), text_id, 1, REPLY, 0, None, 0, words)
    return posts


def test_an_answer_without_words_shows_the_words_of_its_root_and_a_reshare_all_that_it_shows():
    posts = worded()
    shown, words = posts.compose_texts(np.array([1, 1, 0, 0]), np.array([REPLY, RESHARE] * 2), [], np.full(4, -1))
    assert [posts.texts[i] for i in shown] == ["Why?", "Why? (in reply to: one)", "one", "one"]
    assert words.tolist() == [-1] * 4


def test_words_stay_with_their_posts_in_copies_in_snapshots_and_when_the_table_grows():
    posts, again, silent = worded(), *(table()[0] for _ in range(2))
    again.restore(posts.snapshot())
    silent.add(np.array([0]), np.array([0]), 0, POST, -1, None)
    copies = [posts, again, deepcopy(posts)]
    for each in copies:
        [words] = set(each.words.tolist()) - {-1}
        each.add(np.zeros(2000, np.int32), np.zeros(2000, np.int32), 2, POST, -1, None)
        assert each.words.tolist() == [-1, words] + [-1] * 2000
        assert each.texts[words] == "Why?"
    again.restore(silent.snapshot())
    assert again.words.tolist() == [-1]


def test_equal_texts_are_kept_and_embedded_once():
    posts, placed = table()
    assert posts.add_texts(["a", "b", "a"]).tolist() == [2, 3, 2]
    assert posts.add_texts(["b", "one", "a"]).tolist() == [3, 4, 2]  # a text of the corpus may have media of its own
    assert posts.add_texts([]).tolist() == []
    assert posts.texts == ["one", "two", "a", "b", "one"]
    assert placed == [(["a", "b"], []), (["one"], [])]


def test_a_comment_shows_the_media_of_what_it_passes_on_and_words_alone_have_none():
    posts, _ = table(media=("", "image"))
    posts.add(np.array([0]), np.array([1]), 0, POST, -1, None)
    text_id, words = posts.compose_texts(np.array([0]), np.array([RESHARE]), ["Look"], np.array([0]))
    posts.add(np.array([3]), text_id, 1, RESHARE, 0, np.array([0]), 0, words)
    [seen] = posts.views(np.array([1]), ["Ann"], [0.5], [0.5])
    assert (seen.text, seen.words, seen.media_type) == ("Look (resharing: two)", "Look", "image")
    assert posts.media(int(words[0])) == ("", "")


# what is left to write


def test_what_nobody_worded_is_listed_once_by_tick_agent_and_post():
    model = ran(small(agents_activity=0.0, agents_post_rate=1.0), 1)
    events = model.events
    for entry in ((2, 5, 7, REPLIES), (1, 9, 8, RESHARES), (1, 9, 8, LIKE), (1, 4, 8, REPLIES), (3, 4, 8, REPLIES)):
        events.engagements.append(tuple(np.array([value], np.int32) for value in entry))
    events.engagements.append(tuple(np.array([value] * 2, np.int32) for value in (1, 9, 3, REPLIES)))
    events.texts[4, 8, REPLIES] = "mine"
    tick, agent, post, action = new_engagements(model.platform)
    left = np.stack(events.wordless(tick, agent, post, action)).T.tolist()
    assert left == [[1, 9, 3, REPLIES], [1, 9, 8, RESHARES], [2, 5, 7, REPLIES]]
    assert len(tick) == 5
    words, place = events.engagement_words(agent, post, action)
    assert [words[i] if i >= 0 else "" for i in place] == ["mine", "", "", "", ""]


# records


def test_the_table_of_posts_holds_the_words(tmp_path):
    given = plain({"agents": {"n": 60, "activity": 1.0, "threshold_mean": 0.4}, "rounds": 5})
    silent, wordy = (
        read_table(run(make_config(given | {"content": content}), out=tmp_path).run_dir, "posts")
        for content in ("none", "template")
    )
    assert list(silent.columns) == list(wordy.columns)
    assert silent["comment"].isna().all()
    assert silent.loc[silent["kind"] == "reply", "text"].isna().all()
    of_kind = dict(list(wordy.groupby("kind", observed=True)))
    assert wordy["text"].notna().all()
    assert of_kind["reshare"]["comment"].notna().all()
    assert of_kind["post"]["comment"].isna().all()
    assert of_kind["reply"]["comment"].isna().all()
    replies = of_kind["reply"]["text"].astype(str)
    heads = tuple(s.split("{")[0] for (action, _), table in SENTENCES.items() for s in table if action == "reply")
    assert all(text.startswith(heads) and "(" not in text for text in replies)
    text = wordy["text"].astype(str)
    assert (text[of_kind["reshare"].index].to_numpy() == text[of_kind["reshare"]["root"]].to_numpy()).all()
