"""Texts that an LLM writes: whose words they are, how long prompts get, and how words are cleaned."""

import numpy as np
import pytest
from minds import SPEAKS, Mind, asked, published, thought, whim, words_of
from worlds import small
from writing_worlds import LIVELY, NO_CHOICE, lively, thoughts

from prism_mesa.social.state.posts import POST, REPLY, RESHARE, WORDS_CAP

# -- whose words ---------------------------------------------------------------------------------------


def test_replies_comments_and_own_posts_say_what_the_llm_said():
    mind = Mind()
    model = lively(mind)
    start = {POST: "post: ", REPLY: "reply: ", RESHARE: "comment: "}
    found = published(model)
    assert {kind for kind, *_ in found} == {POST, REPLY, RESHARE}
    assert all(words.startswith(start[kind]) for kind, _, _, words in found)
    assert model.written == {"written": len(found)}
    assert {text for *_, text in found} == {words_of(prompt) for prompt in mind.spoken}


def test_each_prompt_names_who_writes_what_about_and_a_reply_is_about_what_its_parent_says():
    mind = Mind()
    model = lively(mind)
    posts = model.posts
    by_words = {}
    for prompt in mind.spoken:  # two may be answered with the same words
        by_words.setdefault(words_of(prompt), []).append(prompt)
    children = [i for i in range(len(posts)) if posts.kind[i] != POST]
    assert children
    for i in children:
        prompts, parent = by_words[posts.texts[posts.words[i]]], int(posts.parent[i])
        about = posts.texts[int(posts.added_texts(np.array([parent]))[0])]
        [prompt] = [one for one in prompts if one.endswith(f"They say: <<< {about} >>>\n{SPEAKS}")]
        assert f"You are <<< {model.population.names[posts.author[i]]} >>>" in prompt
        assert f"post {parent} by <<< {model.population.names[posts.author[parent]]} >>>" in prompt


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('"So it is."', "So it is."),
        ("one\n\ntwo\x00", "one two"),
        ("ends >>> here <|im_end|> [INST] more", "ends here < |im_end|> [ INST] more"),
        ("x" * 10_000_000, "x" * (WORDS_CAP - 1) + "…"),
        ("half a \ud800 pair", "half a ? pair"),
    ],
    ids=["quotes", "lines", "control tokens", "10 MB", "surrogate"],
)
def test_words_are_one_harmless_line_of_at_most_so_many_characters(said, words):
    model = lively(Mind(lambda prompt: "A quiet day." if "Write a post" in prompt else said), 1, **NO_CHOICE)
    assert {text for kind, *_, text in published(model) if kind != POST} == {words}


@pytest.mark.parametrize("said", ["...", "\x00\x01"])
def test_words_that_say_nothing_are_no_words(said, caplog):
    model = lively(Mind(lambda prompt: said), 2, **NO_CHOICE)
    found = published(model)
    assert {words for kind, _, _, words in found if kind != POST} == {""}
    assert {words for kind, _, _, words in found if kind == POST} <= set(model.posts.corpus.texts)
    assert model.written == {"failed": len(found)}


def test_an_echo_of_what_it_is_about_is_no_answer(caplog):
    def echo(prompt):
        return prompt.rpartition("They say: <<< ")[2].partition(" >>>")[0].upper()

    model = lively(Mind(echo), 1, **NO_CHOICE)
    assert model.written.keys() == {"failed"}
    assert model.writer.reasons.keys() == {"irrelevant"}


def test_the_second_draft_takes_the_place_of_the_first():
    def speaks(prompt):
        better = "You have responded so far: <<< First. >>>" in prompt
        return words_of(prompt) if better else "First."

    def thinks(prompt):
        return thought(("recall", {"about": "it"})) if "Your response: " in prompt else thought()

    model = lively(Mind(speaks, thinks), 2, deliberation_iterations=2)
    by_event = [row["text"] for row in thoughts(model) if row["event"] == "text"]
    assert by_event.count("First.") == len(published(model)) > 10
    assert sorted(words for *_, words in published(model)) == sorted(text for text in by_event if text != "First.")


# -- prompts do not grow -------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_prompt_grows_with_the_rounds():
    def wordy(prompt):
        return f"{words_of(prompt)} " + "and so on, and so forth, " * 40

    def hoards(prompt):
        note = f"{whim(prompt, 10**6)} " + "never forget this " * 30
        calls = [("remember", {"note": note, "importance": 9}), ("recall", {"about": note}), ("read_feed", {})]
        return thought(*calls)

    mind, longest = Mind(wordy, hoards), []
    model = small(**LIVELY | NO_CHOICE | {"agents_n": 12}, reasoner=asked(mind))
    for _ in range(40):
        model.step()
        longest.append(max(map(len, mind.prompts), default=0))
        mind.prompts.clear()
    model.close()
    assert len(model.notebook) > 100
    assert max(longest[20:]) <= max(longest[5:20]) * 1.05
    assert max(longest) < 12_000


# -- examples ------------------------------------------------------------------------------------------
