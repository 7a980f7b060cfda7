"""Surveys: what comes back, the same again, and failures."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest
from asked_surveys import CLOSED, OPEN, TABLES, bytes_of, content, letter_a, of, toy
from stand_in import StandIn, choose_by_hash

from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.llm import Ledger


def lines_of(prompt):
    """Return letter -> text of the options that a prompt shows."""
    return dict(re.findall(r"^([A-Z])\. (.+)$", prompt, re.MULTILINE))


def told(result, wave):
    rows = result.table[result.table["wave"] == wave]
    return dict(zip(rows["option"], rows["mean"], strict=True))


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
    with pytest.raises(DataError, match=r"--at: .* has no round 4 \(rounds: 0 \.\. 3\)"):
        survey(run_dir, of(OPEN), at=4, out=tmp_path, llm=toy(content))


# -- the same again ------------------------------------------------------------------------------------


def twice(run_dir, out, brain, *asked):
    """Ask a server, then the ledger; return both surveys, and how often the server was asked in each."""
    with StandIn(brain) as server:
        host = ("reasoner.kind=ollama", f"reasoner.host={server.url}", "reasoner.max_fallback_share=1")
        first = survey(run_dir, of(*asked), host, agents=9, out=out)
        n_first = server.n_requests
        replay = (*host, "reasoner.ledger=replay", f"reasoner.ledger_path={first.folder / 'decisions.sqlite'}")
        again = survey(run_dir, of(*asked), replay, agents=9, out=out)
        return first, again, (n_first, server.n_requests - n_first)


@pytest.mark.parametrize("asked", [(OPEN,), (CLOSED, OPEN)])
def test_a_survey_is_repeated_from_its_ledger_without_asking(run_dir, tmp_path, asked):
    first, again, requests = twice(run_dir, tmp_path, choose_by_hash, *asked)
    assert requests == (first.summary["calls"], 0)
    assert (first.summary["failures"], again.status, again.summary["calls"]) == ({}, "done", 0)
    assert bytes_of(again.folder) == bytes_of(first.folder)


def only_letters(body):
    return choose_by_hash(body) if body.get("logprobs") else " "


@pytest.mark.slow
def test_a_survey_of_which_one_kind_of_question_had_no_answer_is_repeated_too(run_dir, tmp_path):
    first, again, (_, asked_again) = twice(run_dir, tmp_path, only_letters, CLOSED, OPEN)
    assert first.summary["failures"] == again.summary["failures"] == {"empty": 18}
    assert asked_again == 0
    assert bytes_of(again.folder) == bytes_of(first.folder)


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
    heard = []

    def llm(prompt):
        heard.append(prompt)
        return letter_a(prompt) if len(heard) == 1 else "Sure!"

    result = survey(run_dir, of(CLOSED), ("reasoner.max_concurrency=1",), out=tmp_path, llm=toy(llm))
    assert result.status == "failed"
    assert result.summary["error"].startswith("98.8% of 80 answers are missing (79 unparsable)")
    assert all((result.folder / name).is_file() for name in TABLES)


def test_a_first_batch_of_useless_answers_ends_it_with_its_tables_kept(run_dir, tmp_path):
    own = ("reasoner.max_concurrency=1",)
    result = survey(run_dir, of(CLOSED), own, out=tmp_path, llm=toy(lambda prompt: "Sure!"))
    assert result.status == "failed"
    assert result.summary["calls"] < 40
    assert "answers are all missing: the LLM gave the survey no usable answer" in result.summary["error"]
    assert "'Sure!'" in result.summary["error"]
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
    with pytest.raises(ConfigError, match=r"agents\.n: the run has ended"):
        survey(run_dir, of(CLOSED), ("agents.n=3",), out=tmp_path, llm=toy(letter_a))
    with pytest.raises(ConfigError, match="rule cannot answer"):
        survey(run_dir, of(CLOSED), ("reasoner.kind=rule",), out=tmp_path)
    assert list(tmp_path.iterdir()) == []
