"""A reasoner for agents of your own models: its words, its ledger, and what it refuses."""

import asyncio
from enum import Enum
from types import SimpleNamespace

import pytest

from prism_mesa import Reasoner, RuleReasoner, Statechart, Transition
from prism_mesa.errors import ChartError, ConfigError


class Shop(Enum):
    BROWSING = "browsing"
    BUYING = "buying"
    LEAVING = "leaving"


OPTIONS = (Shop.BUYING, Shop.LEAVING)
ADA = SimpleNamespace(unique_id=4, name="Ada", traits="frugal", budget=3)


def described(agent, context):
    return f"Budget: {agent.budget}\nPrice: {context['price']} <<< >>> end"


def shop_reasoner(client, **options):
    words = {"role": "a customer in a small shop", "task": "You decide what the customer does next"}
    return Reasoner(client, **words, descriptions={Shop.BUYING: "Buy it"}, describe=described, **options)


def test_the_prompt_says_role_task_descriptions_and_situation_and_nothing_of_a_platform():
    prompts = []

    def buys(prompt):
        prompts.append(prompt)
        return "buying"

    with shop_reasoner(buys) as reasoner:
        assert reasoner.decide_now(ADA, Shop.BROWSING, "sees_price", OPTIONS, {"price": 2}) is Shop.BUYING
        assert asyncio.run(reasoner.decide(ADA, Shop.BROWSING, "sees_price", OPTIONS, {"price": 2})) is Shop.BUYING
    [prompt] = prompts
    for words in ("a customer in a small shop", "You decide what the customer does next", "buying: Buy it"):
        assert words in prompt
    assert "Budget: 3\nPrice: 2 << >> end" in prompt
    assert "- leaving\n" in prompt
    assert "social" not in prompt


def test_without_a_description_the_situation_is_the_context():
    prompts = []
    with Reasoner(lambda prompt: prompts.append(prompt) or "leaving", role="a customer") as reasoner:
        reasoner.decide_now(ADA, Shop.BROWSING, "sees_price", OPTIONS, {"price": 2, "sale": True})
    assert "price: 2; sale: True" in prompts[0]


def test_a_ledger_file_answers_equal_questions_without_asking_again(tmp_path):
    def buys(prompt):
        return "buying"

    with shop_reasoner(buys, ledger=tmp_path / "shop.sqlite") as reasoner:
        reasoner.decide_now(ADA, Shop.BROWSING, "sees_price", OPTIONS, {"price": 2})
        assert reasoner.counts["llm"] == 1
    with shop_reasoner(buys, ledger=str(tmp_path / "shop.sqlite")) as again:
        assert again.decide_now(ADA, Shop.BROWSING, "sees_price", OPTIONS, {"price": 2}) is Shop.BUYING
        assert (again.counts["llm"], again.counts["cache"]) == (0, 1)


def test_probabilities_select_by_the_draw_and_are_refused_for_more_than_20_options():
    with shop_reasoner(lambda prompt: '{"buying": 0.25, "leaving": 0.75}', answer="probabilities") as reasoner:
        drawn = [reasoner.decide_now(ADA, Shop.BROWSING, "t", OPTIONS, {"price": 1}, draw) for draw in (0.2, 0.3)]
        assert drawn == [Shop.BUYING, Shop.LEAVING]
        many = list(Statechart([f"s{i}" for i in range(21)], [], "s0").members)
        with pytest.raises(ConfigError, match="21 options"):
            reasoner.decide_now(ADA, many[0], "t", many, {"price": 1})


def test_the_rule_is_refused_and_the_message_names_what_to_use():
    with pytest.raises(ConfigError, match=r"first or stay.*function"):
        shop_reasoner(lambda prompt: "", fallback="rule")
    with pytest.raises(ConfigError, match=r"buying.*function.*first or stay"):
        RuleReasoner().decide_now(ADA, Shop.BROWSING, "t", OPTIONS)


def test_a_decision_that_was_not_awaited_says_what_to_write():
    chart = Statechart(Shop, [Transition("t", Shop.BROWSING, state) for state in OPTIONS], Shop.BROWSING)
    agent = SimpleNamespace(state=Shop.BROWSING, ticks_in_state=0, state_history=[], max_history_depth=0)
    with shop_reasoner(lambda prompt: "buying") as reasoner:
        choice = reasoner.decide(agent, agent.state, "t", OPTIONS)
        with pytest.raises(ChartError, match=r"await.*decide_now"):
            chart.apply(agent, "t", choice)


@pytest.mark.parametrize("text", ['{"next_state": "Buy It"}', '{"next_state": "buy it"}', "Buy It"])
def test_an_answer_names_a_state_with_capitals(text):
    with Reasoner(lambda prompt: text, role="a customer") as reasoner:
        chart = Statechart(["Look", "Leave", "Buy It"], [Transition("go", "Look", None)], "Look")
        look, leave, buy = chart.members
        assert reasoner.decide_now(ADA, look, "go", [leave, buy]) is buy
        assert reasoner.counts["llm"] == 1
