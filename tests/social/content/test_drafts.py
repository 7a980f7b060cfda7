"""What an LLM writes for agents: whose words stand where, in any order of answers, within limits, and when repeated."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from minds import SPEAKS, THINKS, Mind, asked, busy, published, thought, whim, words_of
from worlds import differing, ran, small

from prism_mesa.analysis.distill.dataset import blocks_of, training_set_of
from prism_mesa.analysis.distill.distill import distill
from prism_mesa.errors import ConfigError, RunError
from prism_mesa.llm import Ledger, factory
from prism_mesa.llm.stand_in import StandIn, choose_by_hash, prompt_text
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.content.cleaning import cleaned
from prism_mesa.social.content.drafts import AT_A_TIME
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import POST, REPLY, RESHARE, WORDS_CAP

LIVELY = {
    "content": "llm",
    "agents_activity": 1.0,
    "agents_activity_sigma": 0.5,
    "agents_threshold_mean": 0.5,
    "agents_band": 0.1,
    "agents_post_rate": 0.2,
}
NO_CHOICE = {"agents_band": 0.0}


def lively(mind, rounds=3, kind=SocialModel, options=None, **params):
    model = small(kind, **LIVELY | params, reasoner=asked(mind, max_fallback_share=1, **options or {}))
    try:
        return ran(model, rounds)
    finally:
        model.close()


def all_differing(one, other):
    """Return in what two worlds differ, notes included."""
    return differing(one, other) + ["notes"] * (one.notebook.rows() != other.notebook.rows())


def thoughts(model):
    return model.recorder.tables.get("thoughts", [])


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
    by_words = {words_of(prompt): prompt for prompt in mind.spoken}
    children = [i for i in range(len(posts)) if posts.kind[i] != POST]
    assert children
    for i in children:
        prompt, parent = by_words[posts.texts[posts.words[i]]], int(posts.parent[i])
        about = posts.texts[int(posts.says(np.array([parent]))[0])]
        assert prompt.endswith(f"They say: <<< {about} >>>\n{SPEAKS}")
        assert f"You are <<< {model.population.names[posts.author[i]]} >>>" in prompt
        assert f"post {parent} by <<< {model.population.names[posts.author[parent]]} >>>" in prompt


def test_only_what_is_published_is_asked_for_and_a_dropped_draft_costs_no_call():
    mind = Mind()
    model = lively(mind, ticks_per_round=4)
    moves = model.recorder.tables["transitions"]
    dropped = [move for move in moves if move["from_state"] == "composing" and move["to_state"] == "idle"]
    assert dropped
    assert len(mind.spoken) == len(published(model)) > 10
    assert len([prompt for prompt in mind.prompts if prompt.endswith(THINKS)]) == len(mind.spoken)


def test_a_like_is_not_written_about():
    mind = Mind()
    model = lively(mind, agents_reply=0.0, agents_reshare=0.0, agents_post_rate=0.0, **NO_CHOICE)
    model.posts.add(np.array([0]), np.array([0]), 0, POST, -1, None)
    assert mind.prompts == []
    assert model.written == {}


def test_posts_of_a_file_and_words_of_scripts_stay_as_they_are(tmp_path):
    file = tmp_path / "posts.csv"
    file.write_text("text,author,round\n" + "".join(f"text {i % 3} of {i},{i},{i % 3}\n" for i in range(30)))

    class Talker(SocialAgent):
        def step(self):
            if self.feed and self.model.tick == 1:
                self.reply(self.feed[0], "Not so fast")
                self.reshare(self.feed[0])
                self.write("Mine alone")

    mind = Mind()
    model = small(**LIVELY | {"posts_file": str(file), "agents_post_rate": 0.0}, reasoner=asked(mind))
    Talker(model, 3)
    found = published(ran(model, 4))
    model.close()
    assert {words for kind, _, _, words in found if kind == POST} == {*model.posts.corpus.texts, "Mine alone"}
    assert {words for kind, _, author, words in found if kind == REPLY and author == 3} == {"Not so fast"}
    assert all(words.startswith("comment: ") for kind, _, author, words in found if kind == RESHARE and author == 3)
    assert any(kind == REPLY and words.startswith("reply: ") for kind, _, _, words in found)


def test_what_is_written_changes_what_feeds_show_and_who_engages():
    def calm(prompt):
        return "A quiet day." if "Write a post" in prompt else "music music concert song album"

    def loud(prompt):
        return "A quiet day." if "Write a post" in prompt else "election vote parliament senate law"

    one, other = (lively(Mind(speaks), 5, agents_n=60, feed_mode="preference") for speaks in (calm, loud))
    tables = one.recorder.tables, other.recorder.tables

    def rows(tables, name, round_):
        return [row for row in tables[name] if row["round"] == round_]

    for name in ("impressions", "engagements"):
        assert rows(tables[0], name, 0) == rows(tables[1], name, 0) != []
        assert any(rows(tables[0], name, r) != rows(tables[1], name, r) for r in range(1, 5))
    assert one.posts.vectors(np.arange(30)).tolist() != other.posts.vectors(np.arange(30)).tolist()


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


@pytest.mark.parametrize("said", ["   ", "...", ">>>", '""', "\x00\x01"])
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


def test_a_second_draft_that_does_not_come_leaves_the_first(caplog):
    def speaks(prompt):
        return "" if "You have responded so far" in prompt else words_of(prompt)

    def thinks(prompt):
        return thought(("recall", {"about": "it"})) if "Your response: " in prompt else thought()

    model = lively(Mind(speaks, thinks), 1, deliberation_iterations=2)
    assert model.written == {"written": len(published(model))}
    assert model.writer.reasons == {"empty": len(published(model))}


# -- in any order --------------------------------------------------------------------------------------


class Shuffled(SocialModel):
    """Calls its agents in another order each time."""

    @property
    def agents(self):
        return super().agents.shuffle(inplace=False)


class TickByTick(SocialModel):
    def _make(self, world, chart):
        super()._make(world, chart)
        self.tables.is_whole = False


class Late(Mind):
    """Answers after a time that follows from what it is asked, and a seed."""

    def __init__(self, seed, **parts):
        super().__init__(**parts)
        self.seed = seed

    async def __call__(self, prompt):
        await asyncio.sleep(whim(f"{self.seed} {prompt}", 20) / 2000)
        return super().__call__(prompt)


WAYS = {
    "one row after the other": {"scheduler": "mesa"},
    "rows in any order": {"kind": Shuffled, "scheduler": "mesa"},
    "two threads": {"threads": 2},
    "tick by tick": {"kind": TickByTick},
}


BUSY = {"agents_post_rate": 0.4, "network_mean_degree": 10, "deliberation_iterations": 2}


@pytest.fixture(scope="module")
def known():
    return lively(Mind(thinks=busy), 4, **BUSY)


@pytest.mark.parametrize("way", WAYS)
def test_what_agents_write_and_do_is_the_same_in_every_way_of_running(way, known):
    other = lively(Mind(thinks=busy), 4, **BUSY, **WAYS[way])
    assert all_differing(other, known) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_which_answer_comes_first_does_not_matter(seed, known):
    other = lively(Late(seed, thinks=busy), 4, **BUSY)
    assert all_differing(other, known) == []


def test_the_world_of_these_tests_has_every_kind_of_deed_in_it(known):
    model = known
    calls = [json.loads(row["text"]) for row in thoughts(model) if row["event"] == "tool"]
    done = {call["tool_name"] for call in calls if call["result"]["ok"]}
    assert done == {
        *("read_feed", "read_thread", "look_at_profile", "search_posts", "recall", "remember"),
        *("like", "reply", "reshare", "post"),
    }
    assert {call["result"]["reason"] for call in calls} == {"", "AgentError", "unknown-tool"}
    assert model.sources["llm"] > 10


LIMITS = ({"max_calls": 45}, {"max_calls_per_round": 15}, {"max_calls": 50, "max_calls_per_round": 20})


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS)
def test_a_limit_goes_to_the_same_agents_whichever_answer_comes_first(limits):
    known = lively(Mind(thinks=busy), 4, options=limits, **BUSY)
    assert known.written["budget"] > 0 < known.written["written"]
    for seed in range(2):
        other = lively(Late(seed, thinks=busy), 4, options=limits, **BUSY)
        assert all_differing(other, known) == []
        assert other.written == known.written


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_limit_on_texts_goes_to_the_same_agents_in_every_way_of_running(way):
    limits = {"max_calls": 60, "max_calls_per_round": 21}
    one, other = (
        lively(Mind(thinks=busy), 4, options=limits, **NO_CHOICE, **BUSY, **params) for params in ({}, WAYS[way])
    )
    assert one.written["budget"] > 0 < one.written["written"]
    assert all_differing(one, other) == []


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 7, 30, 60])
def test_choices_and_texts_share_one_limit_and_what_is_left_over_is_counted(most):
    mind = Mind()
    model = lively(mind, 4, options={"max_calls": most})
    calls = model.reasoner.usage["calls"] + model.writer.usage["calls"]
    assert calls == len(mind.prompts) == most
    found = published(model)
    assert model.written.total() == len(found)
    assert model.written["budget"] == len(found) - model.written["written"] > 0
    assert model.written["failed"] == 0
    silent = [(kind, words) for kind, _, _, words in found if ": " not in words[:10]]
    assert len(silent) == model.written["budget"]
    assert all(words in model.posts.corpus.texts if kind == POST else words == "" for kind, words in silent)


def test_a_limit_makes_texts_and_not_thoughts_alone(caplog):
    most = 12
    mind = Mind()
    model = lively(mind, 3, options={"max_calls_per_round": most}, agents_post_rate=0.8, **NO_CHOICE)
    assert len(mind.prompts) == 3 * most
    assert model.written["budget"] > 3 * most  # so many thoughts are left that they alone would have taken it all
    assert model.written["written"] >= 3 * (most - AT_A_TIME) // 2
    assert not [record for record in caplog.records if "budget" in record.message]


def test_a_limit_is_spent_on_the_most_followed_first():
    model = lively(Mind(), 1, options={"max_calls": 24, "spend_on": "followed"}, **NO_CHOICE, agents_post_rate=0.8)
    wrote = {author for kind, _, author, words in published(model) if kind == POST and words.startswith("post: ")}
    others = {author for kind, round_, author, _ in published(model) if kind == POST and round_ == 0} - wrote
    followers = model.network.n_followers
    assert len(wrote) == AT_A_TIME < len(others)
    assert min(followers[list(wrote)]) >= max(followers[list(others)])


def test_attempts_of_texts_are_those_of_the_reasoner(caplog):
    mind = Mind(lambda prompt: "...")
    lively(mind, 1, options={"attempts": 2}, **NO_CHOICE)
    assert len(mind.spoken) == 2 * len(set(mind.spoken)) > 0


# -- prompts do not grow -------------------------------------------------------------------------------


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


# -- whole runs: replay --------------------------------------------------------------------------------

WORLD = {
    "agents": {"n": 25, "activity": 1.0, "activity_sigma": 0.5, "band": 0.1, "threshold_mean": 0.5},
    "network": {"mean_degree": 8},
    "rounds": 3,
    "seed": 7,
    "content": "llm",
}


def asking(server, world=WORLD, agents=None, **reasoner):
    own = {"kind": "ollama", "host": server.url, "timeout_s": 5, **reasoner}
    own |= {} if own.get("attempts") == 1 else {"backoff_s": 0}
    return world | {"reasoner": own} | {"agents": world["agents"] | (agents or {})}


def tables_of(run_dir):
    return {file.name: file.read_bytes() for file in sorted(Path(run_dir).glob("*.parquet"))}


def is_text(body):
    return prompt_text(body).endswith((SPEAKS, THINKS))


RUNS = {
    "as it is": {},
    "two iterations": {"deliberation": {"iterations": 2}},
    "no open choice": {"agents": {"band": 0.0}},
    "nothing at all": {"max_calls": 0},
    "limits": {"max_calls": 70, "max_calls_per_round": 30},
    "actions are asked for": {"asks_action": True},
    "probabilities": {"answer": "probabilities", "persona": "archetype", "archetypes": 2},
    "spent on the followed": {"max_calls": 60, "spend_on": "followed"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_repeated_from_its_folder_with_thoughts_and_notes(name, tmp_path):
    given = dict(RUNS[name])
    world = WORLD | {"deliberation": given.pop("deliberation", {})}
    with StandIn(slots=8) as server:
        result = run(asking(server, world, **given), out=tmp_path)
        n = server.n_requests
        found = replay(result.run_dir, out=tmp_path / "again")
        assert server.n_requests == n
    assert (found.differences, found.calls) == ({}, 0)
    asked = Ledger(result.run_dir / "decisions.sqlite").asked()
    assert found.answered + found.texts == len(asked)
    writing = result.summary["writing"]
    assert writing["written"] + writing["budget"] > 10
    assert found.rows["thoughts"] > 10
    again = json.loads((found.run_dir / "manifest.json").read_text())["summary"]["writing"]
    assert {name: again[name] for name in ("written", "failed", "budget", "reasons")} == {
        name: writing[name] for name in ("written", "failed", "budget", "reasons")
    }


@pytest.mark.slow
@pytest.mark.parametrize("which", ["some", "all"])
def test_a_run_with_failures_is_repeated_with_its_failures(which, tmp_path, caplog):
    def fault(number, body):
        if which == "all":
            return "server-error"
        return (None, None, "empty", "server-error", "useless", "not-json")[whim(prompt_text(body), 6)]

    with StandIn(slots=8, fault=fault) as server:
        given = {"attempts": 1, "max_fallback_share": 1.0, "asks_action": True, "fallback": "rule"}
        result = run(asking(server, **given), out=tmp_path)
    assert result.summary["writing"]["failed"] > 5
    assert (result.summary["writing"]["written"] > 5) == (which == "some")
    found = replay(result.run_dir)
    assert (found.differences, found.calls) == ({}, 0)


def test_words_that_no_file_can_hold_are_mended_and_the_run_can_be_repeated(tmp_path, caplog):
    def brain(body):
        prompt = prompt_text(body)
        if prompt.endswith(THINKS):
            calls = [
                (name, {key: "half \ud800 \x00"}) for name, key in (("recall", "about"), ("search_posts", "words"))
            ]
            return thought(*calls).replace("Hm.", "Hm \\u0000" if whim(prompt, 2) else "Hm \\ud800")
        return f"half a \ud800 pair {whim(prompt, 1000)}" if prompt.endswith(SPEAKS) else choose_by_hash(body)

    with StandIn(brain, slots=8) as server:
        result = run(asking(server), out=tmp_path)
    assert result.status == "done"
    assert result.table("posts").query("kind == 'reply'")["text"].str.startswith("half a ? pair ").all()
    assert replay(result.run_dir).equal


@pytest.mark.slow
def test_a_run_that_shares_its_choices_with_a_distilled_model_is_repeated_with_its_texts(tmp_path):
    with StandIn(slots=8) as server:
        first = run(asking(server, agents={"n": 40, "band": 0.4}), out=tmp_path)
        model = distill([first.run_dir], out=tmp_path / "distilled").file
        result = run(asking(server, llm_share=0.5, distilled=str(model)), out=tmp_path)
    assert result.summary["decisions"]["by_source"].keys() >= {"llm", "distilled"}
    assert result.summary["writing"]["written"] > 10
    found = replay(result.run_dir)
    assert (found.differences, found.calls) == ({}, 0)


def test_a_second_run_with_the_same_ledger_asks_nothing_and_stands_by_itself(tmp_path):
    shared = {"ledger": "cache", "ledger_path": str(tmp_path / "shared.sqlite")}
    with StandIn(slots=8) as server:
        first = run(asking(server, **shared), out=tmp_path)
        n = server.n_requests
        second = run(asking(server, **shared), out=tmp_path)
        assert server.n_requests == n > 50
    assert second.summary["writing"]["calls"] == 0
    assert tables_of(first.run_dir) == tables_of(second.run_dir)
    (tmp_path / "shared.sqlite").unlink()
    assert replay(second.run_dir).equal


def test_the_latency_of_a_server_leaves_no_trace(tmp_path):
    runs = []
    with StandIn(slots=8) as server:
        for seed in range(2):
            server.latency = lambda number, body, seed=seed: whim(f"{seed} {prompt_text(body)}", 20) / 1000
            runs.append(run(asking(server, max_calls_per_round=40), out=tmp_path))
    assert tables_of(runs[0].run_dir) == tables_of(runs[1].run_dir)
    assert "thoughts.parquet" in tables_of(runs[0].run_dir)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "holds no answer for round 0, "),
        ({"deliberation": {"notes_told": 0, "result_chars": 90, "iterations": 3}}, "holds no answer for round 0, "),
        ({"network": {"mean_degree": 3}}, "holds no answer for round "),
    ],
    ids=["seed", "deliberation", "network"],
)
def test_a_changed_configuration_is_told_from_the_run_that_its_ledger_is_of(change, message, tmp_path):
    with StandIn(slots=8) as server:
        result = run(asking(server), out=tmp_path)
        own = {"ledger": "replay", "ledger_path": str(result.run_dir / "decisions.sqlite")}
        with pytest.raises(RunError, match=message):
            run(asking(server, WORLD | change, **own), out=tmp_path)


def test_another_temperature_is_one_error_before_the_run(tmp_path):
    with StandIn(slots=8) as server:
        result = run(asking(server), out=tmp_path / "a")
        own = {"ledger": "replay", "ledger_path": str(result.run_dir / "decisions.sqlite")}
        with pytest.raises(ConfigError, match="holds no answers of the LLM and options that are configured"):
            run(asking(server, WORLD | {"deliberation": {"temperature": 0.1}}, **own), out=tmp_path / "b")
    assert not (tmp_path / "b").exists()


# -- failures ------------------------------------------------------------------------------------------


def test_an_llm_that_decides_but_does_not_write_ends_a_run_as_failed_with_its_tables_kept(tmp_path, caplog):
    with StandIn(slots=8, fault=lambda number, body: "empty" if is_text(body) else None) as server:
        result = run(asking(server, attempts=1), out=tmp_path)
    writing = result.summary["writing"]
    assert result.status == read_manifest(result.run_dir)["status"] == "failed"
    assert "100.0% of" in result.summary["error"]
    assert "texts were not written by the LLM" in result.summary["error"]
    assert "reasoner.max_fallback_share allows 5.0%" in result.summary["error"]
    assert writing["written"] == 0 < writing["failed"]
    assert writing["reasons"] == {"empty": 2 * writing["failed"]}
    assert len(result.table("rounds")) == WORLD["rounds"]
    assert set(result.table("thoughts")["event"]) == {"error"}
    assert result.table("posts").query("kind != 'post'")["comment"].isna().all()


def test_no_llm_named_is_an_error_that_says_what_to_set(tmp_path):
    with pytest.raises(
        ConfigError, match=r"content: llm needs an LLM, and reasoner\.kind=rule asks none; set reasoner"
    ):
        run(WORLD | {"reasoner": {"kind": "rule"}}, out=tmp_path)


def test_where_auto_finds_no_llm_the_words_are_templates_the_run_says_so_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(factory, "embedded_fault", lambda gguf: "needs xllamacpp")
    nobody = {"kind": "auto", "host": "http://127.0.0.1:9"}
    result = run(WORLD | {"reasoner": nobody}, out=tmp_path)
    posts = result.table("posts").query("kind == 'reply'")
    assert posts["text"].notna().all()
    assert result.summary["writing"] is None
    [note] = [note for note in result.summary["notes"] if note.startswith("content:")]
    assert "no LLM writes, so the words are templates (no Ollama: " in note
    assert replay(result.run_dir).equal


# -- lessons -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("content", ["template", "llm"])
def test_no_text_of_the_corpus_is_in_rows_to_fit_and_in_rows_that_are_held_out(content, tmp_path):
    world = WORLD | {"content": content, "rounds": 4, "posts": {"circulating": 8}}
    with StandIn(slots=8) as server:
        result = run(asking(server, world, agents={"n": 40, "band": 0.4}), out=tmp_path)
    posts = result.table("posts")
    found = training_set_of([result.run_dir])
    [rows] = found.by_options.values()
    assert any("(in reply to: " in row.ask.question.post.text for row in rows)
    began = posts["text"].astype(str).where(posts["kind"] == "post").to_dict()
    parent = posts["parent"].to_dict()

    def thread(post):
        while posts["kind"][post] != "post":
            post = parent[post]
        return began[post]

    told = [thread(row.ask.question.post.post_id) for row in rows]
    assert len(set(told)) > 4
    for fitted, tried in blocks_of(rows):
        assert {told[i] for i in fitted}.isdisjoint(told[i] for i in tried)


def test_cleaned_words_stay_as_they_are_when_cleaned_again():
    for text in ('"a"', "“So”", "'x' said", 'he said "no"', "a >>> b", "x" * 400, "''"):
        assert cleaned(cleaned(text)) == cleaned(text)


def test_the_stand_in_sometimes_calls_tools_and_what_it_calls_is_allowed_by_the_schema():
    schema = {
        "properties": {
            "proposed_tools": {
                "type": "array",
                "maxItems": 3,
                "items": {
                    "anyOf": [
                        {
                            "properties": {
                                "tool_name": {"const": "like"},
                                "parameters": {"properties": {"post": {"type": "integer"}}},
                            }
                        },
                        {"properties": {"tool_name": {"const": "recall"}, "parameters": {"properties": {}}}},
                    ]
                },
            }
        }
    }
    said = [
        json.loads(choose_by_hash({"prompt": f"post 17, {i}", "format": schema}).text)["proposed_tools"]
        for i in range(60)
    ]
    assert {call["tool_name"] for calls in said for call in calls} == {"like", "recall"}
    assert [] in said
    assert {call["parameters"]["post"] for calls in said for call in calls if call["parameters"]} == {17}


def test_texts_leave_a_limits_other_half_to_the_choices():
    params = {"agents_post_rate": 0.9, "agents_band": 0.6, "network_mean_degree": 10}
    model = lively(Mind(), 4, options={"max_calls_per_round": 10}, **params)
    assert model.writer.usage["calls"] + model.reasoner.usage["calls"] == 4 * 10
    assert model.reasoner.usage["calls"] >= 4 * 4
    assert model.written["written"] > 0
