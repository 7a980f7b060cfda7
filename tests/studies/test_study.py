import pandas as pd

from prism_mesa.studies.driver import Engine
from prism_mesa.studies.folder import open_folder
from prism_mesa.studies.study import plan_study

ARMS = {"a": {"feed.mode": "chronological"}, "b": {"feed.mode": "x_algo"}}


def test_a_pilot_has_pairs_for_each_thing_that_differs(designed, jobs, tmp_path):
    design = designed(arms=ARMS, vary={"agents.band": [i / 20 for i in range(10)]}, seeds=30)
    plan = plan_study(design, open_folder(design, tmp_path), Engine(workers=1))
    assert (plan.runs, plan.pilot, plan.done, len(jobs)) == (600, 16, 16, 16)
    of_arms = plan.widths[plan.widths["term"] == "arm"]
    assert of_arms["half_width"].gt(0).all()
    assert len(of_arms) == 1
    assert {job.config["feed"]["mode"] for job in jobs} == {"chronological", "x_algo"}
    assert len({job.config["agents"]["band"] for job in jobs}) == 7


def test_a_pilot_of_drawn_points_lies_all_over_the_design(designed, jobs, tmp_path):
    design = designed(vary={"agents.band": [0, 0.2], "agents.activity": [0.1, 0.9]}, design={"lhs": 40}, seeds=2)
    plan = plan_study(design, open_folder(design, tmp_path), Engine(workers=1))
    assert plan.pilot == len(jobs) == 16
    assert isinstance(plan.widths, pd.DataFrame)
