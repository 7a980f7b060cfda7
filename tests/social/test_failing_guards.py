"""Guards that raise show in Python and end a run that they spoil; fields that nobody has are bad input."""

import warnings

import own_charts
import pytest
from worlds import PLAIN_FILE, plain, small

from prism_mesa.errors import ChartError, PrismWarning
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import social_chart
from prism_mesa.statechart import AgentState, F, Statechart, Transition

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
RESTING = AgentState.RESTING
LIVELY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}
BUSY = {"agents": {"n": 40, "activity": 0.8}, "network": {"mean_degree": 6}, "rounds": 3, "ticks_per_round": 8}


def breaks(agent, post):
    raise ZeroDivisionError("no ground")


def breaks_late(agent, post):
    if agent.model.round >= 2:
        raise LookupError("no opinion any more")
    return False


def with_guards(*guards, trigger="feed_ready", source=IDLE, target=RESTING, **options):
    """Return the default chart with more transitions, one for each guard."""
    more = [Transition(trigger, source, target, guard=guard) for guard in guards]
    return Statechart(AgentState, [*social_chart.transitions, *more], IDLE, timeouts={RESTING: 2}, **options)


def caught(do):
    """Return the warnings of PRISM that something gives, and what comes of it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = do()
    return [str(warning.message) for warning in found if issubclass(warning.category, PrismWarning)], result


# In Python


def stepped(model):
    for _ in range(3):
        model.step()
    model.close()


WAYS = {
    "step": stepped,
    "run_for": lambda model: (model.run_for(3), model.close()),
    "run_until": lambda model: (model.run_until(3), model.close()),
    "run_model": lambda model: (model.run_model(), model.close()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_that_raises_is_warned_of_once_with_its_count(way):
    model = small(chart=with_guards(breaks), rounds=3, **LIVELY)
    [said], _ = caught(lambda: WAYS[way](model))
    times = "30" if way == "step" else "90"
    assert f"idle --feed_ready--> resting [breaks()] raised each of the {times} times it was asked" in said
    assert "(ZeroDivisionError: no ground)" in said
    assert model.chart.guard_errors.total() == 90


@pytest.mark.parametrize("way", WAYS)
def test_each_guard_has_a_warning_of_its_own_also_one_that_begins_to_fail_later(way):
    model = small(chart=with_guards(breaks, breaks_late), rounds=3, **LIVELY)
    said, _ = caught(lambda: WAYS[way](model))
    assert len(said) == 2
    assert "[breaks()]" in said[0]
    assert "[breaks_late()] raised 30 times (LookupError: no opinion any more)" in said[1]


def test_a_warning_points_at_the_line_that_ran_the_rounds():
    model = small(chart=with_guards(breaks), **LIVELY)
    with pytest.warns(PrismWarning, match="breaks") as found:
        model.run_for(1)
    assert found[0].filename == __file__


# A run


def run_with(chart, tmp_path, **more):
    return run(plain(BUSY | {"statechart": {"chart": f"own_charts:{chart}"}} | more), out=tmp_path)


@pytest.mark.parametrize(
    ("chart", "error"),
    [("hopeless", "LookupError: no opinion at all"), ("divided", "ZeroDivisionError: division by zero")],
)
def test_a_guard_that_raises_every_time_ends_the_run_as_failed_with_its_tables(tmp_path, chart, error):
    said, result = caught(lambda: run_with(chart, tmp_path))
    assert (result.status, len(said)) == ("failed", 1)
    manifest = read_manifest(result.run_dir)
    assert manifest["status"] == "failed"
    [times] = result.summary["guard_errors"].values()
    assert f"raised each of the {times} times it was asked ({error})" in manifest["error"]
    assert manifest["error"].startswith("the guard of evaluating --decides--> composing [")
    assert read_table(result.run_dir, "rounds")["round"].tolist() == [0, 1, 2]
    assert f"raised each of the {times} times" in said[0]


@pytest.mark.slow
def test_the_command_line_says_it_in_its_summary_only(prism, tmp_path):
    small_run = (
        PLAIN_FILE,
        "agents.n=40",
        "agents.activity=0.8",
        "network.mean_degree=6",
        "rounds=2",
        "reasoner.kind=rule",
    )
    code, out, err = prism("run", *small_run, "statechart.chart=own_charts:hopeless")
    assert code == 1
    assert out.count("no opinion at all") == 1
    assert "Warning" not in err
    assert err.strip().splitlines()[-1].startswith("prism: ")
    assert "the run failed: the guard of evaluating --decides--> composing [_always_breaks()] raised each of the" in err


# Fields that nobody has


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "chart"])
@pytest.mark.parametrize(
    ("chart", "message"),
    [
        ("misspelt", "no post has a field 'post.velocty'. Did you mean 'post.velocity'?"),
        ("tired", "no agent has a field 'agent.fatigue'."),
    ],
)
def test_a_guard_on_a_field_that_nobody_has_is_bad_input(prism, tmp_path, monkeypatch, command, chart, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = prism(command, f"statechart.chart=own_charts:{chart}", "agents.n=30", "reasoner.kind=rule")
    assert code == 2
    assert err.strip().splitlines()[-1].startswith(f"prism: chart {chart}: evaluating --decides--> composing [")
    assert message in err
    if command == "run":
        assert not (tmp_path / "results").exists()


def test_a_model_refuses_a_field_that_no_agent_has_when_its_first_round_opens():
    model = small(chart=own_charts.deciding_by(F.agent.openess > 3, "open"))
    with pytest.raises(ChartError, match=r"no agent has a field 'agent.openess'\. Did you mean 'agent.openness'\?"):
        model.step()
