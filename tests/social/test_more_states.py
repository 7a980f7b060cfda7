"""A ninth state of the platform follows the rules of the state that it resembles, on rows and columns alike."""

import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from own_charts import doom
from random_worlds import decider
from worlds import plain, ran, small

from prism_mesa import compare, measure, resume, run
from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.params import nest_keys
from prism_mesa.reasoner.distilled import DistilledReasoner, read_distilled
from prism_mesa.reasoner.prompt import build_reasoner_prompt
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.params import SocialParams
from prism_mesa.statechart import ANY, AgentState, F, Statechart, Transition, draw_chart, rate, when
from prism_mesa.studies.design.study_design import design_study
from prism_mesa.studies.params import study_params
from prism_mesa.view.comparison.report import comparison_figure

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
LIVELY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}


def replaced(state, name):
    """Return the default chart with a further state in the place of a state."""
    chart = build_chart(more_states={name: state})
    parts = []
    for t in build_chart().transitions:
        source, target = (name if part is state else part for part in (t.source, t.target))
        parts.append(Transition(t.trigger, source, target, t.guard))
    states = [part for part in chart.ordered_states if part is not state]
    timeouts = {name if state is AgentState.RESTING else AgentState.RESTING: 2}
    return Statechart(states, parts, IDLE, timeouts=timeouts, invariant=chart.invariant, name=name)


@pytest.fixture(scope="module")
def models():
    models = {scheduler: small(chart=doom, scheduler=scheduler, **LIVELY) for scheduler in ("columns", "mesa")}
    return {scheduler: ran(model, 4) for scheduler, model in models.items()}


def test_rows_and_columns_agree_and_the_state_has_shares_by_round_and_tick(models):
    columns, rows = models.values()
    assert columns.round_row == rows.round_row
    assert columns.round_row["share_doomscrolling"] > 0
    for model in models.values():
        ticks = model.prism_datacollector.get_table_dataframe("ticks")
        assert ticks["doomscrolling"].sum() > 0
        assert (ticks.drop(columns=["round", "tick"]).sum(axis=1) == len(model.population)).all()
        assert [state.value for state in model.state_counts()][8:] == ["doomscrolling"]
        assert sum(v for name, v in model.round_row.items() if name.startswith("share_")) == pytest.approx(1)


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
@pytest.mark.parametrize("state", [SCROLLING, EVALUATING, COMPOSING, AgentState.ENGAGING_LIKE, AgentState.RESTING])
def test_a_state_in_the_place_of_the_one_that_it_resembles_changes_nothing_else(state, scheduler):
    params = {"scheduler": scheduler, "feed_glances": 1, **LIVELY}
    default, other = (ran(small(chart=chart, **params), 3) for chart in (build_chart(), replaced(state, "other")))
    renamed = {"share_other": f"share_{state.value}"}
    row = {renamed.get(name, name): value for name, value in other.round_row.items() if name not in renamed.values()}
    assert row == default.round_row
    assert other.totals == default.totals


def test_an_agent_is_set_to_the_state_and_tells_it():
    model, state = small(chart=doom), doom.members[8]
    agent = model.agent(0)
    agent.state = state
    assert agent.state is state
    assert model.state_counts()[state] == 1
    assert "doomscrolling" in agent._repr_html_()
    with pytest.raises(ChartError, match="doomscrolling"):
        small().agent(0).state = state
    with pytest.raises(ChartError, match="other states"):
        small().chart = doom


def test_the_chart_pickles_and_its_state_has_a_colour_and_a_place():
    [*_, state] = pickle.loads(pickle.dumps(doom)).members
    assert state is doom.members[8]
    assert state.color not in {member.color for member in AgentState}
    assert "doomscrolling" in [text.get_text() for text in draw_chart(doom).axes[0].texts]
    assert "doomscrolling" in build_reasoner_prompt("Ada", (), "", EVALUATING, "decides", [SCROLLING, state])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run twice, the second broken off and resumed."""
    out = tmp_path_factory.mktemp("runs")
    config = plain({"agents.n": 60, "agents.activity": 1.0, "rounds": 5, "checkpoint_every": 2})

    def stop(done):
        if done == 3:
            raise KeyboardInterrupt

    whole = run(config, out=out / "whole", chart=doom, pictures=False)
    with pytest.raises(KeyboardInterrupt):
        run(config, out=out / "stopped", chart=doom, pictures=False, on_round=stop)
    [folder] = (out / "stopped").iterdir()
    return whole, resume(folder, chart=doom, pictures=False)


def test_two_runs_are_equal_byte_by_byte_and_one_is_resumed(runs):
    first, second = (result.run_dir for result in runs)
    tables = sorted(file.relative_to(first) for file in first.rglob("*.parquet"))
    assert tables
    for table in tables:
        assert (first / table).read_bytes() == (second / table).read_bytes(), table
    assert pd.read_parquet(first / "rounds.parquet")["share_doomscrolling"].iloc[-1] > 0
    assert runs[0].summary["state_shares"]["doomscrolling"] > 0
    assert set(pd.read_parquet(first / "transitions.parquet")["to_state"]) >= {"doomscrolling", "scrolling"}


def test_pictures_and_the_page_show_the_state(runs, models):

    from prism_mesa.view.page.live import LiveSource
    from prism_mesa.view.page.live_model import PageModel
    from prism_mesa.view.playback.recorded import RecordedSource
    from prism_mesa.view.playback.tables import PlaybackTables
    from prism_mesa.view.plots.chart import chart_figure
    from prism_mesa.view.plots.states import states_figure
    from prism_mesa.view.summaries import run_html

    for source in (runs[0].run_dir, models["columns"]):
        labels = [text.get_text() for axes in states_figure(source).axes for text in axes.get_legend().get_texts()]
        assert labels.count("doomscrolling") == 1
        assert any("doomscrolling" in text.get_text() for text in chart_figure(source).axes[0].texts)
        states_figure(source, state="doomscrolling")
    assert "doomscrolling" in run_html(runs[0])
    page = RecordedSource(PlaybackTables(runs[0].run_dir), 4)
    assert "share_doomscrolling" in page.round_columns()
    config = plain({"agents.n": 40, "agents.activity": 1.0, "statechart.chart": "own_charts:doom"})
    live = LiveSource(ran(PageModel(SocialParams.model_validate(nest_keys(config))), 4))
    for shown in (page, live):
        states = shown.states()
        assert 8 in states
        row = int(np.flatnonzero(states == 8)[0])
        assert "doomscrolling" in [move.target.value for move in shown.agent(row).moves]


def run_with(*transitions, **options):
    small(chart=build_chart(transitions=transitions, **options))


@pytest.mark.parametrize(
    ("does", "names"),
    [
        (lambda: build_chart(more_states={"sleeping": IDLE}), "more_states.*'sleeping'.*idle"),
        (lambda: build_chart(more_states={"scrolling": SCROLLING}), "more_states: 'scrolling'"),
        (lambda: build_chart(more_states={"lurking": "lurking"}), "more_states: 'lurking'"),
        (lambda: build_chart(more_states={f"s{i}": SCROLLING for i in range(9)}), "at most 8"),
        (lambda: run_with(Transition(rate(0.1), SCROLLING, IDLE)), r"rate\(0\.1\)"),
        (lambda: run_with(Transition(when(F.agent.n_unread > 3), SCROLLING, IDLE)), "when"),
        (lambda: run_with(*(Transition(f"t{i}", ANY, IDLE) for i in range(300))), "at most 256"),
    ],
)
def test_what_the_platform_lacks_is_refused_by_name(does, names):
    with pytest.raises(ChartError, match=names):
        does()


@pytest.mark.parametrize("name", ["history", "on_enter", "on_exit"])
def test_history_entry_and_exit_are_refused_by_name(name):
    parts = list(build_chart().declared)
    value = ["p"] if name == "history" else {SCROLLING: lambda agent, post: None}
    chart = Statechart(AgentState, parts, IDLE, nested={"p": [SCROLLING, EVALUATING]}, **{name: value})
    with pytest.raises(ChartError, match=name):
        small(chart=chart)


def test_measures_and_comparisons_have_the_states_of_the_runs_and_name_those_left_out(tmp_path):
    config = plain({"agents.n": 60, "agents.activity": 1.0, "rounds": 3})
    other = run(config, out=tmp_path, pictures=False)
    doomed = run(config | {"statechart.chart": "own_charts:doom"}, out=tmp_path, pictures=False)
    name, share = "share_doomscrolling", doomed.summary["state_shares"]["doomscrolling"]
    assert measure(doomed)[name] == measure(doomed, name)[name] == share > 0
    assert name not in measure(other)
    with pytest.raises(ConfigError, match="doomscrolling"):
        measure(other, name)
    copied = shutil.copytree(doomed.run_dir, tmp_path / "copy")
    same, mixed = compare(doomed, copied), compare(doomed, other)
    row = same.measures.set_index("measure").loc[name]
    assert (row["base"], row["unit"], row["equal"]) == (share, "share", True)
    assert name in set(same.rounds["column"])
    assert "share doomscrolling" in [axes.get_title(loc="left") for axes in comparison_figure(same).axes]
    assert name not in {*mixed.measures["measure"], *mixed.rounds["column"]}
    assert len([note for note in mixed.notes if "doomscrolling" in note]) == 1
    assert not any("doomscrolling" in note for note in same.notes)


def test_a_study_may_measure_a_state_of_one_of_its_charts():
    arms = {"plain": {}, "doom": {"statechart.chart": "own_charts:doom"}}
    values = {"question": "Why?", "arms": arms, "measures": ["share_doomscrolling"]}
    assert design_study(study_params(values, "here"), "doom", "here").params.measures == ["share_doomscrolling"]
    values["measures"] = ["share_doomscroling"]
    with pytest.raises(ConfigError, match="share_doomscrolling"):
        design_study(study_params(values, "here"), "doom", "here")


def test_a_distilled_model_learns_choices_between_more_states(tmp_path):
    state = doom.members[8]
    model = decider(doom, 0).model
    options = [[COMPOSING.value, state.value]]
    choices = [choice.model_copy(update={"options": o}) for choice, o in zip(model.choices, options, strict=False)]
    (tmp_path / "m.json").write_text(model.model_copy(update={"choices": choices}).text())
    reasoner = DistilledReasoner(read_distilled(tmp_path / "m.json")[0])
    assert [reasoner.source_for(own) for own in ((COMPOSING, state), (COMPOSING, SCROLLING))] == ["distilled", "rule"]
