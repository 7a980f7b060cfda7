"""Surveys: files of questions, the command, and the picture."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from asked_surveys import CLOSED, OPEN, content, letter_a, of, toy
from matplotlib.figure import Figure
from ollama_server import as_json, serving
from stand_in import StandIn

from prism_mesa.analysis.survey.questionnaire import read_questionnaire
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import ConfigError
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.view.plots.answers import survey_figure

ROOT = Path(__file__).parents[2]


# -- the questions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("intro: Hello", "questions: Field required"),
        ("questions: yes", "questions: "),
        ("questions: [why]", "questions.0: "),
        ("questions: [{id: a, ask: b}, {id: a, ask: c}]", "questions: id 'a' appears twice"),
        ("questions: [{id: a, ask: b, options: [x]}]", "questions.0.options: must be a list of 2 to 20 different"),
        ("questions: [{id: a, ask: b, options: [x, ' X ']}]", "questions.0.options: "),
        (f"questions: [{{id: a, ask: b, options: {list(map(str, range(21)))}}}]", "questions.0.options: "),
        ("questions: [{id: a, ask: b, option: [x, y]}]", r"questions.0.option: no such key .*Did you mean 'options'"),
        ("questions: [{id: a, ask: ' '}]", "questions.0.ask: "),
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


def test_bare_words_of_yaml_are_texts(tmp_path):
    (tmp_path / "q.yaml").write_text("questions: [{id: 7, ask: Well, options: [yes, no, 5, 2.50, null, 2020-01-02]}]")
    [question] = read_questionnaire(tmp_path / "q.yaml").questions
    assert question.id == "7"
    assert question.options == ("yes", "no", "5", "2.50", "null", "2020-01-02")


def test_the_questions_that_come_with_it_can_be_asked():
    kinds = [len(question.options) for question in read_questionnaire(ROOT / "configs" / "survey.yaml").questions]
    assert kinds == [5, 4, 0]


# -- the command ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
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
    assert "the survey failed: 100.0% of 8 answers are missing (8 http-404)" in err


def test_a_survey_that_is_interrupted_says_so_and_keeps_what_was_answered(run_dir, tmp_path):
    def impatient(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"answer \d+: interrupted \(what was recorded is kept there\)") as stop:
        survey(run_dir, of(CLOSED), agents=40, out=tmp_path, llm=toy(content), on_answers=impatient)
    kept = stop.value.result
    assert (kept.status, kept.summary["status"], read_manifest(kept.folder)["status"]) == ("interrupted",) * 3
    assert 0 < kept.summary["answers"] < 80
    assert (kept.table["n"] > 0).any()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("nowhere.yaml",), "no such questions file"),
        (("q.yaml", "agents.n=4"), "the run has ended"),
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


# -- LLMs that think ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "n_tokens"),
    [((), 16), (("deliberation.max_answer_tokens=900",), 900), (("reasoner.think=low",), 200)],
)
def test_a_closed_question_leaves_a_thought_the_tokens_that_were_set(run_dir, tmp_path, own, n_tokens):
    with StandIn(thinks="always", thought="A person " * 40 if n_tokens == 900 else "A") as server:
        own = ("reasoner.kind=ollama", f"reasoner.host={server.url}", *own)
        result = survey(run_dir, of(CLOSED, OPEN), own, agents=4, out=tmp_path)
        closed = [body for body in server.requests if "one letter" in body["messages"][0]["content"]]
    assert result.status == "done"
    assert {body["options"]["num_predict"] for body in closed} == {n_tokens}
    assert {body["options"]["temperature"] for body in closed} == {0}


def test_a_survey_from_before_is_replayed_whatever_tokens_were_set(run_dir, tmp_path):
    own = ["deliberation.max_answer_tokens=900"]
    path = tmp_path / "l.sqlite"
    with StandIn() as server:
        asked = ("reasoner.kind=ollama", f"reasoner.host={server.url}", f"reasoner.ledger_path={path}")
        first = survey(run_dir, of(CLOSED), asked, agents=4, out=tmp_path / "a")
    again = survey(
        run_dir, of(CLOSED), ("reasoner.kind=ollama", f"reasoner.ledger_path={path}", "reasoner.ledger=replay", *own),
        agents=4, out=tmp_path / "b",
    )  # fmt: skip
    assert again.table.equals(first.table)
