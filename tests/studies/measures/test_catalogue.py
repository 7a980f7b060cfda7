"""The catalogue of measures: what it says holds of runs, a user's own measures, and what goes wrong with them."""

import sys
from math import inf, isnan, nan
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import entropy
from small_measured_runs import finished
from worlds import plain

from prism_mesa import measure
from prism_mesa.errors import ConfigError, RunError
from prism_mesa.runs.measures import gini
from prism_mesa.runs.social import run
from prism_mesa.runs.trust import unsigned
from prism_mesa.studies.measures.catalogue import (
    MEASURES,
    SUBJECTS,
    FinishedRun,
    Measure,
    compute_measures,
    find_measure,
)
from prism_mesa.studies.measures.finished import finished_run

ROUND_TABLES = {"transitions", "impressions", "engagements", "rounds", "ticks", "churn", "views"}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    values = {
        "agents.n": 120,
        "agents.activity": 0.8,
        "rounds": 6,
        "network.kind": "stochastic_block",
        "network.mean_degree": 8,
        "posts.seeded.count": 3,
    }
    return run(plain(values), out=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def own(monkeypatch):
    """Return what puts a function into a module of one's own, and the name of a measure that it is then."""
    module = ModuleType("measures_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def put(function, name="mine"):
        setattr(module, name, function)
        return f"measures_of_a_test:{name}"

    return put


def test_every_measure_has_a_name_of_its_own_and_says_what_it_is():
    listed = [one.name for measures in SUBJECTS.values() for one in measures]
    assert sorted(listed) == sorted(MEASURES)
    assert {"gini_impressions", "cascade_mean", "seeded_cascade_mean"} <= set(MEASURES)
    for one in MEASURES.values():
        assert one.name.isidentifier()
        assert one.low < one.high
        assert (one.unit == "share") <= ((one.low, one.high) == (0, 1))
        assert one.meaning
        assert not one.meaning.endswith(".")
        assert set(one.tables) <= ROUND_TABLES


def test_values_of_a_run_lie_in_their_ranges_and_few_are_not_defined(ended):
    found = measure(ended)
    assert list(found.index) == list(MEASURES)
    assert found.name == ended.run_dir.name
    not_defined = set(found.index[found.isna()])
    subjects = ("Coming and going", "Shapes of large cascades", "Timing")
    of_other_runs = {measure.name for subject in subjects for measure in SUBJECTS[subject]}
    rates = {f"post_{name}" for name in ("like_rate", "reshare_rate", "like_rate_median", "reshare_rate_median")}
    assert of_other_runs | rates | {"new_follows", "hours_r", "burstiness", "cascade_tail_10"} <= not_defined
    assert len(not_defined) < len(of_other_runs) + 22
    for name, value in found.dropna().items():
        assert MEASURES[name].low <= value <= MEASURES[name].high, name


@pytest.mark.slow
def test_every_measure_reads_no_other_tables_of_rounds_than_it_says(ended):
    whole, known = finished_run(ended), measure(ended)
    for name, one in MEASURES.items():
        allowed = {"posts", "cascades", "agents", *one.tables}

        def read(table, allowed=allowed):
            assert table in allowed
            return whole.table(table)

        value = compute_measures(FinishedRun(whole.config, whole.summary, read, whole.follows), [name])[name]
        assert value == pytest.approx(known[name], nan_ok=True)


def test_numbers_of_the_summary_are_those_of_the_tables(ended):
    posts, seen, agents = (ended.table(name) for name in ("posts", "impressions", "agents"))
    trees = ended.table("cascades")
    attention = np.bincount(posts["author"].to_numpy()[seen["root"]], minlength=len(agents))
    sizes = trees["size"][trees["kind"] == "post"]
    expected = {
        "gini_impressions": gini(attention),
        "cascade_mean": sizes.mean(),
        "cascade_never_reshared": (sizes == 1).mean(),
        "cascade_depth": trees["depth"][trees["kind"] == "post"].max(),
        "impressions": len(seen),
        "posts": (posts["kind"] == "post").sum(),
        "topic_entropy": entropy(seen["post"].map(posts["topic"]).value_counts(), base=2),
        "seeded_impressions": np.mean([(seen["root"] == post["post"]).sum() for post in ended.summary["seeded"]]),
    }
    assert measure(ended, list(expected)).to_dict() == pytest.approx(expected)


def test_who_follows_whom_is_made_again_as_it_was(ended):
    edges, agents = finished_run(ended).follows(), ended.table("agents")
    assert np.bincount(edges["src"], minlength=120).tolist() == agents["followers"].tolist()
    assert np.bincount(edges["dst"], minlength=120).tolist() == agents["followees"].tolist()


def test_a_table_is_read_once_for_all_measures_and_only_when_asked_for():
    whole, read = finished(), []

    def table(name):
        read.append(name)
        return whole.table(name)

    compute_measures(FinishedRun(whole.config, whole.summary, table, whole.follows), ["likes"])
    assert read == []
    names = ["exposure_authors", "topic_reach", "cascade_communities"]
    compute_measures(FinishedRun(whole.config, whole.summary, table, whole.follows), names)
    assert sorted(read) == ["agents", "impressions", "posts"]


def test_a_file_of_edges_that_a_foreign_folder_names_is_read_only_if_it_is_trusted(tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("src,dst\n1,2\n2,3\n3,1\n1,3\n", encoding="utf-8")
    with unsigned():
        foreign = run({"network.edges": str(edges), "rounds": 1}, out=tmp_path / "runs")
    assert measure(foreign, "gini_followers")["gini_followers"] == pytest.approx(1 / 6)
    with pytest.raises(RunError, match=r"^measures: follow_ei: .* network.edges=.* allow it with --trust"):
        measure(foreign, "follow_ei")
    assert -1 <= measure(foreign, "follow_ei", trust=True)["follow_ei"] <= 1


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gini_impresions", r"gini_impresions: .*Did you mean 'gini_impressions'\?$"),
        ("xyz", "xyz: no such measure"),
        (":f", "write your own as module:function"),
        ("nowhere_at_all:f", "cannot import 'nowhere_at_all'"),
        ("broken_measures:f", "importing 'broken_measures' raised ZeroDivisionError"),
        ("measures_of_a_test:mime", r"'mime'. Did you mean 'mine'\?$"),
        ("measures_of_a_test:number", "must be a function of a finished run, not 3$"),
    ],
)
def test_a_measure_that_is_not_there_is_refused_in_one_line(name, fault, own, tmp_path, monkeypatch):
    (tmp_path / "broken_measures.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    own(len)
    own(3, "number")
    with pytest.raises(ConfigError, match=fault) as error:
        find_measure(name)
    assert str(error.value).startswith(f"measures: {name}: ")


def test_a_function_of_ones_own_sees_the_whole_run(ended, tmp_path, monkeypatch):
    (tmp_path / "my_own_measures.py").write_text(
        "def words(run):\n    texts = run.table('posts')['text']\n"
        "    return texts.str.split().str.len().mean() / run.config.agents.n * len(run.follows())\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = measure(ended, ["my_own_measures:words", "likes"])
    words = ended.table("posts")["text"].str.split().str.len().mean()
    follows = int(ended.table("agents")["followers"].sum())
    assert found["my_own_measures:words"] == pytest.approx(words / 120 * follows)
    assert find_measure("my_own_measures:words").tables is None


def test_a_measure_object_of_ones_own_keeps_what_it_says(own):
    name = own(Measure("x", lambda run: 7, "seven", "sevens", tables=("ticks",)))
    assert (find_measure(name).name, find_measure(name).tables) == (name, ("ticks",))
    assert compute_measures(finished(), [name]) == {name: 7.0}


@pytest.mark.parametrize("number", [2, 2.0, np.int64(2), np.float32(2), nan, np.float64("nan")])
def test_any_kind_of_number_is_one(own, number):
    found = compute_measures(finished(), [own(lambda run: number)])["measures_of_a_test:mine"]
    assert type(found) is float
    assert found == 2 or isnan(found)


@pytest.mark.parametrize("thing", [None, True, np.True_, "2", [2], inf, -np.float64(inf), np.array([1, 2]), KeyError()])
def test_what_is_no_number_or_raises_is_an_error_that_names_the_measure(own, thing):
    def compute(run):
        if isinstance(thing, Exception):
            raise thing
        return thing

    name = own(compute)
    fault = "raised KeyError" if isinstance(thing, KeyError) else "returned "
    with pytest.raises(RunError, match=f"^measures: {name}: {fault}") as raised:
        compute_measures(finished(), [name])
    assert raised.value.__cause__ is (thing if isinstance(thing, KeyError) else None)
