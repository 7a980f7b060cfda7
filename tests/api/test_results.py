"""What a run and a study show of themselves: `.plot`, and what figures take."""

import pytest
from drawn_runs import kept_run, rounds_table
from worlds import plain, small

from prism_mesa import RunResult, Study, open_run, run
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.view.plots.sources import single_run, to_groups
from prism_mesa.view.plots.states import states_figure
from prism_mesa.view.plots.style import NARROW, figure_caption


def lines(figure):
    return [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]


@pytest.mark.slow
def test_a_run_draws_its_figures_whoever_returned_it(tmp_path):
    world = plain({"agents": {"n": 40}, "network": {"mean_degree": 6}, "rounds": 12, "ticks_per_round": 6})
    made = run(world, out=tmp_path, pictures=False)
    for result in (made, open_run(made)):
        assert isinstance(result, RunResult)
        names = (
            "cascade_tree, cascades, chart, engagement, homophily, lorenz, network, opinions, oracle, states, timeline"
        )
        assert repr(result.plot) == f"<figures: {names}>"
    for draw in (made.plot.states, made.plot.chart, made.plot.cascades, made.plot.cascade_tree, made.plot.engagement):
        figure = draw(width=NARROW)
        assert figure.get_figwidth() == pytest.approx(NARROW / 2.54)
    with pytest.raises(ConfigError, match=r"width: give centimetres from 5 to 100 \(8.5, 17\), not 1"):
        made.plot.lorenz(width=1)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [{"keep": "tables"}, {"keep": "measures", "collect": ["rounds", "cascades"]}])
def test_a_study_has_a_line_for_each_condition_with_a_band_over_its_seeds(tmp_path, keep):
    arms = {"chronological": {"feed.mode": "chronological"}, "random": {"feed.mode": "random"}}
    base = plain({"agents": {"n": 40}, "network": {"mean_degree": 6}, "rounds": 3, "ticks_per_round": 6})
    study = Study(question="?", base=base, arms=arms, seeds=2, measures=["reshares"], out=tmp_path, **keep)
    result = study.run(workers=1, report=False)
    assert [line.get_label() for line in lines(result.plot.engagement())] == list(arms)
    assert "n = 2 seeds" in figure_caption(result.plot.cascades())
    if keep["keep"] == "measures":
        with pytest.raises(DataError, match="no table 'posts' is kept: `keep: tables`"):
            result.plot.engagement(per="post")
    with pytest.raises(DataError, match=r"is the folder of a study: give its result, Study\(\.\.\.\)\.report\(\)"):
        states_figure(result.study_dir)


def test_runs_of_a_group_differ_in_their_seed_only(tmp_path):
    table = rounds_table(2)
    same = [kept_run(tmp_path / str(seed), seed=seed, rounds=table) for seed in (1, 2)]
    assert [(group.label, len(group.runs)) for group in to_groups({"both": same, "one": same[0]})] == [
        ("both", 2),
        ("one", 1),
    ]
    other = kept_run(tmp_path / "other", seed=3, rounds=table, settings={"feed": {"mode": "random"}})
    with pytest.raises(DataError, match=r"1 and other differ in feed.mode, not only in their seed: give them by label"):
        to_groups([*same, other])
    again = kept_run(tmp_path / "again", seed=2, rounds=table)
    with pytest.raises(DataError, match=r"2 and again have the same seed, 2: give one of them"):
        to_groups([*same, again])
    with pytest.raises(DataError, match="2 runs given: this figure shows one"):
        single_run(same)


def test_what_cannot_be_drawn_is_said_in_one_line(tmp_path):
    for given, why in (
        (3, r"give a run, a model, a study's result, or several by label, not 3"),
        ([], r"no run was given"),
        ({}, r"no run was given"),
        (tmp_path / "nothing", r"no run there"),
        ({str(i): small() for i in range(8)}, r"8 groups of runs .*: a figure shows at most 7"),
        ([small(rng=1), 3], r"give a RunResult or the folder of a run, not 3"),
    ):
        with pytest.raises(DataError, match=why) as fault:
            states_figure(given)
        assert "\n" not in str(fault.value)
    with pytest.raises(ConfigError, match="ax: give a matplotlib Axes, not 'axes'"):
        states_figure(small(), ax="axes")
    with pytest.raises(DataError, match="table 'rounds' has no rows: there is nothing to draw"):
        states_figure(small())
