"""A survey: who is asked what, what comes back to which option, how sure the table is, and what a user sees."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from ollama_server import as_json, chat_answer, serving

from prism_mesa.analysis.survey.questionnaire import questionnaire_of, read_questionnaire
from prism_mesa.analysis.survey.respondents import sampled
from prism_mesa.analysis.survey.results import bootstrap
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import ConfigError, DataError, RunError
from prism_mesa.llm import Completion, FunctionClient, Ledger
from prism_mesa.llm.clients.embedded import SMOLLM2_NAME, embedded_fault
from prism_mesa.llm.stand_in import StandIn, choose_by_hash
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run
from prism_mesa.streams import Streams
from prism_mesa.view.plots import survey_figure
from prism_mesa.view.summaries import survey_lines

ROOT = Path(__file__).parents[2]
CLOSED = {"id": "drink", "ask": "What do you drink?", "options": ["tea", "coffee", "water"]}
OPEN = {"id": "why", "ask": "Why is that?"}
FILE = """
intro: Be honest.
questions:
  - id: drink
    ask: What do you drink?
    options: [tea, coffee, water]
  - id: why
    ask: Why is that?
"""
TABLES = ("answers.parquet", "table.parquet", "table.csv")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    config = {"agents": {"n": 40}, "rounds": 4, "ticks_per_round": 6, "seed": 5}
    return run(config, out=tmp_path_factory.mktemp("runs")).run_dir


def of(*questions, **more):
    return questionnaire_of({"questions": list(questions), **more})


def lines_of(prompt):
    """Return letter -> text of the options that a prompt shows."""
    return dict(re.findall(r"^([A-Z])\. (.+)$", prompt, re.MULTILINE))


def toy(function):
    return FunctionClient(function, "toy")


def content(prompt):
    """An LLM that looks at texts, not at letters, and at what the agent remembers."""
    if "Respond with one letter" not in prompt:
        return "Because I remember." if "What you remember" in prompt else "No idea."
    remembers = "What you remember" in prompt
    return json.dumps(
        {"tea": 0.7, "coffee": 0.2, "water": 0.1} if remembers else {"tea": 0.2, "coffee": 0.5, "water": 0.3}
    )


def letter_a(prompt):
    return "A"


def told(result, wave):
    rows = result.table[result.table["wave"] == wave]
    return dict(zip(rows["option"], rows["mean"], strict=True))


def bytes_of(folder):
    return [(folder / name).read_bytes() for name in TABLES]


# -- what comes back -----------------------------------------------------------------------------------


def test_probabilities_come_back_to_the_options_and_differ_where_the_llm_goes_by_memory(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), out=tmp_path, llm=toy(content))
    assert told(result, "before") == pytest.approx({"tea": 0.2, "coffee": 0.5, "water": 0.3})
    answers = pd.read_parquet(result.folder / "answers.parquet")
    assert len(answers) == 40 * 2 * 3
    after = answers[answers["wave"] == "after"].pivot_table(index="agent", columns="option", values="probability")
    moved = after["tea"] > 0.5
    assert moved.any()
    assert told(result, "after")["tea"] == pytest.approx(0.2 + 0.5 * moved.mean())
    assert told(result, "change")["tea"] == pytest.approx(0.5 * moved.mean())


def test_who_did_nothing_is_asked_the_same_before_and_after_and_only_once(run_dir, tmp_path):
    prompts = []
    result = survey(run_dir, of(CLOSED), out=tmp_path, llm=toy(lambda prompt: prompts.append(prompt) or "A"))
    acted = pd.read_parquet(run_dir / "engagements.parquet")["agent"].unique()
    wrote = pd.read_parquet(run_dir / "posts.parquet")["author"].unique()
    n_acted = len({*acted.tolist(), *wrote.tolist()} & set(range(40)))
    assert len(prompts) == len(set(prompts)) == 40 + n_acted
    assert result.summary["answers"] == 80


def test_a_prompt_has_what_is_the_same_for_all_first_and_the_question_last(run_dir, tmp_path):
    prompts = []
    survey(run_dir, of(CLOSED, intro="Be honest."), out=tmp_path, llm=toy(lambda p: prompts.append(p) or "A"))
    starts = {prompt.split("\n\n")[0] for prompt in prompts}
    assert len(starts) == 1
    for prompt in prompts:
        *_, intro, question, request = prompt.split("\n\n")
        assert intro == "Be honest."
        assert question.splitlines()[0] == "Question: What do you drink?"
        assert sorted(lines_of(question).values()) == sorted(CLOSED["options"])
        assert request == "Respond with one letter only: A, B, C"
    with_memory = [prompt for prompt in prompts if "What you remember" in prompt]
    for prompt in with_memory:
        before, _, rest = prompt.partition("\n\nWhat you remember:\n")
        assert f"{before}\n\nBe honest.{rest.partition('Be honest.')[2]}" in prompts


def test_the_letters_are_turned_by_agent_and_a_preference_for_one_is_told(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), out=tmp_path, llm=toy(letter_a))
    [question] = result.summary["questions"]
    assert question["by_letter"] == {"A": 1.0, "B": 0.0, "C": 0.0}
    before = told(result, "before")
    assert sum(before.values()) == pytest.approx(1)
    assert all(0.1 < share < 0.6 for share in before.values())  # 40 agents, a third each on average
    assert set(told(result, "change").values()) == {0.0}


def test_open_answers_are_kept_as_text_and_some_are_told(run_dir, tmp_path):
    result = survey(run_dir, of(OPEN), agents=6, out=tmp_path, llm=toy(content))
    answers = pd.read_parquet(result.folder / "answers.parquet")
    assert len(answers) == 12
    assert set(answers["text"]) <= {"Because I remember.", "No idea."}
    assert answers["option"].isna().all()
    [question] = result.summary["questions"]
    assert [one["before"] for one in question["some"]] == ["No idea."] * 3
    assert result.table.empty


def test_a_round_in_the_middle_can_be_taken_for_the_end(run_dir, tmp_path):
    seen = []
    survey(run_dir, of(OPEN), at=0, out=tmp_path, llm=toy(lambda prompt: seen.append(prompt) or "Well."))
    rounds = {int(found) for prompt in seen for found in re.findall(r"^Round (\d+):", prompt, re.MULTILINE)}
    assert rounds <= {0}
    with pytest.raises(DataError, match=r"--at: no round 4 in .* \(rounds: 0 \.\. 3\)"):
        survey(run_dir, of(OPEN), at=4, out=tmp_path, llm=toy(content))


# -- by association ------------------------------------------------------------------------------------


class Associates:
    """SmolLM2 as a function of what it reads: an option is the likelier the more of its first letters are there."""

    name, digest, label = SMOLLM2_NAME, "d1", "associates"

    def __init__(self):
        self.decoding, self.read = {"temperature": 0.0, "max_tokens": 16, "seed": 0, "build": "toy"}, []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        return Completion("Because.")

    async def weigh(self, prompt, texts):
        self.read.append(prompt)
        return tuple(prompt.lower().count(text.strip()[:4]) - len(text) for text in texts), 5


TOPICS = {"id": "topic", "ask": "Which topic?", "options": ["gardening", "cooking", "sport", "music"]}


def test_an_llm_that_names_letters_blindly_is_asked_without_letters(run_dir, tmp_path):
    llm = Associates()
    result = survey(run_dir, of(TOPICS, intro="Be honest."), out=tmp_path, llm=llm)
    assert result.summary["questions"][0]["by_letter"] == {}
    without = 'Asked "Be honest. Which topic?", someone answered:'
    assert without in llm.read
    names = pd.read_parquet(run_dir / "agents.parquet")["name"]
    for read in set(llm.read) - {without}:
        assert re.fullmatch(r'Someone .*\. Asked "Be honest\. Which topic\?", they answered:', read)
        assert not any(name in read for name in names)


def test_own_interests_are_likelier_and_only_deeds_change_an_answer(run_dir, tmp_path):
    result = survey(run_dir, of(TOPICS), out=tmp_path, llm=Associates())
    answers = pd.read_parquet(result.folder / "answers.parquet")
    table = answers.pivot_table(index="agent", columns=["wave", "option"], values="probability")
    agents = pd.read_parquet(run_dir / "agents.parquet")
    posts, done = (pd.read_parquet(run_dir / f"{name}.parquet") for name in ("posts", "engagements"))
    acted = {*posts["author"].tolist(), *done["agent"].tolist()}
    for row, interests in enumerate(agents["interests"]):
        before = table.loc[row, "before"][TOPICS["options"]]
        own = [option for option in TOPICS["options"] if option in interests.split(";")]
        if own:
            assert before[own].min() > before.drop(own).max()
        if row not in acted:
            assert table.loc[row, "after"][TOPICS["options"]].to_numpy() == pytest.approx(before.to_numpy())
    assert 0 < len(acted) < 40
    assert (result.table[result.table["wave"] == "change"]["mean"].abs() > 0).any()


@pytest.mark.parametrize("asked", [(TOPICS,), (TOPICS, OPEN)])
def test_an_association_is_repeated_from_the_ledger_alone(run_dir, tmp_path, asked):
    first = survey(run_dir, of(*asked), agents=9, out=tmp_path, llm=Associates())
    replay = (
        *("reasoner.kind=embedded", "reasoner.ledger=replay"),
        f"reasoner.ledger_path={first.folder / 'decisions.sqlite'}",
        *("deliberation.temperature=0", "deliberation.max_answer_tokens=16"),
    )
    again = survey(run_dir, of(*asked), replay, agents=9, out=tmp_path)
    assert (again.status, again.summary["calls"], again.summary["failures"]) == ("done", 0, {})
    assert bytes_of(again.folder) == bytes_of(first.folder)


def test_the_command_tells_nothing_by_letter_where_there_were_none(prism, run_dir, tmp_path):
    first = survey(run_dir, of(TOPICS), agents=5, out=tmp_path, llm=Associates())
    (tmp_path / "q.yaml").write_text(json.dumps({"questions": [TOPICS]}))
    replay = (
        *("reasoner.kind=embedded", "reasoner.ledger=replay"),
        f"reasoner.ledger_path={first.folder / 'decisions.sqlite'}",
    )
    code, out, _ = prism("survey", run_dir, tmp_path / "q.yaml", *replay, "--agents", 5, "--out", tmp_path)
    assert code == 0
    assert re.search(r"^  gardening +0\.\d{3}", out, re.MULTILINE)
    assert "by letter" not in out
    assert "by association with words: tells topics, not attitudes" in out


@pytest.mark.slow
@pytest.mark.skipif(bool(embedded_fault()), reason=f"the embedded LLM {embedded_fault()}")
def test_the_embedded_llm_finds_the_interests_of_agents_among_topics(run_dir, tmp_path):
    result = survey(run_dir, of(TOPICS), ("reasoner.kind=embedded",), agents=8, at=0, out=tmp_path)
    answers = pd.read_parquet(result.folder / "answers.parquet")
    table = answers[answers["wave"] == "before"].pivot_table(index="agent", columns="option", values="probability")
    agents = pd.read_parquet(run_dir / "agents.parquet")["interests"].str.split(";")
    pairs = [
        shares[own] > shares[other]
        for row, shares in table.iterrows()
        for own in agents[row]
        for other in TOPICS["options"]
        if own in TOPICS["options"] and other not in agents[row]
    ]
    assert len(pairs) >= 8
    assert np.mean(pairs) > 0.9


# -- the sample ----------------------------------------------------------------------------------------


@given(n_agents=st.integers(1, 300), n=st.integers(1, 300), seed=st.integers(0, 2**31))
def test_a_sample_has_nobody_twice_and_is_ascending_and_all_if_there_are_no_more(n_agents, n, seed):
    rows = sampled(n_agents, n, Streams(seed)).tolist()
    assert rows == sorted(set(rows))
    assert len(rows) == min(n, n_agents)
    assert set(rows) <= set(range(n_agents))


def test_everybody_is_drawn_about_equally_often():
    counts = np.zeros(50)
    for seed in range(2000):
        counts[sampled(50, 10, Streams(seed))] += 1
    assert np.abs(counts / 2000 - 0.2).max() < 0.045  # five standard errors of .009


def test_the_sample_is_the_same_before_and_after_and_in_the_manifest(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), agents=7, out=tmp_path, llm=toy(letter_a))
    answers = pd.read_parquet(result.folder / "answers.parquet")
    waves = [answers[answers["wave"] == wave]["agent"].unique().tolist() for wave in ("before", "after")]
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert waves[0] == waves[1] == manifest["agents"] == sampled(40, 7, Streams(5)).tolist()
    assert (manifest["system"], manifest["status"], manifest["at"]) == ("survey", "done", {"before": -1, "after": 3})
    assert manifest["questions"]["questions"][0]["options"] == CLOSED["options"]


# -- intervals -----------------------------------------------------------------------------------------


def test_an_interval_is_about_as_wide_as_theory_has_it():
    values = np.random.default_rng(3).normal(2.0, 1.5, (400, 1))
    [mean], [low], [high] = bootstrap(values, Streams(1), "x")
    width = 2 * 1.959964 * values.std() / np.sqrt(400)
    assert mean == pytest.approx(values.mean())
    assert high - low == pytest.approx(width, rel=0.08)
    assert (low + high) / 2 == pytest.approx(mean, abs=width / 20)


def test_an_interval_covers_the_truth_as_often_as_it_says():
    """Shares of 60 agents that are 0 or 1: 95 % less what a bootstrap of 60 loses, over 300 samples."""
    samples = (np.random.default_rng(8).random((60, 300)) < 0.4).astype(float)
    _, low, high = bootstrap(samples, Streams(2), "x")
    covered = ((low <= 0.4) & (high >= 0.4)).mean()
    assert 0.90 <= covered <= 0.98


def test_an_interval_of_a_coin_is_worked_out_by_hand():
    """Of 10 values, half 0 and half 1, a resample's mean is below .2 in 1.1 %, at most .2 in 5.5 % of all cases."""
    values = [[0.0], [1.0]] * 5
    assert [part.tolist() for part in bootstrap(values, Streams(1), "x")] == [[0.5], [0.2], [0.8]]


@pytest.mark.parametrize("n", [1, 2, 9])
def test_few_values_have_a_mean_and_no_interval(n):
    mean, low, high = bootstrap([[0.25, 1.0]] * n, Streams(1), "x")
    assert mean.tolist() == [0.25, 1.0]
    assert np.isnan([*low, *high]).all()


def test_a_survey_of_one_agent_does_not_look_exact(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), agents=1, out=tmp_path, llm=toy(letter_a))
    assert result.table["mean"].notna().all()
    assert result.table[["low", "high"]].isna().all(axis=None)
    lines = list(survey_lines(result.summary))
    assert "  no intervals: too few agents answered to tell how much others would differ" in lines
    assert not any(", " in line and "[" in line for line in lines)
    survey_figure(result.table, {}).savefig(tmp_path / "p.png", dpi=20)


def test_equal_values_have_no_width_and_no_values_no_interval():
    assert [part.tolist() for part in bootstrap([[0.25, 1.0]] * 10, Streams(1), "x")] == [[0.25, 1.0]] * 3
    assert all(np.isnan(part).all() for part in bootstrap(np.empty((0, 2)), Streams(1), "x"))


@settings(max_examples=10)
@given(st.lists(st.floats(0, 1), min_size=10, max_size=30))
def test_columns_are_resampled_together_so_what_mirrors_stays_mirrored(shares):
    values = np.array([[share, 1 - share] for share in shares])
    mean, low, high = bootstrap(values, Streams(4), "x")
    assert mean.sum() == pytest.approx(1)
    assert [low[0], high[0]] == pytest.approx([1 - high[1], 1 - low[1]], abs=1e-9)


def test_the_change_is_paired_over_agents(run_dir, tmp_path):
    """Agents differ a lot and all move alike: the change is sure although before and after are not."""

    def llm(prompt):
        base = len(prompt.split("interests")[1].split("\n")[0]) % 7 / 10
        return json.dumps({"yes": base + 0.2 * ("What you remember" in prompt), "no": 1 - base})

    asked = of({"id": "q", "ask": "Well?", "options": ["yes", "no"]})
    table = survey(run_dir, asked, out=tmp_path, llm=toy(llm)).table.set_index(["option", "wave"])
    width = (table["high"] - table["low"]).loc["yes"]
    assert width["change"] < 0.6 * min(width["before"], width["after"])


# -- the same again ------------------------------------------------------------------------------------


def test_two_equal_surveys_have_the_same_bytes(run_dir, tmp_path):
    first, second = (survey(run_dir, of(CLOSED, OPEN), agents=9, out=tmp_path, llm=toy(content)) for _ in range(2))
    assert first.folder != second.folder
    assert bytes_of(first.folder) == bytes_of(second.folder)


def twice(run_dir, out, brain, *asked):
    """Ask a server, then the ledger; return both surveys, and how often the server was asked in each."""
    with StandIn(brain) as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}", "reasoner.max_fallback_share=1")
        first = survey(run_dir, of(*asked), host, agents=9, out=out)
        n_first = server.n_requests
        replay = (*host, "reasoner.ledger=replay", f"reasoner.ledger_path={first.folder / 'decisions.sqlite'}")
        again = survey(run_dir, of(*asked), replay, agents=9, out=out)
        return first, again, (n_first, server.n_requests - n_first)


@pytest.mark.parametrize("asked", [(CLOSED,), (OPEN,), (CLOSED, OPEN)])
def test_a_survey_is_repeated_from_its_ledger_without_asking(run_dir, tmp_path, asked):
    first, again, requests = twice(run_dir, tmp_path, choose_by_hash, *asked)
    assert requests == (first.summary["calls"], 0)
    assert (first.summary["failures"], again.status, again.summary["calls"]) == ({}, "done", 0)
    assert bytes_of(again.folder) == bytes_of(first.folder)


def only_letters(body):
    return choose_by_hash(body) if body.get("logprobs") else " "


def only_words(body):
    return "No comment." if body.get("logprobs") else "Because."


@pytest.mark.parametrize(("brain", "reason"), [(only_letters, "empty"), (only_words, "no-option")])
def test_a_survey_of_which_one_kind_of_question_had_no_answer_is_repeated_too(run_dir, tmp_path, brain, reason):
    first, again, (_, asked_again) = twice(run_dir, tmp_path, brain, CLOSED, OPEN)
    assert first.summary["failures"] == again.summary["failures"] == {reason: 18}
    assert asked_again == 0
    assert bytes_of(again.folder) == bytes_of(first.folder)


def test_a_replay_of_other_questions_ends_with_the_name_of_what_is_missing(run_dir, tmp_path):
    first = survey(run_dir, of(OPEN), agents=3, out=tmp_path, llm=toy(content))
    replay = ("reasoner.ledger=replay", f"reasoner.ledger_path={first.folder / 'decisions.sqlite'}")
    with pytest.raises(RunError, match="holds no answer for round 0, agent"):
        survey(run_dir, of({**OPEN, "ask": "Why not?"}), replay, agents=3, out=tmp_path)


def test_closed_questions_are_asked_at_temperature_0_in_few_tokens_and_open_ones_as_texts_are(run_dir, tmp_path):
    with StandIn() as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}", "deliberation.temperature=0.4")
        survey(run_dir, of(CLOSED, OPEN), host, agents=4, out=tmp_path)
        options = {bool(body.get("logprobs")): body["options"] for body in server.requests}
    assert {k: options[True][k] for k in ("temperature", "num_predict")} == {"temperature": 0.0, "num_predict": 16}
    assert {k: options[False][k] for k in ("temperature", "num_predict")} == {"temperature": 0.4, "num_predict": 200}


def test_nothing_is_written_to_the_run(run_dir, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    before = {file.name: file.read_bytes() for file in copy.iterdir() if file.is_file()}
    survey(copy, of(CLOSED), agents=3, out=tmp_path / "out", llm=toy(letter_a))
    assert {file.name: file.read_bytes() for file in copy.iterdir() if file.is_file()} == before


# -- failures ------------------------------------------------------------------------------------------


def fails_for(names):
    def llm(prompt):
        return "Sure!" if any(f"You are <<< {name} >>>" in prompt for name in names) else "A"

    return toy(llm)


def test_answers_that_do_not_come_are_counted_and_left_out(run_dir, tmp_path):
    names = pd.read_parquet(run_dir / "agents.parquet")["name"]
    silent = names.iloc[[3]].tolist()
    n_silent = int(names.isin(silent).sum())
    asked = ("reasoner.max_fallback_share=0.5",)
    result = survey(run_dir, of(CLOSED), asked, out=tmp_path, llm=fails_for(silent))
    assert result.status == "done"
    assert result.summary["failures"] == {"unparsable": 2 * n_silent}
    assert set(result.table["n"]) == {40 - n_silent}
    assert set(result.table["failed"]) == {n_silent}
    answers = pd.read_parquet(result.folder / "answers.parquet")
    assert not answers["agent"].isin(np.flatnonzero(names.isin(silent))).any()
    with Ledger(result.folder / "decisions.sqlite", read_only=True) as ledger:
        assert sum(row.source == "failed" for row in ledger.asked()) == 2 * n_silent


def test_too_many_of_them_make_it_fail_with_its_tables_kept(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), out=tmp_path, llm=toy(lambda prompt: "Sure!"))
    assert result.status == "failed"
    assert result.summary["error"] == (
        "100.0% of 80 answers did not come (80 unparsable); reasoner.max_fallback_share allows 5.0%"
    )
    assert set(result.table["n"]) == {0}
    assert result.table["mean"].isna().all()
    assert all((result.folder / name).is_file() for name in TABLES)


def test_what_a_limit_leaves_over_is_no_failure(run_dir, tmp_path):
    result = survey(run_dir, of(CLOSED), ("reasoner.max_calls=10",), agents=20, out=tmp_path, llm=toy(letter_a))
    assert (result.status, result.summary["calls"]) == ("done", 10)
    assert result.summary["failures"].keys() == {"budget"}


def test_a_run_that_is_none_or_of_nations_is_refused(tmp_path):
    with pytest.raises(DataError, match="no run there"):
        survey(tmp_path, of(CLOSED), llm=toy(letter_a), out=tmp_path)
    (tmp_path / "manifest.json").write_text('{"system": "economy"}')
    with pytest.raises(DataError, match="is a run of nations"):
        survey(tmp_path, of(CLOSED), llm=toy(letter_a), out=tmp_path)


def test_only_who_speaks_can_be_changed(run_dir, tmp_path):
    with pytest.raises(ConfigError, match=r"agents\.n: the run is over"):
        survey(run_dir, of(CLOSED), ("agents.n=3",), out=tmp_path, llm=toy(letter_a))
    with pytest.raises(ConfigError, match="rule cannot speak"):
        survey(run_dir, of(CLOSED), ("reasoner.kind=rule",), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- the questions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty; write at least one key: questions"),
        ("intro: Hello", "questions: are missing; each has id and ask"),
        ("questions: []", "questions: there are none; give at least one"),
        ("questions: yes", "questions: must be a list"),
        ("questions: [why]", r"question 1: must have keys \(id, ask, options\), not 'why'"),
        ("questions: [{id: a, ask: b}, {id: a, ask: c}]", "questions: id 'a' stands twice"),
        ("questions: [{id: a, ask: b, options: [x]}]", "question 1 'a': options: must be a list of 2 to 20 different"),
        ("questions: [{id: a, ask: b, options: []}]", "question 1 'a': options: must be a list of 2 to 20"),
        ("questions: [{id: a, ask: b, options: [x, ' X ']}]", "'a': options: must be .* different texts"),
        (f"questions: [{{id: a, ask: b, options: {list(map(str, range(21)))}}}]", "'a': options: must be .* 2 to 20"),
        ("questions: [{id: a, ask: b, options: {x: y}}]", "question 1 'a': options: must be a list"),
        ("questions: [{id: a, ask: b, option: [x, y]}]", r"'a': option: no such key .*Did you mean 'options'\?"),
        ("questions: [{id: a, ask: ' '}]", "question 1 'a': ask: must say something"),
        ("questions: [{id: a}]", "question 1 'a': ask: Field required"),
        ("questions: [{id: a b, ask: c}]", "question 1 'a b': id: String should match"),
        ("questions: [{id: a, ask: b}]\nintr: c", r"intr: no such key \(allowed here: intro, questions\)"),
        ("questions: [{id: a, ask: b}]\nquestions: []", "'questions' stands here twice"),
        ("questions: [", "is not YAML"),
    ],
)
def test_a_fault_of_the_questions_is_one_line_with_file_question_and_what_is_allowed(tmp_path, text, match):
    file = tmp_path / "q.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=match) as caught:
        read_questionnaire(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_no_such_file_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"no such questions file \(looked in"):
        read_questionnaire(tmp_path / "q.yaml")


def test_bare_words_of_yaml_are_texts(tmp_path):
    (tmp_path / "q.yaml").write_text("questions: [{id: 7, ask: Well, options: [yes, no, 5, 2.50, null, 2020-01-02]}]")
    [question] = read_questionnaire(tmp_path / "q.yaml").questions
    assert question.id == "7"
    assert question.options == ("yes", "no", "5", "2.50", "null", "2020-01-02")


def test_the_questions_that_come_with_it_can_be_asked():
    kinds = [len(question.options) for question in read_questionnaire(ROOT / "configs" / "survey.yaml").questions]
    assert kinds == [5, 4, 0]


# -- the command ---------------------------------------------------------------------------------------


@pytest.fixture
def questions(tmp_path):
    (tmp_path / "q.yaml").write_text(FILE)
    return "q.yaml"


def test_the_command_prints_a_table_with_intervals_and_names_its_picture(prism, run_dir, questions):
    with StandIn() as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}")
        code, out, err = prism("survey", run_dir, questions, *host, "--agents", 10, "--out", "there")
    assert code == 0
    interval = r"[+-]?0\.\d{3} \[[+-]?0\.\d{3}, [+-]?0\.\d{3}\]"
    for option in ("tea", "coffee", "water"):
        assert re.search(rf"^  {option} +{interval}  +{interval}  +[+-].*\]$", out, re.MULTILINE)
    assert "asked       10 of 40 agents" in out
    assert "drink: What do you drink? (answered: 10 before, 10 after)" in out
    assert "before: I would choose" in out
    drawn = out.splitlines()[-1]
    assert re.fullmatch(r"drawn: there/survey-[\d-]+/survey\.png", drawn)
    assert "40/40" in err


def test_json_is_one_object_with_the_table_in_it(prism, run_dir, questions):
    with StandIn() as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}")
        code, out, _ = prism("survey", run_dir, questions, *host, "--agents", 5, "--json")
    said = json.loads(out)
    assert (code, out.count("\n"), said["status"], said["agents"]) == (0, 1, "done", 5)
    assert [row["wave"] for row in said["table"][::3]] == ["before", "after", "change"]
    assert said["table"][0].keys() == {"question", "option", "wave", "n", "failed", "mean", "low", "high"}
    assert said["pictures"] == [f"{said['folder']}/survey.png"]


def test_a_survey_that_fails_prints_its_table_and_ends_with_1(prism, run_dir, questions):
    with serving(always=as_json(404, {"error": "gone"})) as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}")
        code, out, err = prism("survey", run_dir, questions, *host, "--agents", 2)
    assert code == 1
    assert "no answers" in out
    assert err.splitlines()[-1].endswith("reasoner.max_fallback_share allows 5.0%")
    assert "the survey failed: 100.0% of 8 answers did not come (8 http-404)" in err


def test_a_survey_that_is_interrupted_says_so_and_keeps_what_was_answered(run_dir, tmp_path):
    def impatient(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"answer \d+: interrupted \(what was recorded is kept there\)") as stop:
        survey(run_dir, of(CLOSED), agents=40, out=tmp_path, llm=toy(content), on_answers=impatient)
    kept = stop.value.result
    assert (kept.status, kept.summary["status"], read_manifest(kept.folder)["status"]) == ("interrupted",) * 3
    assert 0 < kept.summary["answers"] < 80
    assert (kept.table["n"] > 0).any()


def test_ctrl_c_ends_the_command_with_130_the_table_and_its_picture(prism, run_dir, questions):
    def interrupting(handler):
        if len(handler.server.sent) == 30:
            os.kill(os.getpid(), signal.SIGINT)
        chat_answer(content(handler.body["messages"][-1]["content"]))(handler)

    with serving(always=interrupting) as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}", "reasoner.max_concurrency=1")
        code, out, err = prism("survey", run_dir, questions, *host, "--agents", 40)
    assert code == 130
    assert re.match(r"survey      results/survey-[\d-]+ \(interrupted\)\n", out)
    assert re.search(r"^drawn: .*survey\.png$", out, re.MULTILINE)
    assert "interrupted (what was recorded is kept there)" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("nowhere.yaml",), "no such questions file"),
        (("q.yaml", "agents.n=4"), "the run is over"),
        (("q.yaml", "reasoner.knd=rule"), "Did you mean"),
        (("q.yaml", "rubbish"), "an override is written key=value"),
        (("q.yaml", "--agents", "0"), "greater than or equal to 1"),
        (("q.yaml", "--at", "99"), "no round 99"),
    ],
)
@pytest.mark.usefixtures("questions")
def test_bad_input_is_one_line_and_2_and_leaves_nothing(prism, run_dir, tmp_path, arguments, match):
    code, out, err = prism("survey", run_dir, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert match in err
    assert not (tmp_path / "results").exists()


# -- the picture ---------------------------------------------------------------------------------------


def test_the_picture_has_a_row_for_each_question_and_shows_every_mean(run_dir, tmp_path):
    other = {"id": "money", "ask": "Is $1 more than $x_$?", "options": ["$a_$", "b"]}
    result = survey(run_dir, of(CLOSED, other, OPEN), agents=5, out=tmp_path, llm=toy(letter_a))
    figure = survey_figure(result.table, {"drink": "What do you drink?", "money": other["ask"]})
    assert isinstance(figure, Figure)
    assert [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes[::2]] == [CLOSED["ask"], other["ask"]]
    shown = [line.get_xdata() for line in figure.axes[0].get_lines() if line.get_marker() in "os"]
    means = result.table[(result.table["question"] == "drink") & (result.table["wave"] != "change")]["mean"]
    assert np.concatenate(shown) == pytest.approx(means.to_numpy())
    figure.savefig(tmp_path / "p.png", dpi=20)
