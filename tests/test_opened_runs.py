"""What a Python user does with a run that is over: open it, repeat it, ask why."""

import pandas as pd
import pytest
from advisors import LLM, failing_from
from worlds import plain

from prism_mesa import Interview, RunResult, distill, open_run, replay, run, run_economy, survey, why
from prism_mesa.errors import DataError, RunError
from prism_mesa.runs.run_files import MANIFEST

SMALL = plain({"agents": {"n": 30}, "network": {"mean_degree": 5}, "rounds": 3, "ticks_per_round": 6})
SURVEY = {"questions": [{"id": "drink", "ask": "What do you drink?", "options": ["tea", "coffee"]}]}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return run(SMALL, out=tmp_path_factory.mktemp("runs"), pictures=False)


@pytest.fixture(scope="module")
def nations(tmp_path_factory):
    config = {"rounds": 3, "economy": {"nations": ["Sweden", "Canada"]}}
    return run_economy(config, out=tmp_path_factory.mktemp("nations"), pictures=False)


# -- open_run ----------------------------------------------------------------------------------------


def test_an_opened_run_is_what_run_returned(done):
    opened = open_run(done.run_dir)
    assert isinstance(opened, RunResult)
    assert opened == done
    assert opened.manifest["config"]["agents"]["n"] == 30
    pd.testing.assert_frame_equal(opened.table("rounds"), done.table("rounds"))


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
    assert repr(opened) == f"<RunResult running, round 1 of 1: {opened.run_dir}>"


TAKE_A_RUN = {
    "open_run": open_run,
    "replay": replay,
    "why": lambda run: why(run, 0),
    "Interview": lambda run: Interview(run, 0),
    "survey": lambda run: survey(run, SURVEY),
    "distill": distill,
}
"""All that takes a run."""


@pytest.fixture(params=TAKE_A_RUN.values(), ids=TAKE_A_RUN)
def take(request):
    return request.param


def test_a_folder_without_a_run_says_what_it_holds_instead(take, done, tmp_path):
    def complaint(folder):
        with pytest.raises(DataError) as fault:
            take(folder)
        return str(fault.value)

    study = tmp_path / "study"
    study.mkdir()
    (study / "runs.parquet").touch()
    where = {
        tmp_path / "missing": "there is no such folder",
        tmp_path: "manifest.json is missing",
        done.run_dir.parent: f"manifest.json is missing (folders in it with one: {done.run_dir.name})",
        done.run_dir / MANIFEST: "it is a file; give the run's folder",
        study: f"it holds a study, which keeps its runs in {study / 'runs'} with keep: tables",
    }
    assert {folder: complaint(folder) for folder in where} == {
        folder: f"{folder}: no run there: {said}" for folder, said in where.items()
    }
    long = complaint("x" * 5000)
    assert long.endswith("x: no run there: there is no such folder")
    assert len(long) <= 600


@pytest.mark.parametrize("given", [None, 3, b"results/run-1", 1.5])
def test_what_cannot_be_a_run_is_one_clear_line(given, take):
    with pytest.raises(DataError, match=r"^runs?: give a RunResult or the folder of a run, .*not ") as fault:
        take(given)
    assert str(fault.value).endswith(f"not {given!r}")


@pytest.mark.parametrize("made", ["survey", "interview"])
def test_what_is_made_of_a_run_is_no_run(made, done, tmp_path, prism):
    if made == "survey":
        folder = survey(done, SURVEY, agents=2, out=tmp_path, llm=lambda prompt: "A").folder
    else:
        with Interview(done, 3, llm=lambda prompt: "I was there.", out=tmp_path) as talk:
            talk.ask("What did you do?")
            folder = talk.save()
    for name, take in TAKE_A_RUN.items():
        with pytest.raises(DataError, match=f"of nations, but '{made}'") as fault:
            take(folder)
        if name not in ("Interview", "survey"):
            assert str(fault.value) == f"{folder}: holds no run of a platform or of nations, but {made!r}"
    for command in (("replay", folder), ("why", folder, 0)):
        code, _, err = prism(*command)
        assert (code, err.strip()) == (2, f"prism: {fault_of_open(folder)}")


def fault_of_open(folder):
    with pytest.raises(DataError) as fault:
        open_run(folder)
    return str(fault.value)


# -- replay and why ----------------------------------------------------------------------------------


def test_a_result_and_its_folder_are_replayed_alike(done, nations):
    for over in (done, nations):
        assert replay(over) == replay(str(over.run_dir))
        assert replay(over).equal


def test_why_is_the_report_of_the_command(done, nations, prism):
    for over, who, when in ((done, 3, 1), (nations, "Canada", "2010Q1")):
        code, out, _ = prism("why", over.run_dir, who, when, "--all")
        told = why(over, who, when)
        assert code == 0
        assert f"{told}\n" == f"{told!r}\n" == out
        short = prism("why", over.run_dir, who, when)[1].splitlines()
        assert tuple(short[:-1]) == told.brief == told.lines[: len(told.brief)]
        assert "--all" in short[-1]
        assert str(why(str(over.run_dir), str(who), str(when))) == str(told)


# -- surveys and interviews --------------------------------------------------------------------------
