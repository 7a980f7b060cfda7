"""Words of posts: none, sentences from a table, what they change, and that no order matters."""

from pathlib import Path

import numpy as np
import pytest
from talking_worlds import LIVELY, lively, said
from worlds import differing, plain, ran, small

from prism_mesa.errors import ConfigError
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.content.writer import SENTENCES
from prism_mesa.social.state.posts import POST, REPLY, RESHARE


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


def test_an_llm_can_only_write_where_one_is_named():
    with pytest.raises(ConfigError, match=r"content: llm needs an LLM, but reasoner\.kind=rule does not ask one"):
        small(content="llm")


# sentences from a table


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


# what words change


def test_what_is_written_is_embedded_as_readers_see_it(tmp_path):
    (tmp_path / "posts.csv").write_text("text\nrain falls again\nstocks went up\ntea is good\n")
    model = lively(content="template", posts_file=str(tmp_path / "posts.csv"))
    posts = model.posts
    children = np.flatnonzero(posts.kind != POST)
    texts = [posts.texts[i] for i in posts.text_id[children]]
    assert posts.vectors(children).tolist() == model.topics.embed_texts(texts).tolist()
    assert (posts.vectors(children) != posts.vectors(posts.root[posts.parent[children]])).any(axis=1).all()


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


def test_the_draw_of_a_sentence_is_the_agents_own(tmp_path):
    def sentences(model):
        return {(author, parent): words for _, author, parent, words, _ in said(model) if author < 30}

    alone = lively(2, content="template")
    beside = small(content="template", **LIVELY)
    SocialAgent(beside)  # nobody follows it, and its own posts come last
    beside.agent(30).post_rate = 0.0
    assert sentences(ran(beside, 2)) == sentences(alone)
