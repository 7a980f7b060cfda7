"""The examples do what their page says."""

import subprocess
import sys
from pathlib import Path

import forest_fire
import light_switch
import pytest
import shop
import sir

from prism_mesa import state_counts

HERE = Path(__file__).parent


def test_an_epidemic_reaches_most_people_and_ends_in_recovery():
    model = sir.Epidemic()
    model.run_for(200)
    counts = state_counts(model)
    assert counts["recovered"] > 400
    assert counts["infected"] == 0
    assert sum(counts.values()) == 500


def test_customers_are_asked_about_only_between_price_and_plenty_and_once_for_each_situation():
    day = shop.Shop()
    day.run_for(2)
    for customer in day.agents:
        if customer.budget < shop.PRICE:
            assert customer.state == "leaving"
        elif customer.needs_it:
            assert customer.state == "buying"
    assert 0 < day.reasoner.counts["llm"] <= 2 * 16
    assert state_counts(day)["browsing"] == 0
    day.reasoner.close()


def test_a_second_shop_with_the_same_ledger_asks_nobody(tmp_path):
    for asked in (True, False):
        day = shop.Shop(ledger=tmp_path / "shop.sqlite")
        day.run_for(2)
        assert (day.reasoner.counts["llm"] > 0) is asked
        day.reasoner.close()


def test_a_dense_forest_burns_and_a_thin_one_does_not():
    thin, dense = (
        1 - (forest_fire.burn(density) == forest_fire.TREE).sum() / (density * 1e4) for density in (0.4, 0.8)
    )
    assert thin < 0.15
    assert dense > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("example", [forest_fire, light_switch, shop, sir])
def test_each_example_runs_from_its_line_and_draws_its_figure(example, tmp_path):
    subprocess.run([sys.executable, HERE / f"{example.__name__}.py"], cwd=tmp_path, check=True, capture_output=True)
    [figure] = tmp_path.glob("*.png")
    assert figure.stat().st_size > 5_000
