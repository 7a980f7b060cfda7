"""Words of replies and reshares: who gives them, how they read, what they change, and that no order matters."""

from pathlib import Path

import numpy as np
import pytest
from worlds import differing, ran, small

from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.trace import why
from prism_mesa.domain import ACTIONS
from prism_mesa.errors import AgentError, ConfigError
from prism_mesa.runs.config import make_config
from prism_mesa.runs.run_files import read_table
from prism_mesa.runs.social import run
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.content.writer import SENTENCES
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round import publish as publishing
from prism_mesa.social.round.engagements import counted
from prism_mesa.social.state.events import Events
from prism_mesa.social.state.posts import POST, REPLY, RESHARE, WORDS_CAP, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus
from prism_mesa.statechart import AgentState, Statechart

LIVELY = {"agents_activity": 1.0, "agents_threshold_mean": 0.4, "agents_post_rate": 0.4}
LIKE, REPLIES, RESHARES = range(len(ACTIONS))


def lively(rounds=4, **params):
    return ran(small(**LIVELY | params), rounds)


def said(model):
    """Return all that replies and reshares say: (kind, author, parent, words, text)."""
    posts = model.posts
    children = np.flatnonzero(posts.kind != POST)
    words = ["" if i < 0 else posts.texts[i] for i in posts.words[children].tolist()]
    texts = [posts.texts[i] for i in posts.text_id[children].tolist()]
    columns = (posts.kind, posts.author, posts.parent)
    return list(zip(*(column[children].tolist() for column in columns), words, texts, strict=True))


def table_bytes(folder):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).glob("*.parquet"))}


def view(model, post, reader=0):
    return model.post(int(post), reader)


class Talker(SocialAgent):
    """Replies to and reshares the first post of its feed, in its own words, and does nothing else."""

    texts = ("Not so fast", "Read this")

    def step(self):
        if self.feed and self.model.tick == 1:
            self.reply(self.feed[0], self.texts[0])
            self.reshare(self.feed[0], self.texts[1])


def saying(*texts):
    """Return a class of agents that reply and comment in these words."""
    return type("Saying", (Talker,), {"texts": texts})


def talkers(order, kind=SocialModel, talker=Talker, rounds=3, **params):
    """Return a world in which nobody but a few agents with scripts does anything but post."""
    quiet = {"agents_activity": 0.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}
    model = small(kind, **quiet | params)
    for row in order:
        talker(model, row)
    return ran(model, rounds)


def by_words(one, other):
    """Return in which facts two worlds differ, the words included."""
    words = [] if one.posts.words.tolist() == other.posts.words.tolist() else ["posts.words"]
    return differing(one, other) + words


# nobody writes


def test_without_content_replies_and_reshares_have_no_words_and_no_text_is_added():
    model = lively()
    assert len(said(model)) > 20
    assert {words for _, _, _, words, _ in said(model)} == {""}
    assert model.posts.texts == model.posts.corpus.texts
    assert by_words(model, lively(content="none")) == []


def test_without_words_a_reply_is_seen_as_what_it_answers_and_a_reshare_as_what_it_passes_on():
    model = lively()
    for kind, _, parent, _, text in said(model):
        post = next(
            i for i in range(len(model.posts)) if model.posts.parent[i] == parent and model.posts.kind[i] == kind
        )
        assert view(model, post).text == (f"(in reply to: {text})" if kind == REPLY else text)
        assert view(model, post).words == ""


def test_an_llm_can_only_write_where_one_is_named():
    with pytest.raises(ConfigError, match=r"content: llm needs an LLM, and reasoner\.kind=rule asks none"):
        small(content="llm")


# sentences from a table


def test_with_templates_each_reply_and_each_reshare_of_a_round_has_words():
    model = lively(content="template")
    kinds = {kind for kind, *_ in said(model)}
    assert kinds == {REPLY, RESHARE}
    assert all(words and text.startswith(f"{words} (") for _, _, _, words, text in said(model))
    assert len(said(model)) == model.totals["replies"] + model.totals["reshares"]


def test_what_readers_see_is_the_words_and_what_the_parent_says_itself_so_nothing_nests():
    model = lively(6, content="template", agents_n=100)
    posts, deep = model.posts, 0
    for kind, _, parent, words, text in said(model):
        root = int(posts.root[parent])
        core = posts.texts[posts.words[root] if posts.kind[root] == REPLY else posts.text_id[root]]
        how = "in reply to" if kind == REPLY else "resharing"
        assert text == f"{words} ({how}: {core})"
        assert text.count("(in reply to:") + text.count("(resharing:") == 1
        deep += int(posts.kind[parent]) != POST
    assert deep > 10


@pytest.mark.parametrize(("agreeableness", "tone"), [(5.0, "friendly"), (3.86, "friendly"), (3.85, "doubting")])
def test_agreeable_agents_are_friendly_and_others_doubt(agreeableness, tone):
    model = small(content="template", **LIVELY)
    for agent in model.agents:
        agent.agreeableness = agreeableness
    ran(model, 4)
    for action, kind in (("reply", REPLY), ("reshare", RESHARE)):
        heads = {sentence.split("{")[0] for sentence in SENTENCES[action, tone]}
        own = [words for of_kind, _, _, words, _ in said(model) if of_kind == kind]
        assert {head for head in heads for words in own if words.startswith(head)} == heads
        assert all(words.startswith(tuple(heads)) for words in own)


def test_a_sentence_names_the_topic_that_the_post_is_nearest_to(tmp_path):
    file = tmp_path / "posts.csv"
    file.write_text(
        "text,topic\nthe opera tonight,music\na jazz album,music\nthe striker scored,sport\na late goal,sport\n"
    )
    model = lively(5, content="template", posts_file=str(file))
    topic = {
        "the opera tonight": "music",
        "a jazz album": "music",
        "the striker scored": "sport",
        "a late goal": "sport",
    }
    about = {(topic[core], words) for *_, words, text in said(model) for core in topic if f": {core})" in text}
    assert {of for of, _ in about} == {"music", "sport"}
    assert all(of in words for of, words in about)
    in_threads = [(words, view(model, parent).text) for _, _, parent, words, _ in said(model)]
    assert all("music" in words for words, parent in in_threads if "music" in parent)


def test_where_no_topic_has_a_name_sentences_are_about_this(tmp_path):
    (tmp_path / "posts.csv").write_text("text\n1\n2\n!!!\n")
    model = lively(content="template", posts_file=str(tmp_path / "posts.csv"))
    assert len(said(model)) > 5
    assert all("this" in words for *_, words, _ in said(model))


def test_long_names_of_topics_are_cut_with_the_sentence(tmp_path):
    (tmp_path / "posts.csv").write_text("text,topic\nhello there,{x} " + "y" * 400 + "\nbye,b\n")
    model = lively(content="template", posts_file=str(tmp_path / "posts.csv"))
    lengths = {len(words) for *_, words, _ in said(model)}
    assert max(lengths) == WORDS_CAP


def test_posts_of_their_own_keep_the_texts_of_the_corpus():
    posts = lively(content="template").posts
    own = posts.kind == POST
    assert own.sum() > 20
    assert (posts.text_id[own] < len(posts.corpus.texts)).all()
    assert (posts.words[own] < 0).all()


def test_a_writer_of_their_own_posts_changes_what_they_say_and_no_draw(monkeypatch):
    def names(model, authors, texts):
        return model.posts.add_texts([f"Here is agent {row}" for row in authors], texts.tolist())

    plain = lively(1).posts
    monkeypatch.setattr(publishing, "own_posts", names)
    other = lively(1).posts
    own = np.flatnonzero(other.kind == POST)
    assert len(own) > 5
    assert [other.texts[i] for i in other.text_id[own]] == [f"Here is agent {row}" for row in other.author[own]]
    assert (other.author[own].tolist(), other.key[own].tolist()) == (
        plain.author[own].tolist(),
        plain.key[own].tolist(),
    )


def test_a_draft_that_times_out_gets_no_words():
    limits = {AgentState.RESTING: 2, AgentState.COMPOSING: 1}
    chart = Statechart(AgentState, social_chart.transitions, AgentState.IDLE, timeouts=limits)
    hasty = lively(content="template", chart=chart)
    assert any(row["to_state"] == "composing" for row in hasty.recorder.tables["transitions"])
    assert said(hasty) == []
    assert hasty.posts.texts == hasty.posts.corpus.texts


# what words change


def test_what_is_written_is_embedded_as_readers_see_it(tmp_path):
    (tmp_path / "posts.csv").write_text("text\nrain falls again\nstocks went up\ntea is good\n")
    model = lively(content="template", posts_file=str(tmp_path / "posts.csv"))
    posts = model.posts
    children = np.flatnonzero(posts.kind != POST)
    texts = [posts.texts[i] for i in posts.text_id[children]]
    assert posts.vectors(children).tolist() == model.topics.place(texts).tolist()
    assert (posts.vectors(children) != posts.vectors(posts.root[posts.parent[children]])).any(axis=1).all()


def test_words_about_a_labelled_text_share_its_label(tmp_path):
    file = tmp_path / "posts.csv"
    file.write_text(
        "text,topic\nthe opera tonight,music\na jazz album,music\nthe striker scored,sport\na late goal,sport\n"
    )
    model = lively(5, content="template", posts_file=str(file))
    posts = model.posts
    children = np.flatnonzero(posts.kind != POST)
    nearest = [model.topics.words_of(posts.vectors(ids))[0][0] for ids in children[:, None]]
    core = [posts.texts[i].rsplit(": ", 1)[1] for i in posts.text_id[children]]
    own = {
        "the opera tonight)": "music",
        "a jazz album)": "music",
        "the striker scored)": "sport",
        "a late goal)": "sport",
    }
    pairs = [(name, own[text]) for name, text in zip(nearest, core, strict=True) if text in own]
    assert len(pairs) > 10
    assert all(name == label for name, label in pairs)


def test_what_is_written_changes_later_feeds():
    def read(model):
        return {(row["round"], row["agent"], row["post"]) for row in model.recorder.tables["impressions"]}

    silent, wordy = (lively(content=content, feed_mode="preference") for content in ("none", "template"))
    assert {entry for entry in read(silent) if entry[0] == 0} == {entry for entry in read(wordy) if entry[0] == 0}
    assert read(silent) != read(wordy)


def test_a_reply_that_speaks_of_something_else_is_nearer_to_those_who_like_that(tmp_path):
    (tmp_path / "posts.csv").write_text("text\nrain falls again\nstocks went up\ntea is good\ntea or coffee\n")

    def relevances(text):
        model = talkers([3], posts_file=str(tmp_path / "posts.csv"), talker=saying(text, ""))
        tea = model.topics.place(["tea coffee"])[0]
        model.population.interests[7] = tea
        replies = np.flatnonzero(model.posts.kind == REPLY)
        cores = [model.posts.texts[i] for i in model.posts.says(model.posts.parent[replies])]
        return {c: view(model, i, 7).relevance for c, i in zip(cores, replies, strict=True) if "tea" not in c}

    plain, changed = relevances(""), relevances("tea, coffee, tea, coffee, tea, coffee!")
    assert plain
    assert plain.keys() == changed.keys()
    assert all(changed[core] > plain[core] for core in plain)


# no order matters


@pytest.mark.parametrize("other", [{"scheduler": "mesa"}, {"threads": 3}])
def test_words_are_the_same_however_the_agents_are_moved(other):
    assert by_words(lively(content="template"), lively(content="template", **other)) == []


def test_the_files_are_the_same_bytes_with_the_other_scheduler_and_with_threads(tmp_path):
    given = {"agents": {"n": 60, "activity": 1.0, "threshold_mean": 0.4}, "rounds": 4, "content": "template"}
    ways = ({}, {"scheduler": "mesa"}, {"threads": 4})
    first, *others = (table_bytes(run(make_config(given | way), out=tmp_path).run_dir) for way in ways)
    assert others == [first, first]


def test_two_agents_that_answer_the_same_post_leave_the_same_tables_in_either_order():
    forwards, backwards = talkers([2, 5, 9]), talkers([9, 5, 2])
    together = [parent for kind, _, parent, _, _ in said(forwards) if kind == REPLY]
    assert len(together) > len(set(together))
    assert by_words(forwards, backwards) == []


def test_words_of_scripts_beside_templates_do_not_depend_on_the_order_either():
    class Shuffled(SocialModel):
        @property
        def agents(self):
            return super().agents.shuffle(inplace=False)

    way = {"content": "template", **LIVELY}
    first, other = (talkers(order, kind, **way) for order, kind in (([2, 5, 9], SocialModel), ([9, 2, 5], SocialModel)))
    shuffled = talkers([5, 2, 9], Shuffled, scheduler="mesa", **way)
    assert by_words(first, other) == by_words(first, shuffled) == []
    assert {"Not so fast", "Read this"} < {words for *_, words, _ in said(first)}


def test_the_draw_of_a_sentence_is_the_agents_own(tmp_path):
    def sentences(model):
        return {(author, parent): words for _, author, parent, words, _ in said(model) if author < 30}

    alone = lively(2, content="template")
    beside = small(content="template", **LIVELY)
    SocialAgent(beside)  # nobody follows it, and its own posts come last
    beside.agent(30).post_rate = 0.0
    assert sentences(ran(beside, 2)) == sentences(alone)


# scripts' own words


def test_a_script_says_what_it_likes_and_readers_see_it():
    model = talkers([4])
    by_kind = {kind: (words, text) for kind, _, _, words, text in said(model)}
    assert by_kind[REPLY][0] == "Not so fast"
    assert by_kind[RESHARE][0] == "Read this"
    post = int(np.flatnonzero(model.posts.kind == RESHARE)[0])
    core = model.posts.texts[model.posts.says(np.array([post]))[0]]
    assert view(model, post).text == f"Read this (resharing: {core})"
    assert view(model, post).words == "Read this"


def test_a_script_that_gives_no_words_has_none_or_those_of_the_template():
    silent = saying("", "")
    assert {words for *_, words, _ in said(talkers([4], talker=silent))} == {""}
    assert "" not in {words for *_, words, _ in said(talkers([4], talker=silent, content="template"))}


def test_with_templates_a_script_keeps_its_own_words():
    own = {words for *_, words, _ in said(talkers([4], content="template"))}
    assert own == {"Not so fast", "Read this"}


def test_words_are_one_line_cut_to_their_cap():
    long = saying("one\ntwo\x00  " + "x" * 300, "a >>> b")
    reply, comment = (words for *_, words, _ in sorted(said(talkers([4], talker=long, rounds=1))))
    assert reply == "one two " + "x" * (WORDS_CAP - 9) + "…"
    assert comment == "a >> b"


def test_the_first_words_of_an_engagement_count():
    class Insists(Talker):
        def step(self):
            if self.feed:
                self.reply(self.feed[0], f"At tick {self.model.tick}")

    model = talkers([4], talker=Insists)
    assert said(model)
    assert {words for *_, words, _ in said(model)} == {"At tick 1"}


@pytest.mark.parametrize("text", [" ", "\n", "\x00", None, 5])
@pytest.mark.parametrize("action", ["reply", "reshare"])
def test_a_text_that_is_blank_or_none_is_refused(text, action):
    model = ran(small(agents_post_rate=1.0), 1)
    with pytest.raises(AgentError, match=rf"SocialAgent\.{action}: .* is no text; leave it out to give no words"):
        getattr(model.agent(3), action)(view(model, 0), text)
    assert model.events == Events(moves=model.events.moves)


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


def test_equal_texts_are_kept_and_embedded_once():
    posts, placed = table()
    assert posts.add_texts(["a", "b", "a"]).tolist() == [2, 3, 2]
    assert posts.add_texts(["b", "one", "a"]).tolist() == [3, 4, 2]  # a text of the corpus may have media of its own
    assert posts.add_texts([]).tolist() == []
    assert posts.texts == ["one", "two", "a", "b", "one"]
    assert placed == [(["a", "b"], []), (["one"], [])]


def test_topics_stay_with_their_texts_while_these_grow():
    posts, _ = table()
    for k in range(100):
        posts.add_texts([f"text {k}"])
    assert posts.text_vectors.tolist() == [[0, 0], [0, 0], *([k, k] for k in range(1, 101))]


def test_what_agents_say_over_and_over_costs_no_more_texts(tmp_path):
    (tmp_path / "posts.csv").write_text("text\nrain falls again\nstocks went up\n")
    model = lively(8, content="template", posts_file=str(tmp_path / "posts.csv"), agents_n=300)
    texts = model.posts.texts
    assert len(said(model)) > 3 * len(texts)
    assert len(texts) == len(set(texts))


def test_two_who_say_the_same_about_the_same_share_their_texts():
    posts, _ = table()
    posts.add(np.array([0]), np.array([1]), 0, POST, -1, None)
    parent, kind = np.zeros(4, int), np.array([REPLY, REPLY, RESHARE, REPLY])
    text_id, words = posts.worded(parent, kind, ["So", "No"], np.array([0, 0, 0, 1]))
    assert [posts.texts[i] for i in text_id] == [
        "So (in reply to: two)",
        "So (in reply to: two)",
        "So (resharing: two)",
        "No (in reply to: two)",
    ]
    assert [posts.texts[i] for i in words] == ["So", "So", "So", "No"]
    assert (text_id[0], words[0]) == (text_id[1], words[1])
    assert len(posts.texts) == 2 + 2 + 3


def test_what_is_said_of_a_text_has_its_labels_also_at_second_hand():
    posts, placed = table(labels=[("a",), ("b",)])
    posts.add(np.array([0]), np.array([1]), 0, POST, -1, None)
    text_id, words = posts.worded(np.array([0]), np.array([REPLY]), ["So"], np.array([0]))
    posts.add(np.array([0]), text_id, 1, REPLY, 0, None, 0, words)
    posts.worded(np.array([1]), np.array([REPLY]), ["Why"], np.array([0]))
    assert placed == [
        (["So"], [1]),
        (["So (in reply to: two)"], [1]),
        (["Why"], [1]),
        (["Why (in reply to: So)"], [1]),
    ]


def test_a_comment_shows_the_media_of_what_it_passes_on_and_words_alone_have_none():
    posts, _ = table(media=("", "image"))
    posts.add(np.array([0]), np.array([1]), 0, POST, -1, None)
    text_id, words = posts.worded(np.array([0]), np.array([RESHARE]), ["Look"], np.array([0]))
    posts.add(np.array([3]), text_id, 1, RESHARE, 0, np.array([0]), 0, words)
    [seen] = posts.views(np.array([1]), ["Ann"], [0.5])
    assert (seen.text, seen.words, seen.media_type) == ("Look (resharing: two)", "Look", "image")
    assert posts.media(int(words[0])) == ("", "")


def test_which_posts_have_media_is_what_each_of_them_shows():
    posts, _ = table(texts=("one", "two", "three"), media=("", "image", ""))
    written = posts.add_texts(["Look (resharing: two)", "Look"], [1, 1], with_media=True)[:1].tolist()
    words = posts.add_texts(["So it is"], [1]).tolist()
    posts.add(np.zeros(5, int), np.array([0, 1, 2, *written, *words]), 0, POST, -1, None)
    assert posts.has_media(np.array([4, 3, 1, 0, 2, 1])).tolist() == [False, True, True, False, False, True]
    assert posts.has_media(np.zeros(0, int)).tolist() == []
    seen = posts.views(np.arange(5), [""] * 5, [0.5] * 5)
    assert [view.has_media for view in seen] == posts.has_media(np.arange(5)).tolist()


def test_what_is_passed_on_is_the_root_without_anybody_elses_comment():
    posts, _ = table()
    posts.add(np.array([0]), np.array([1]), 0, POST, -1, None)
    text_id, words = posts.worded(np.array([0]), np.array([RESHARE]), ["Look"], np.array([0]))
    posts.add(np.array([3]), text_id, 1, RESHARE, 0, np.array([0]), 0, words)
    text_id, words = posts.worded(np.array([1]), np.array([RESHARE]), [], np.array([-1]))
    assert (text_id.tolist(), words.tolist()) == ([1], [-1])


# what is left to write


def test_what_nobody_worded_is_listed_once_by_tick_agent_and_post():
    model = ran(small(agents_activity=0.0, agents_post_rate=1.0), 1)
    events = model.events
    for entry in ((2, 5, 7, REPLIES), (1, 9, 8, RESHARES), (1, 9, 8, LIKE), (1, 4, 8, REPLIES), (3, 4, 8, REPLIES)):
        events.engagements.append(tuple(np.array([value], np.int32) for value in entry))
    events.engagements.append(tuple(np.array([value] * 2, np.int32) for value in (1, 9, 3, REPLIES)))
    events.texts[4, 8, REPLIES] = "mine"
    tick, agent, post, action = counted(model)
    left = np.stack(events.unwritten(tick, agent, post, action)).T.tolist()
    assert left == [[1, 9, 3, REPLIES], [1, 9, 8, RESHARES], [2, 5, 7, REPLIES]]
    assert len(tick) == 5
    words, place = events.words(agent, post, action)
    assert [words[i] if i >= 0 else "" for i in place] == ["mine", "", "", "", ""]


# records


def test_the_table_of_posts_holds_the_words(tmp_path):
    given = {"agents": {"n": 60, "activity": 1.0, "threshold_mean": 0.4}, "rounds": 5}
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


def test_why_tells_what_was_said(tmp_path):
    given = {"agents": {"n": 60, "activity": 1.0, "threshold_mean": 0.4}, "rounds": 4, "content": "template"}
    folder = run(make_config(given), out=tmp_path).run_dir
    posts = read_table(folder, "posts")
    reply = posts[(posts["kind"] == "reply") & (posts["round"] < 4)].iloc[0]
    lines = list(report_lines(why(folder, str(reply["author"]), int(reply["round"]) - 1)))
    assert any("it replies to" in line and f'saying "{reply["text"]}"' in line for line in lines)
