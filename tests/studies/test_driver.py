import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from prism_mesa.llm import AskedRow, Ledger
from prism_mesa.studies import driver
from prism_mesa.studies.collect import collect, run_table
from prism_mesa.studies.driver import Engine, run_missing
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.engines.worker import carry_out
from prism_mesa.studies.folder import Shard, open_folder, write_study_files
from prism_mesa.studies.study import collect_result, study_status

TWO = {"chronological": {"feed.mode": "chronological"}, "ranked": {"feed.mode": "x_algo"}}
ONE = Engine(workers=1)


def run_all(design, out, **how):
    folder = open_folder(design, out)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_study_files(design, folder, "")
    progress = run_missing(design, folder, how.pop("engine", ONE), **how)
    collect(design, folder)
    return folder, progress


def bytes_of(folder, table="runs"):
    return folder.table(table).read_bytes()


def test_all_runs_are_run_seed_by_seed_and_stand_in_the_order_of_the_plan(designed, jobs, tmp_path):
    design = designed(arms=TWO, vary={"agents.band": [0.02, 0.1]})
    folder, progress = run_all(design, tmp_path)
    assert (progress.planned, progress.done, progress.failed) == (12, 12, 0)
    assert [job.config["seed"] for job in jobs] == [1] * 4 + [2] * 4 + [3] * 4
    runs = pd.read_parquet(folder.table("runs"))
    assert list(runs) == ["run", "arm", "seed", "status", "reason", "agents.band", "reshares"]
    assert runs["arm"].tolist() == ["chronological"] * 6 + ["ranked"] * 6
    assert set(runs["status"]) == {"done"}
    assert runs["reshares"].notna().all()
    assert run_table(design, folder).factors == ("agents.band",)


def test_another_arm_and_more_seeds_run_only_what_is_new(designed, jobs, tmp_path):
    run_all(designed(arms={"chronological": TWO["chronological"]}), tmp_path)
    jobs.clear()
    run_all(designed(arms=TWO, seeds=4), tmp_path)
    assert [(job.config["feed"]["mode"], job.config["seed"]) for job in jobs] == [
        ("x_algo", 1),
        ("x_algo", 2),
        ("x_algo", 3),
        ("chronological", 4),
        ("x_algo", 4),
    ]


def test_what_is_broken_off_goes_on_to_the_same_table(designed, jobs, tmp_path, monkeypatch):
    undisturbed, _ = run_all(designed(arms=TWO, collect=["rounds"]), tmp_path / "one")

    def interrupted(job):
        if len(jobs) == 9:
            raise KeyboardInterrupt
        jobs.append(job)
        return carry_out(job)

    jobs.clear()
    monkeypatch.setattr(driver, "run_supervised", interrupted)
    monkeypatch.setattr(driver, "_MIN_QUEUED", 0)
    design = designed(arms=TWO, collect=["rounds"])
    jobs.extend([None] * 5)
    with pytest.raises(KeyboardInterrupt):
        run_all(design, tmp_path / "two")
    assert 0 < study_status(design, open_folder(design, tmp_path / "two")).done < 6
    jobs.clear()
    folder, _ = run_all(design, tmp_path / "two")
    assert 0 < len(jobs) < 6
    for table in ("runs", "rounds"):
        assert bytes_of(folder, table) == bytes_of(undisturbed, table)


def test_a_run_that_fails_takes_nobody_with_it_and_is_tried_again(designed, jobs, tmp_path, monkeypatch):
    broken = {2}

    def second_breaks(job):
        jobs.append(job)
        return Outcome(job.run, "killed", "by a signal") if job.config["seed"] in broken else carry_out(job)

    monkeypatch.setattr(driver, "run_supervised", second_breaks)
    design = designed()
    folder, progress = run_all(design, tmp_path)
    assert (progress.done, progress.failed) == (2, 1)
    runs = pd.read_parquet(folder.table("runs"))
    assert runs["status"].tolist() == ["done", "failed", "done"]
    assert runs["reason"].tolist() == ["", "by a signal", ""]
    assert runs["reshares"].isna().tolist() == [False, True, False]
    [(_, told, why)] = study_status(design, folder).failures
    assert (told, why) == ("all runs, seed 2", "killed: by a signal")
    jobs.clear()
    _, progress = run_all(design, tmp_path, retry=False)
    assert (jobs, progress.failed) == ([], 1)
    broken.clear()
    _, progress = run_all(design, tmp_path)
    assert ([job.config["seed"] for job in jobs], progress.failed, progress.done) == ([2], 0, 3)


def test_shards_share_the_runs_and_the_results(designed, jobs, tmp_path):
    design = designed(arms=TWO)
    planned = []
    for k in (1, 2):
        folder, progress = run_all(design, tmp_path, shard=Shard(k, 2))
        planned.append(progress.planned)
    assert planned == [4, 2]
    assert [(job.config["feed"]["mode"], job.config["seed"]) for job in jobs] == [
        (mode, seed) for seed in (1, 3, 2) for mode in ("chronological", "x_algo")
    ]
    assert sorted(file.name for file in folder.path.glob("journal*")) == [
        "journal-1-of-2.sqlite",
        "journal-2-of-2.sqlite",
    ]
    assert len(jobs) == 6
    whole, _ = run_all(design, tmp_path / "whole")
    assert bytes_of(folder) == bytes_of(whole)


def test_a_measure_more_is_taken_again_and_the_kept_run_stays(designed, jobs, tmp_path):
    folder, _ = run_all(designed(keep="tables", seeds=1), tmp_path)
    [kept] = folder.runs.iterdir()
    before = {file.name: file.stat().st_mtime_ns for file in kept.iterdir()}
    jobs.clear()
    run_all(designed(keep="tables", seeds=1, measures=["reshares", "likes"]), tmp_path)
    assert [job.keep for job in jobs] == ["measures"]
    assert {file.name: file.stat().st_mtime_ns for file in kept.iterdir()} == before
    assert pd.read_parquet(folder.table("runs"))[["reshares", "likes"]].notna().all(axis=None)
    facts = pd.read_parquet(folder.table("facts"))
    assert facts["folder"].tolist() == [f"runs/{kept.name}"]


def test_collected_rows_have_their_run_and_factors(designed, jobs, tmp_path):
    design = designed(vary={"agents.band": [0.02, 0.1]}, seeds=2, collect=["rounds", "transitions"])
    folder, _ = run_all(design, tmp_path)
    rounds = pd.read_parquet(folder.table("rounds"))
    assert list(rounds)[:5] == ["run", "arm", "seed", "agents.band", "round"]
    assert rounds.groupby(["agents.band", "seed"]).size().tolist() == [2] * 4
    assert pd.read_parquet(folder.table("transitions"))["trigger"].isin(["feed_ready"]).any()


def fails_after(calls, jobs):
    """Return what makes runs that ask an LLM so many times and fail."""

    def run(job):
        jobs.append(job)
        return Outcome(job.run, "raised", "no such luck", facts={"calls": calls})

    return run


def test_calls_of_runs_that_fail_count_and_they_are_not_tried_again_beyond_the_limit(
    designed, jobs, tmp_path, monkeypatch
):
    monkeypatch.setattr(driver, "run_supervised", fails_after(40, jobs))
    design, twice = designed(seeds=5, limits={"calls": 100}), Engine(workers=1, attempts=2)
    folder, progress = run_all(design, tmp_path, engine=twice)
    assert (len(jobs), progress.calls, progress.failed, progress.held_back) == (3, 120, 2, 3)
    facts = pd.read_parquet(folder.table("facts"))
    assert facts[["attempts", "calls"]].to_numpy().tolist() == [[2, 80], [1, 40]]
    _, progress = run_all(design, tmp_path, engine=twice)
    assert (len(jobs), progress.calls) == (3, 120)


def test_calls_of_a_run_that_was_killed_are_those_in_its_own_ledger(designed, jobs, tmp_path, monkeypatch):
    def killed(job):
        jobs.append(job)
        folder = Path(job.folder) / job.run
        folder.mkdir(parents=True)
        with Ledger(folder / "decisions.sqlite") as ledger:
            ledger.write([], [AskedRow(0, 0, agent, "k", "llm", attempts=2) for agent in range(3)])
        return Outcome(job.run, "timeout", "took too long", facts={"signal": "SIGKILL"})

    monkeypatch.setattr(driver, "run_supervised", killed)
    _, progress = run_all(designed(seeds=1, keep="tables"), tmp_path)
    assert (progress.calls, progress.failed) == (6, 1)


def test_runs_whose_folder_is_gone_are_made_again(designed, jobs, tmp_path):
    design = designed(seeds=2, keep="tables")
    folder, _ = run_all(design, tmp_path)
    gone, stays = (planned.run for planned in design.runs())
    shutil.rmtree(folder.runs / gone)
    assert study_status(design, folder).outdated == 1
    collect(design, folder)
    assert pd.read_parquet(folder.table("facts"))["folder"].tolist() == ["", f"runs/{stays}"]
    run_all(design, tmp_path)
    assert [job.run for job in jobs[2:]] == [gone]
    assert (folder.runs / gone / "manifest.json").is_file()


def test_tables_of_more_runs_than_are_done_now_are_kept_beside_the_new_ones(designed, jobs, tmp_path):
    folder, _ = run_all(designed(seeds=3), tmp_path)
    before = bytes_of(folder)
    (folder.path / "report.html").write_text("of three")
    fewer = designed(seeds=2)
    told = ["runs.before-1.parquet" in " ".join(collect_result(fewer, folder).notes) for _ in range(2)]
    assert told == [True, False]
    assert len(pd.read_parquet(folder.table("runs"))) == 2
    assert (folder.path / "runs.before-1.parquet").read_bytes() == before
    assert (folder.path / "report.before-1.html").read_text() == "of three"
    least = designed(seeds=1)
    [note] = collect(least, folder)
    assert note == "runs.parquet holds 1 measure, the earlier table 2; kept: runs.before-2.parquet"


def test_a_report_on_a_measure_that_was_edited_keeps_the_numbers_of_before(designed, jobs, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "edited_here.py").write_text("def one(run):\n    return 1.0\n")
    design = designed(measures=["edited_here:one"], seeds=2)
    folder, _ = run_all(design, tmp_path)
    before = bytes_of(folder)
    (tmp_path / "edited_here.py").write_text("def one(run):\n    return 2.0\n")
    result = collect_result(design, folder)
    assert result.status == "incomplete"
    assert any("2 finished runs without a measure" in note for note in result.notes)
    assert (folder.path / "runs.before-1.parquet").read_bytes() == before
    run_all(design, tmp_path)
    assert len(jobs) == 4
    assert study_status(design, folder).status == "done"


def test_shards_that_end_together_write_one_whole_table(designed, jobs, tmp_path):
    design = designed(seeds=2)
    folder, _ = run_all(design, tmp_path)
    before = bytes_of(folder)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(collect, design, folder) for _ in range(12)]:
            assert done.result() == ()
    assert bytes_of(folder) == before
    assert not [file for file in folder.path.iterdir() if file.name.startswith(".runs")]


def test_runs_that_are_none_of_the_studys_are_stale_and_stay(designed, jobs, tmp_path):
    run_all(designed(seeds=3), tmp_path)
    fewer = designed(seeds=2)
    assert study_status(fewer, open_folder(fewer, tmp_path)).stale.keys() == {"its seed is not in the study"}
    other = designed(seeds=3, set={"rounds": 1})
    folder, _ = run_all(other, tmp_path)
    status = study_status(other, folder)
    [(why, names)] = status.stale.items()
    assert (why, len(names)) == ("its condition is not in the study", 3)
    assert [note.startswith("stale: 3 runs") for note in status.notes] == [True]
    assert (status.done, len(jobs)) == (3, 6)
    run_all(designed(seeds=3), tmp_path)
    assert len(jobs) == 6


def test_equal_conditions_are_run_once_and_counted_twice(designed, jobs, tmp_path):
    design = designed(arms={"one": {}, "same": {"feed.mode": "chronological"}}, seeds=2)
    folder, _ = run_all(design, tmp_path)
    runs = pd.read_parquet(folder.table("runs"))
    assert (len(jobs), len(runs), runs["run"].nunique()) == (2, 4, 2)
    assert len(pd.read_parquet(folder.table("facts"))) == 2


def test_a_few_more_runs_than_workers_wait_unless_calls_are_limited(designed):
    alone, cluster = SimpleNamespace(), SimpleNamespace(runs_at_a_time=lambda: 24)
    design, limited = designed(), designed(limits={"calls": 9})
    asked = (
        (alone, Engine(workers=1)),
        (alone, Engine(workers=24)),
        (cluster, Engine("dask")),
        (cluster, Engine("dask", 2)),
    )
    assert [driver._max_submitted(pool, engine, design) for pool, engine in asked] == [5, 30, 30, 6]
    assert driver._max_submitted(alone, Engine(workers=3), limited) == 3
