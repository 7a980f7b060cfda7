"""What the page of nations says of each quarter, and what it says of a run that is damaged."""

import json
import shutil

import pytest

from prism_mesa.errors import DataError
from prism_mesa.runs import config, economy
from prism_mesa.runs.run_files import read_table
from prism_mesa.view.playback.nations import quarter_policies, read_nations


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a run of nations; only to be read."""
    settings = config.read_config(
        config.EconomyConfig, {"name": "nations", "rounds": 3, "economy": {"policy": "taylor"}}
    )
    return economy.run_economy(settings, out=tmp_path_factory.mktemp("runs")).run_dir


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def test_each_nation_has_its_policy_its_verdict_and_its_indicators_before_and_after(made):
    tables, quarter = read_nations(made), 1
    indicators, decisions = read_table(made, "indicators"), read_table(made, "decisions")
    policies = quarter_policies(tables, quarter)
    assert [policy["nation"] for policy in policies] == read_table(made, "nations")["name"].tolist()
    for policy in policies:
        decision = decisions.query("round == @quarter and nation == @policy['nation']").iloc[0]
        assert (policy["wanted"], policy["outcome"]) == (decision["action"], decision["outcome"])
        rate = next(row for row in policy["indicators"] if row["name"] == "policy rate")
        rates = indicators[indicators["nation"].astype(str) == policy["nation"]].set_index("round")["policy_rate"]
        assert (rate["before"], rate["after"]) == (f"{rates[0]:.2f}", f"{rates[1]:.2f}")
        assert json.loads(json.dumps(policy, allow_nan=False)) == policy


def test_a_nation_without_a_decision_says_so(copied):
    read_table(copied, "decisions")[:0].to_parquet(copied / "decisions.parquet")
    [first, *_] = quarter_policies(read_nations(copied), 1)
    assert (first["wanted"], first["verdict"], first["outcome"]) == ("nothing is recorded", "", "")


@pytest.mark.parametrize(
    ("table", "column"),
    [("indicators", "output_gap"), ("verdicts", "reason"), ("decisions", "nation")],
)
def test_a_column_that_is_missing_is_said_before_anything_of_nations_is_drawn(copied, table, column):
    read_table(copied, table).drop(columns=column).to_parquet(copied / f"{table}.parquet")
    with pytest.raises(DataError, match=f"{table}.parquet: there is no column '{column}'"):
        read_nations(copied)


def test_what_nations_said_stays_text_on_one_line(copied):
    decisions = read_table(copied, "decisions")
    decisions["action"] = "<img src=x onerror=alert(1)>\nnothing\x1b[31m"
    decisions.to_parquet(copied / "decisions.parquet")
    assert quarter_policies(read_nations(copied), 0)[0]["wanted"] == "<img src=x onerror=alert(1)> nothing[31m"
