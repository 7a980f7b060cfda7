import re

import pytest
from read_reports import Page, read_markdown
from study_results import factorial, two_arms
from worlds import plain

from prism_mesa.params import leaves, nested
from prism_mesa.runs.config import Config
from prism_mesa.social.behavior import social_chart, viral_chart
from prism_mesa.view.study.blocks import Report
from prism_mesa.view.study.markdown import markdown_of
from prism_mesa.view.study.odd.sections import odd_section, odd_sections
from prism_mesa.view.study.page import page_of

ELEMENTS = [
    "1. Purpose and patterns",
    "2. Entities, state variables, and scales",
    "3. Process overview and scheduling",
    "4. Design concepts",
    "5. Initialization",
    "6. Input data",
    "7. Submodels and parameters",
]
CONCEPTS = (
    "Basic principles|Emergence|Adaptation|Objectives|Learning|Prediction|Sensing|Interaction|Stochasticity|"
    "Collectives|Observation"
).split("|")


def shown(*sections):
    report = Report("", "", "done", "", sections, "")
    return Page(page_of(report, {"statechart": "<svg></svg>"}, {"statechart": 1}))


def odd_of(chart=social_chart, **values):
    return shown(*odd_sections(Config(**values), chart))


def test_the_seven_elements_stand_in_their_order(tmp_path):
    section = odd_section(two_arms(tmp_path))
    assert [part.title for part in section.parts] == ELEMENTS


def test_a_network_that_moves_is_described_with_its_rates():
    told = "times 20 if it engaged with the post; a new follower is followed back with 0.25"
    assert told in odd_of(network={"dynamics": "live", "rates": {"follow_back": 0.25}}).text
    assert "followed back" not in odd_of().text


def test_opinions_are_told_of_where_they_move():
    world = {"attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}}
    told = "leaning: each post that an agent engages with moves its reader by 0.02 of the distance"
    found = odd_of(**world, opinions={"of": "leaning", "when": "engaged", "rate": 0.02}).text
    assert f"{told} if that is at most 0.2 of the range (Deffuant et al. 2000); a post stands at its author's" in found
    assert "each post that an agent" not in odd_of(**world).text


def test_all_eleven_design_concepts_are_answered():
    text = odd_of().text
    places = [text.index(f"{concept}") for concept in CONCEPTS]
    assert places == sorted(places)


def test_the_steps_of_a_round_are_those_of_its_docstring():
    rows = [row for row in odd_of().rows() if row and row[0].isdigit() and len(row) == 3]
    assert [row[1] for row in rows] == "publish rank open ticks commit collect close".split()
    assert rows[1][2].startswith("each agent who will be there gets its feed")


@pytest.mark.parametrize("chart", [social_chart, viral_chart])
def test_every_transition_of_the_chart_is_there_with_its_guard(chart):
    rows = odd_of(chart).rows()
    for transition in chart.transitions:
        target = transition.target.value if transition.target else "open: the oracle chooses"
        [found] = [
            row
            for row in rows
            if row[0] == transition.source.value
            and row[1].partition(" ")[0] == transition.trigger
            and row[-1] == target
            and (row[2] == transition.guard_label or not transition.guard_label)
        ]
        assert found
    assert ["resting", "timeout after 2 ticks", "", "scrolling"] in rows


def test_values_that_are_not_the_default_are_marked_and_stand_first():
    rows, own = odd_of(rounds=51, feed={"size": 5}, agents={"n": 500}).rows(), Config()
    marked = [row[:2] for row in rows if len(row) > 1 and " default " in row[1]]
    assert marked[:3] == [
        ["rounds", f"51 default {own.rounds}"],
        ["agents.n", "500 default 1000"],
        ["feed.size", f"5 default {own.feed.size}"],
    ]
    assert len(marked) == 6  # once first, once among all


def test_all_parameters_are_there_with_their_meaning():
    rows = {row[0]: row for row in odd_of().rows() if row}
    for key, _ in leaves(Config):
        assert len(rows[key]) == 3, key


def test_what_a_study_changes_is_named_and_marked(tmp_path):
    page = shown(odd_section(two_arms(tmp_path)))
    assert "the arms and factors of the study change feed.mode." in page.text
    assert [row[:2] for row in page.rows() if len(row) > 1 and row[1].endswith(" varies")] == [
        ["feed.mode", "chronological varies"]
    ] * 2
    text = shown(odd_section(factorial(tmp_path))).text
    assert "change posts.media_share, feed.mode." in text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "the rule below, by a keyed draw of each agent"),
        ({"reasoner": {"kind": "ollama", "model": "llama3.2"}}, "an LLM served by Ollama (llama3.2); an answer that"),
        ({"statechart": {"oracle_enabled": False}}, "nobody is asked: the first option is taken"),
        ({"content": "template"}, "from templates"),
        ({"feed": {"mode": "preference"}}, "the most relevant first, of followed agents"),
        ({"network": {"kind": "stochastic_block", "blocks": 7}}, "7 blocks of agents that follow each other more"),
        ({"network": {"edges": "who.csv"}}, "network.edges who.csv who follows whom"),
        ({}, "Nothing from outside enters while rounds are run."),
    ],
)
def test_what_the_configuration_settles_is_said_as_it_settles_it(values, said):
    page = odd_of(**values)
    rows = " ".join(" ".join(row) for row in page.rows())
    assert said in f"{page.text} {rows}"


def test_a_chart_that_cannot_be_had_is_said_and_the_rest_stands(tmp_path):
    result = two_arms(tmp_path)
    object.__setattr__(result, "base", Config(statechart={"chart": "not_there:chart"}))
    section = odd_section(result)
    text = shown(section).text
    assert "statechart.chart: not_there:chart: cannot import 'not_there'" in text
    assert [part.title for part in section.parts] == ELEMENTS
    report = Report("", "", "done", "", (section,), "")
    assert re.search(r"^> .*cannot import", markdown_of(report, {}, {}), re.MULTILINE)
    assert read_markdown(markdown_of(report, {}, {})).rows() == shown(section).rows()


def test_who_is_there_when_and_close_ties_are_told_as_they_are_configured():
    calm = odd_of(**nested(plain())).text
    assert "mean probability 0.5 of coming online and 0.15 of posting in a round; lognormal between agents" in calm
    assert not any(word in calm for word in ("sessions of", "goes with the hour", "its draw lasts", "20 followed and"))
    agents = {"post_sigma": 1.7, "posting": "online", "popularity": 0.55, "hours": range(24), "persistence": 0.4}
    own = {"agents": {**agents, "session": 320}, "network": {"close_ties": 4}}
    told = odd_of(**nested(plain(own))).text
    for said in (
        "mean probability 0.5 of coming online in a round and 0.15 of posting then",
        "sigma 1.6 and of posting 1.7",
        "correlated 0.55 with the rank by followers",
        "goes with the hour of the day",
        "lasts into the next round with probability 0.4",
        "sessions of 320 posts in the mean",
        "mean 20 followed and 4 close ties",
    ):
        assert said in told
    assert "up to 3 mutual follows" in odd_of(network={"edges": "e.csv", "close_ties": 3}).text


def test_what_is_compared_with_the_band_is_utility_as_the_configuration_weighs_it():
    text = odd_of().text
    assert "None is maximised: an agent compares a post's utility with its own band." in text
    assert "what the agent compares with its band: 0.09 x relevance + 0.03 x (0.4 x appeal" in text
    assert "- 0.2 x log(1 + hours of age) + 7.5 if by a close tie + 1 x mood)" in text
    assert "relevance alone: what the agent compares with its band" in odd_of(utility={"sensitivity": 0}).text
