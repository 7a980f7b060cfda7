"""Words of posts: none, sentences from a table, what they change, and that no order matters."""

from pathlib import Path

import numpy as np
import pytest
from talking_worlds import LIVELY, lively, said, saying, talkers, view
from worlds import differing, plain, ran, small

from prism_mesa.errors import ConfigError
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.content.writer import SENTENCES
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round import publish as publishing
from prism_mesa.social.state.posts import POST, REPLY, RESHARE, WORDS_CAP
from prism_mesa.statechart import AgentState, Statechart


def table_bytes(folder):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).glob("*.parquet"))}


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
    for kind, _, parent, *_ in said(model):
        post = next(
            i for i in range(len(model.posts)) if model.posts.parent[i] == parent and model.posts.kind[i] == kind
        )
        [text] = model.posts.shown([model.posts.root[parent]])
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


@pytest.mark.slow
def test_the_files_are_the_same_bytes_with_the_other_scheduler_and_with_threads(tmp_path):
    given = plain({"agents": {"n": 60, "activity": 1.0, "threshold_mean": 0.4}, "rounds": 4, "content": "template"})
    ways = ({}, {"scheduler": "mesa"}, {"threads": 4})
    first, *others = (table_bytes(run(make_config(given | way), out=tmp_path).run_dir) for way in ways)
    assert others == [first, first]


def test_two_agents_that_answer_the_same_post_leave_the_same_tables_in_either_order():
    forwards, backwards = talkers([2, 5, 9]), talkers([9, 5, 2])
    together = [parent for kind, _, parent, _, _ in said(forwards) if kind == REPLY]
    assert len(together) > len(set(together))
    assert by_words(forwards, backwards) == []


@pytest.mark.slow
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
