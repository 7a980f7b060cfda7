"""What a Python user does with a run that is over: open it, repeat it, ask why."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from advisors import LLM, failing_from

from prism_mesa import Interview, PrismError, RunResult, open_run, replay, run, run_economy, survey, why
from prism_mesa.errors import BadInputError, DataError, RunError
from prism_mesa.runs.run_files import MANIFEST

SMALL = {"agents": {"n": 30}, "network": {"mean_degree": 5}, "rounds": 3, "ticks_per_round": 6}
SURVEY = {"questions": [{"id": "drink", "ask": "What do you drink?", "options": ["tea", "coffee"]}]}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return run(SMALL, out=tmp_path_factory.mktemp("runs"), pictures=False)


@pytest.fixture(scope="module")
def nations(tmp_path_factory):
    config = {"rounds": 3, "economy": {"nations": ["Sweden", "Canada"]}}
    return run_economy(config, out=tmp_path_factory.mktemp("nations"), pictures=False)


@pytest.fixture
def copy(done, tmp_path):
    return Path(shutil.copytree(done.run_dir, tmp_path / "copy"))


def rewrite(folder, **changed):
    file = folder / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


# -- open_run ----------------------------------------------------------------------------------------


def test_an_opened_run_is_what_run_returned(done):
    opened = open_run(done.run_dir)
    assert isinstance(opened, RunResult)
    assert opened == done
    assert opened.manifest["config"]["agents"]["n"] == 30
    pd.testing.assert_frame_equal(opened.table("rounds"), done.table("rounds"))


def test_a_run_of_nations_opens_as_well(nations):
    opened = open_run(str(nations.run_dir))
    assert opened == nations
    assert set(opened.table("indicators")["nation"]) == {"Sweden", "Canada"}


def test_an_opened_run_knows_its_pictures(copy):
    (copy / "states.png").touch()
    assert open_run(copy).pictures == (copy / "states.png",)


def test_a_result_is_taken_where_a_folder_is(done):
    assert open_run(done) == done
    assert Path(done) == done.run_dir


def test_a_run_that_broke_off_opens_and_says_so(tmp_path):
    with pytest.raises(RunError, match="2010Q2"):
        run_economy({**LLM, "rounds": 6}, out=tmp_path, llm=failing_from("2010Q2"), pictures=False)
    [folder] = tmp_path.iterdir()
    opened = open_run(folder)
    assert (opened.status, opened.summary["rounds"]) == ("failed", 2)
    assert "2010Q2" in opened.manifest["error"]


def test_a_run_opens_while_it_is_running(tmp_path):
    seen = []

    def look(done):
        [folder] = tmp_path.iterdir()
        seen.append(open_run(folder))

    run(SMALL | {"rounds": 1}, out=tmp_path, on_round=look, pictures=False)
    [opened] = seen
    assert (opened.status, opened.summary) == ("running", {})
    assert repr(opened) == f"<RunResult running: {opened.run_dir}>"


def test_a_folder_without_a_run_says_what_it_holds_instead(done, tmp_path):
    with pytest.raises(DataError, match=r"missing: no run there: there is no such folder$"):
        open_run(tmp_path / "missing")
    with pytest.raises(DataError, match=r"no run there: manifest\.json is missing$"):
        open_run(tmp_path)
    with pytest.raises(
        DataError, match=rf"manifest\.json is missing \(folders in it that have one: {done.run_dir.name}\)$"
    ):
        open_run(done.run_dir.parent)
    with pytest.raises(DataError, match=r"it is a file; give the run's folder$"):
        open_run(done.run_dir / MANIFEST)
    (tmp_path / "runs.parquet").touch()
    with pytest.raises(DataError, match=r"it holds a study: its runs are rows of runs\.parquet$"):
        open_run(tmp_path)
    with pytest.raises(DataError, match=r"there is no such folder$"):
        open_run("x" * 5000)


@pytest.mark.parametrize("made", ["survey", "interview"])
def test_what_is_made_of_a_run_is_no_run(made, done, tmp_path):
    if made == "survey":
        folder = survey(done, SURVEY, agents=2, out=tmp_path, llm=lambda prompt: "A").folder
    else:
        with Interview(done, 3, llm=lambda prompt: "I was there.", out=tmp_path) as talk:
            talk.ask("What did you do?")
            folder = talk.save()
    with pytest.raises(DataError, match=f"is no run but '{made}': a run is of a platform or of nations$"):
        open_run(folder)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"status": "sleeping"}, "holds no status of a run: it is damaged"),
        ({"config": None}, "holds no configuration of a run: it is damaged"),
        ({"summary": []}, "summary: .*it is damaged, or another version wrote it"),
        ({"seed": "many"}, "seed: .*it is damaged, or another version wrote it"),
    ],
)
def test_a_damaged_manifest_is_one_clear_line(changed, said, copy):
    rewrite(copy, **changed)
    with pytest.raises(DataError, match=said) as fault:
        open_run(copy)
    assert str(fault.value).startswith(str(copy))
    assert "\n" not in str(fault.value)


def test_a_cut_manifest_is_one_clear_line(copy):
    (copy / MANIFEST).write_text("{")
    with pytest.raises(DataError, match=r"manifest\.json: cannot be read: "):
        open_run(copy)


# -- replay and why ----------------------------------------------------------------------------------


def test_a_result_and_its_folder_are_replayed_alike(done, nations):
    for over in (done, nations):
        assert replay(over) == replay(str(over.run_dir))
        assert replay(over).equal


def test_a_replay_can_be_kept_and_opened(done, tmp_path):
    found = replay(done, out=tmp_path)
    assert open_run(found.run_dir).table("rounds").equals(done.table("rounds"))


def test_why_is_the_report_of_the_command(done, nations, prism):
    for over, who, when in ((done, 3, 1), (nations, "Canada", "2010Q1")):
        code, out, _ = prism("why", over.run_dir, who, when)
        told = why(over, who, when)
        assert code == 0
        assert f"{told}\n" == f"{told!r}\n" == out
        assert str(why(str(over.run_dir), str(who), str(when))) == str(told)


def test_why_has_the_trace_of_an_agent_and_calls_back_after_each_round(done):
    rounds = []
    told = why(done, 3, 2, on_round=rounds.append)
    assert told.explanation.agent.row == 3
    assert told.lines[0].startswith(told.explanation.agent.name)
    assert rounds == [1, 2, 3]


def test_why_says_what_is_no_round(done):
    with pytest.raises(BadInputError, match="'soon' is no round"):
        why(done, 3, "soon")
    with pytest.raises(DataError, match=r"no round 9 there \(rounds: 0 \.\. 2\)"):
        why(done, 3, 9)


# -- surveys and interviews --------------------------------------------------------------------------


def test_questions_and_settings_are_given_as_values(done, tmp_path):
    settings = {"deliberation.temperature": 0.5}
    found = survey(done, SURVEY, settings, agents=2, out=tmp_path, llm=lambda prompt: "A")
    assert repr(found) == f"<SurveyResult done: 1 question to 2 agents, {found.folder}>"
    assert json.loads((found.folder / MANIFEST).read_text())["deliberation"]["temperature"] == 0.5


def test_an_interview_says_with_whom_it_is(done, tmp_path):
    with Interview(done, 3, at=1, llm=lambda prompt: "I was there.", out=tmp_path) as talk:
        assert talk.ask("What did you do?") == "I was there."
        assert repr(talk) == f"<Interview with 3 {talk.snapshot.name!r} after round 1: 1 question, {done.run_dir}>"


def test_a_question_without_an_answer_is_an_error(done, tmp_path):
    with (
        Interview(done, 3, llm=lambda prompt: "", out=tmp_path) as talk,
        pytest.raises(PrismError, match="did not answer: "),
    ):
        talk.ask("What did you do?")
