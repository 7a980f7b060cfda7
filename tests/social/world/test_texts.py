"""Texts: the corpus as users have it, and what texts are about."""

import numpy as np
import pytest
from worlds import ran, small

from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.social.params import PostsParams
from prism_mesa.social.state.topics import UNIT, build_topics, cached_vectors, quantised
from prism_mesa.social.world.corpus import Corpus, load_corpus


def file(tmp_path, text, name="posts.csv"):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def topics(texts, labels=(), **params):
    return build_topics(Corpus(list(texts), labels=list(labels)), PostsParams(**params))


def cosine(a, b):
    a, b = a.astype(float), b.astype(float)
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


# the corpus


def test_the_corpus_inside_has_300_short_posts_over_8_topics():
    corpus = load_corpus(None)
    assert len(corpus.texts) == len(set(corpus.texts)) >= 300
    assert len({label for labels in corpus.labels for label in labels}) == 8
    assert all(len(labels) == 1 for labels in corpus.labels)
    assert max(map(len, corpus.texts)) <= 280
    assert any(corpus.media_types)
    assert (corpus.authors, corpus.rounds, corpus.dropped) == (None, None, ())


def test_all_columns_are_read(tmp_path):
    corpus = load_corpus(
        file(
            tmp_path,
            "text,author,round,topic,media_type,media_description\n"
            'one,7,1,art; music,image,"a cat, asleep"\ntwo,8,0,,,\nthree,7,0,art,,\n',
        )
    )
    assert corpus.texts == ["two", "three", "one"]  # by round, else as in the file
    assert corpus.authors == ["8", "7", "7"]
    assert corpus.rounds.tolist() == [0, 0, 1]
    assert corpus.labels == [(), ("art",), ("art", "music")]
    assert corpus.media_types == ["", "", "image"]
    assert corpus.media_descriptions == ["", "", "a cat, asleep"]


def test_posts_are_in_order_of_their_time_in_any_time_zone_and_format(tmp_path):
    corpus = load_corpus(
        file(
            tmp_path,
            "text,created_at\nlast,2026-01-02 00:00:00+00:00\nmiddle,2026-01-01T20:00:00-03:00\nfirst,2026-01-01\n",
        )
    )
    assert corpus.texts == ["first", "middle", "last"]


def test_rows_that_cannot_be_used_are_dropped_and_counted_once_each(tmp_path):
    corpus = load_corpus(
        file(
            tmp_path,
            "text,author,round,created_at\ngood,a,0,2026-01-01\n ,a,0,2026-01-01\n,a,,\nlate,a,0,someday\n"
            "half,a,0.5,2026-01-01\nminus,a,-1,2026-01-01\nendless,a,inf,2026-01-01\nnobody,,0,2026-01-01\n",
        )
    )
    assert corpus.texts == ["good"]
    assert dict(corpus.dropped) == {
        "rows without text": 2,
        "rows whose created_at is not a time": 1,
        "rows whose round is not a whole number from 0": 3,
        "rows without author": 1,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ".*is empty"),
        ("text\n", "no rows below the header"),
        ("txt\nhello\n", r"no column 'text' \(it has: txt\)\. Did you mean 'txt'\?"),
        ("text,author\n,a\n ,b\n", r"none of the 2 rows can be used \(2 rows without text\)"),
        ("text,author\nhi,\n,b\n", r"none of the 2 rows can be used \(1 row without text, 1 row without author\)"),
    ],
)
def test_a_file_without_a_usable_row_is_a_data_error(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"posts\.file: .*posts\.csv: {message}"):
        load_corpus(file(tmp_path, text))


# topics


def test_vectors_have_the_length_of_a_unit_and_none_for_a_text_without_words():
    found = topics(["rain rain", "sun", "rain and sun", "42 !!"], n_topics=4)
    lengths = np.linalg.norm(found.vectors.astype(float), axis=1)
    assert lengths[:3] == pytest.approx([UNIT] * 3, abs=2)
    assert found.vectors.dtype == np.int8
    assert quantised(np.zeros((1, 3))).tolist() == [[0, 0, 0]]
    assert quantised(np.array([[3.0, 4.0]])).tolist() == [[76, 102]]


def test_rare_words_count_more_than_common_ones():
    texts = ["storm today", "storm tomorrow", *["today tomorrow"] * 30]
    vectors = topics(texts, n_topics=64).vectors
    assert cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2])


def test_labels_pull_texts_together_as_much_as_they_weigh():
    texts = ["rain falls", "opera tonight", "opera tomorrow"]
    labels = [("weather",), ("weather",), ("music",)]
    by_label = topics(texts, labels, n_topics=8, label_weight=1.0).vectors
    by_words = topics(texts, labels, n_topics=8, label_weight=0.0).vectors
    assert by_label[0].tolist() == by_label[1].tolist()
    assert cosine(by_words[1], by_words[2]) > cosine(by_words[0], by_words[1])
    assert topics(texts, labels, n_topics=8).names == ["music", "weather"]


def test_interests_are_named_nearest_first_and_nothing_that_points_away():
    found = topics(["a", "b", "c"], [("art",), ("music",), ("sport",)], n_topics=3, label_weight=1.0)
    interests = quantised(1.2 * found.name_vectors[[1]] + found.name_vectors[[0]])
    assert found.interest_names(interests) == [("music", "art")]
    assert found.interest_names(interests, max_names=1) == [("music",)]
    assert found.interest_names(np.zeros((1, 3), np.int8)) == [()]


def test_a_real_embedding_knows_which_texts_are_alike(tmp_path, monkeypatch):
    pytest.importorskip("wordllama", reason="the extra 'embeddings' is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = ["The cat sat on the mat", "A kitten was sleeping", "Shares fell on Monday", "The bank raised its rates"]
    vectors = topics(texts, n_topics=3, embedder="wordllama").vectors
    assert cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2])
    assert cosine(vectors[2], vectors[3]) > cosine(vectors[1], vectors[3])


def test_an_embedding_is_computed_once_and_then_read_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = []

    def embed(texts):
        asked.append(list(texts))
        return np.array([[len(text), 0.5] for text in texts])

    first = cached_vectors("length", ["a", "bcd"], embed)
    again = cached_vectors("length", ["a", "bcd"], embed)
    assert first.tolist() == again.tolist() == [[1.0, 0.5], [3.0, 0.5]]
    assert cached_vectors("length", ["bcd", "a"], embed).tolist() == [[3.0, 0.5], [1.0, 0.5]]
    assert cached_vectors("other", ["a", "bcd"], embed).tolist() == first.tolist()
    assert asked == [["a", "bcd"], ["bcd", "a"], ["a", "bcd"]]
    assert len(list((tmp_path / "prism-mesa" / "embeddings").iterdir())) == 3


# posts of a file in a world


def test_posts_with_rounds_are_posted_then_by_their_authors(tmp_path):
    posts = file(tmp_path, "text,author,round\nlater,3,2\nnow,3,0\nstranger,99,0\nnever,4,50\nalso now,4,0\n")
    with pytest.warns(
        PrismWarning, match="1 post whose author is not an agent left out; .* 1 post after the last round"
    ):
        model = small(posts_file=posts, agents_post_rate=0.0, agents_activity=0.0, rounds=20)
    ran(model, 3)
    p = model.posts
    assert [(p.texts[p.text_id[i]], int(p.author[i]), int(p.round[i])) for i in range(len(p))] in (
        [("now", 3, 0), ("also now", 4, 0), ("later", 3, 2)],
        [("also now", 4, 0), ("now", 3, 0), ("later", 3, 2)],
    )
    assert "posts.file: 1 post whose author is not an agent left out" in model.notes
    assert "posts.file: 1 post after the last round left out" in model.notes


def test_posts_without_rounds_are_spread_over_the_run_in_their_order(tmp_path):
    rows = "".join(f"post {k},{k % 5}\n" for k in range(12))
    model = ran(small(posts_file=file(tmp_path, "text,author\n" + rows), agents_post_rate=0.0, rounds=4), 4)
    own = [i for i in range(len(model.posts)) if model.posts.kind[i] == 0]
    numbers = [
        [int(model.posts.texts[model.posts.text_id[i]][5:]) for i in own if model.posts.round[i] == r] for r in range(4)
    ]
    assert [sorted(n) for n in numbers] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_by_rank_the_busiest_author_is_the_agent_with_the_most_followers(tmp_path):
    edges = file(tmp_path, "src,dst\na,b\na,c\na,d\nb,a\nb,c\nc,d\n", "edges.csv")  # followers: a 3, b 2, c 1, d 0
    rows = "quiet,Q\nloud,L\nloud,L\nloud,L\nmiddling,M\nmiddling,M\n"
    posts = file(tmp_path, "text,author\n" + rows)
    model = small(network_edges=edges, posts_file=posts, posts_authors="rank")
    ids = model.population.ids
    said = {(model.posts.texts[t], ids[a]) for a, t in zip(model.schedule.author, model.schedule.text_id, strict=True)}
    assert said == {("loud", "a"), ("middling", "b"), ("quiet", "c")}


def test_interests_are_the_mean_topics_of_what_one_posts_and_reads(tmp_path):
    edges = file(tmp_path, "src,dst\na,b\nb,c\nd,e\n", "edges.csv")  # b follows a, c follows b, e follows d
    posts = file(tmp_path, "text,author,topic\nx,a,art\ny,b,music\nz,b,music\n")
    model = small(network_edges=edges, posts_file=posts, posts_label_weight=1.0)
    names = {agent.agent_id: agent.interests for agent in model.agents}
    assert names["a"] == ["art"]
    assert names["c"] == ["music"]
    mixed = model.population.interests[1].astype(float)
    art, music = model.topics.vectors[0].astype(float), model.topics.vectors[1].astype(float)
    assert cosine(mixed, art + 2 * music) == pytest.approx(1, abs=0.01)
    assert any(note.startswith("2 agents: interests are drawn") for note in model.notes)
