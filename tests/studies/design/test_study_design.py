import pytest
import yaml
from worlds import plain

from prism_mesa.errors import BadInputError
from prism_mesa.studies.design.models import check_models
from prism_mesa.studies.design.study_design import design_study, override_text
from prism_mesa.studies.params import study_params

SMALL = {"question": "Does it?", "base": plain({"agents.n": 20, "rounds": 2, "network.mean_degree": 5}), "seeds": 2}
TWO = {"chronological": {"feed.mode": "chronological"}, "ranked": {"feed": {"mode": "x_algo"}}}


def design_of(where="mine.yaml", **values):
    return design_study(study_params({**SMALL, "measures": ["reshares"], **values}, where), "mine", where)


def refused(**values):
    with pytest.raises(BadInputError) as error:
        check_models(design_of(**values))
    said = str(error.value)
    assert said.startswith("mine.yaml: ")
    assert "\n" not in said
    return said


def test_runs_are_arms_by_points_by_seeds():
    design = design_of(arms=TWO, vary={"agents.band": [0.02, 0.1]}, seeds=[4, 9])
    found = [(run.condition.arm, run.condition.point, run.seed) for run in design.runs()]
    assert found == [(arm, (band,), seed) for arm in TWO for band in (0.02, 0.1) for seed in (4, 9)]
    assert design.n_runs == len({run.run for run in design.runs()}) == 8
    assert sorted(run.run for run in design.runs_by_seed()) == sorted(run.run for run in design.runs())
    assert [run.seed for run in design.runs_by_seed()] == [4] * 4 + [9] * 4


def test_each_run_has_the_configuration_of_its_arm_point_and_seed():
    design = design_of(arms=TWO, vary={"agents.band": [0.02, 0.1]}, set={"rounds": 3})
    config = design.config(list(design.runs())[-1])
    assert (config.feed.mode, config.agents.band, config.rounds, config.agents.n) == ("x_algo", 0.1, 3, 20)
    assert config.seed == 2


def test_a_mapping_of_llms_is_one_value_in_a_base_set_arms_and_levels():
    base = SMALL["base"] | {"reasoner.model": {"x": 1}, "reasoner.kind": "ollama"}
    arms = {
        "as_set": {},
        "nested": {"reasoner": {"model": {"c": 1}}},
        "dotted": {"reasoner.model": {"d.1:4b": 0.5, "e": 0.5}},
    }
    design = design_of(base=base, set={"reasoner.model": {"a": 1, "b": 3}}, arms=arms, seeds=1)
    found = [design.config(run).reasoner.model for run in design.runs()]
    assert found == [{"a": 1, "b": 3}, {"c": 1}, {"d.1:4b": 0.5, "e": 0.5}]
    levels = [{"a": 1, "b": 3}, {"a": 3, "b": 1}]
    design = design_of(base=base, vary={"reasoner.model": levels}, seeds=1)
    assert [design.config(run).reasoner.model for run in design.runs()] == levels


@pytest.mark.parametrize("key", ["attributes.leaning", "attributes"])
def test_attributes_are_declared_for_all_arms_and_one_may_differ_in_them(key):
    own = {"of": "agent", "range": [-1, 1]}
    declared = {key: own if "." in key else {"leaning": own}}
    arms = {"wide": {}, "narrow": {"attributes.leaning": {"mean": 0, "sd": 0.1}}}
    design = design_of(set=declared, arms=arms, measures=["follow_ei@leaning"])
    found = [design.config(run).attributes["leaning"] for run in design.runs()]
    assert [(one.range, one.sd) for one in found] == [((-1, 1), None)] * 2 + [((-1, 1), 0.1)] * 2
    assert "attributes.leaning.rang: no such key" in refused(set={"attributes.leaning": {"of": "agent", "rang": 1}})


def test_arms_are_paired_unless_that_is_switched_off():
    paired, apart = design_of(arms=TWO), design_of(arms=TWO, paired=False)
    assert [run.seed for run in paired.runs()] == [1, 2, 1, 2]
    assert len({run.seed for run in apart.runs()}) == 4
    assert [run.seed for run in apart.runs()] == [run.seed for run in design_of(arms=TWO, paired=False).runs()]


def test_another_arm_or_seed_leaves_the_names_of_the_other_runs():
    before = {run.run for run in design_of(arms=TWO).runs()}
    more = {run.run for run in design_of(arms={"random": {"feed.mode": "random"}, **TWO}, seeds=5).runs()}
    assert before < more


def test_conditions_that_are_the_same_share_their_runs():
    design = design_of(arms={"one": {}, "same": {"feed.mode": "chronological"}, "ranked": {"feed.mode": "x_algo"}})
    assert len({run.run for run in design.runs()}) == 4
    [note] = [note for note in design.notes if "share their runs" in note]
    assert note.endswith(": one = same")


def test_what_is_typed_makes_a_run_again():
    design = design_of(arms=TWO, vary={"agents.band": [0.02, 0.1]})
    assert override_text(list(design.runs())[-1], design) == "feed.mode=x_algo agents.band=0.1 seed=2"


def test_who_decides_is_settled_before_anything_runs(monkeypatch):
    from prism_mesa.reasoner import RuleReasoner
    from prism_mesa.studies.design import study_design

    asked = []

    def only_rule(params):
        asked.append(params.kind)
        return RuleReasoner(params.rule)

    monkeypatch.setattr(study_design, "make_reasoner", only_rule)
    design = design_of(arms=TWO, set={"reasoner.kind": "auto"})
    assert {design.config(run).reasoner.kind for run in design.runs()} == {"rule"}
    assert asked == ["auto"]


def test_each_arm_and_level_is_looked_at_before_anything_runs():
    arms = {f"n{n}": {"agents.n": n} for n in range(20, 40)}
    bad = {"bad": {"agents.n": 5, "network.kind": "stochastic_block", "network.blocks": 9}}
    assert "bad: network.blocks: 9" in refused(arms=arms | bad)


def test_files_are_named_by_their_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n2,3\n")
    design = design_of(arms={"own": {"network.edges": "e.csv"}, "drawn": {}})
    own, drawn = design.runs_by_seed().__next__(), next(run for run in design.runs() if run.condition.arm == "drawn")
    assert design.config(own).network.edges == str(tmp_path / "e.csv")
    assert f"network.edges={tmp_path / 'e.csv'} " in override_text(own, design)
    assert "network.edges" not in override_text(drawn, design)


def test_files_are_looked_for_beside_the_study_too_and_in_the_home_folder(tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    for name, text in (("e.csv", "src,dst\n1,2\n2,1\n"), ("p.csv", "text,author\nhi,1\n"), ("a.csv", "agent\n1\n")):
        (tmp_path / "study" / name).write_text(text)
    (tmp_path / "base.yaml").write_text(yaml.safe_dump({"rounds": 2}))
    (tmp_path / "study" / "points.csv").write_text("agents.band\n0.1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    files = {"network.edges": "e.csv", "posts.file": "p.csv", "agents.profiles": "~/study/a.csv"}
    where = str(tmp_path / "study" / "mine.yaml")
    design = design_of(where, base="~/base.yaml", set=files, design="points.csv", measures=["likes"])
    config = design.config(next(design.runs()))
    assert [config.network.edges, config.posts.file, config.agents.profiles] == [
        str(tmp_path / "study" / name) for name in ("e.csv", "p.csv", "a.csv")
    ]
    assert (config.rounds, config.agents.band) == (2, 0.1)
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n")
    assert design_of(where, base={}, set={"network.edges": "e.csv"}).base.network.edges == str(tmp_path / "e.csv")


@pytest.mark.parametrize("columns", [{"files.columns": {"src": "who"}}, {"files": {"columns": {"src": "who"}}}])
def test_a_study_says_what_its_files_call_their_columns(tmp_path, columns):
    design = design_of(str(tmp_path / "mine.yaml"), base={}, set=columns)
    assert design.base.files.columns == {"src": "who"}


def test_what_has_no_effect_is_noted_with_its_condition():
    design = design_of(arms={"plain": {}, "idle": {"feed.x_algo.weight_like": 3}})
    [note] = [note for note in check_models(design) if "weight_like" in note]
    assert note.startswith("idle: feed.x_algo.weight_like: no effect")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"arms": {"ranked": {"feed.mod": "x_algo"}}}, "arms.ranked: feed.mod: "),
        ({"arms": {"ranked": {"feed.mode": "xalgo"}}}, "arms.ranked: feed.mode: "),
        ({"vary": {"agents.band": [0.1, 5]}}, "agents.band=5: agents.band: "),
        ({"set": {"agents.n": "many"}}, "set: agents.n: "),
        ({"base": {"agents.m": 5}}, "base: agents.m: "),
        ({"base": {"economy": {"policy": "taylor"}}}, "base is a configuration of nations"),
        ({"base": "no-such-base.yaml"}, "base: no-such-base.yaml: "),
        ({"measures": ["resharse"]}, "measures: resharse: no such measure"),
    ],
)
def test_what_cannot_run_is_said_before_anything_runs(values, said):
    assert said in refused(**values)
