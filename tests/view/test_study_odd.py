import re
import sys

import pytest
from read_reports import Page
from study_results import factorial, make_result, make_runs, two_arms
from worlds import plain

from prism_mesa.params import list_leaves, nest_keys
from prism_mesa.runs.config import Config
from prism_mesa.social.behavior import social_chart, viral_chart
from prism_mesa.studies.design.study_design import condition_configs
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.study.blocks import Report, all_pictures
from prism_mesa.view.study.odd.sections import odd_section, odd_sections, odd_text
from prism_mesa.view.study.report import to_html

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
    names = [picture.name for picture in all_pictures(sections)]
    return Page(to_html(report, dict.fromkeys(names, "<svg></svg>")))


def describe(chart=social_chart, **values):
    return shown(*odd_sections(Config(**values), chart))


def test_the_elements_and_design_concepts_stand_in_their_order(tmp_path):
    assert [part.title for part in odd_section(two_arms(tmp_path)).parts] == ELEMENTS
    text = describe().text
    places = [text.index(concept) for concept in CONCEPTS]
    assert places == sorted(places)


def test_the_steps_of_a_round_are_those_of_its_docstring():
    rows = [row for row in describe().rows() if row and row[0].isdigit() and len(row) == 3]
    assert [row[1] for row in rows] == "publish rank open ticks commit collect close".split()
    assert rows[1][2].startswith("Each agent that will read gets a feed")


@pytest.mark.parametrize("chart", [social_chart, viral_chart])
def test_every_transition_of_the_chart_is_there_with_its_guard(chart):
    rows = describe(chart).rows()
    for transition in chart.transitions:
        target = transition.target.value if transition.target else "open: the oracle chooses"
        [_] = [
            row
            for row in rows
            if row[0] == transition.source.value
            and row[1].partition(" ")[0] == transition.trigger
            and row[-1] == target
            and (row[2] == transition.guard_label or not transition.guard_label)
        ]
    assert ["resting", "timeout after 2 ticks", "", "scrolling"] in rows


def test_all_parameters_have_their_meaning_and_those_with_other_values_than_the_default_stand_first():
    rows = [row for row in describe(rounds=51, feed={"size": 5}, agents={"n": 500}).rows() if row]
    meanings, default = {row[0]: row for row in rows}, Config()
    for key, _ in list_leaves(Config):
        assert len(meanings[key]) == 3, key
    marked = [row[:2] for row in rows if len(row) > 1 and " default " in row[1]]
    assert marked[:3] == [
        ["rounds", f"51 default {default.rounds}"],
        ["agents.n", "500 default 1000"],
        ["feed.size", f"5 default {default.feed.size}"],
    ]
    assert len(marked) == 6  # once first, once among all


def test_what_a_study_changes_is_named_and_marked(tmp_path):
    page = shown(odd_section(two_arms(tmp_path)))
    assert "the arms and factors of the study change feed.mode." in page.text
    assert [[row[0], row[1], row[3]] for row in page.rows() if len(row) > 1 and row[1].endswith(" varies")] == [
        ["feed.mode", "chronological varies", "chronological"],
        ["feed.mode", "x_algo default chronological varies", "ranked"],
    ] * 2
    text = shown(odd_section(factorial(tmp_path))).text
    assert "change posts.media_share, feed.mode." in text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "the rule below, with a keyed draw for each agent"),
        ({}, "No input is read during a run."),
        (
            {"reasoner": {"kind": "ollama", "model": "llama3.2"}},
            "an LLM served by Ollama (llama3.2); ",
        ),
        ({"reasoner": {"kind": "ollama", "model": "llama3.2"}}, "which makes no draw of its own"),
        (
            {"reasoner": {"kind": "ollama", "model": "d1-omni:600m", "answer": "decision"}},
            "an LLM served by Ollama (d1-omni:600m), which gives probabilities",
        ),
        (
            {"reasoner": {"kind": "ollama", "model": {"llama3.2": 3, "gemma3": 1}}},
            "(llama3.2 for 75%, gemma3 for 25%)",
        ),
        (
            {
                "reasoner": {"kind": "ollama", "model": {"left": "a", "right": "b"}, "model_by": "side"},
                "attributes": {"side": {"of": "agent", "values": ["left", "right"]}},
            },
            "(a where side is left, b where side is right)",
        ),
        ({"statechart": {"oracle_enabled": False}}, "nobody is asked: the first option is taken"),
        ({"content": "template"}, "from templates"),
        ({"feed": {"mode": "preference"}}, "the most relevant first, by followed agents"),
        ({"network": {"kind": "stochastic_block", "blocks": 7}}, "7 blocks of agents that follow each other more"),
        ({"network": {"edges": "who.csv"}}, "network.edges who.csv who follows whom"),
        (
            {"network": {"dynamics": "live", "rates": {"follow_back": 0.25}}},
            "times 20 if it engaged with the post; a new follower is followed back with 0.25",
        ),
        (
            {
                "attributes": {"leaning": {"of": "agent", "range": [-1, 1]}},
                "opinions": {"of": "leaning", "when": "engaged", "rate": 0.02},
            },
            "engages with moves its reader by 0.02 of the distance if that is at most 0.2 of the range",
        ),
    ],
)
def test_the_text_follows_the_configuration(values, text):
    page = describe(**values)
    rows = " ".join(" ".join(row) for row in page.rows())
    assert text in f"{page.text} {rows}"


def test_a_chart_that_cannot_be_loaded_is_named_and_the_rest_is_there(tmp_path):
    result = two_arms(tmp_path)
    object.__setattr__(result, "base", Config(statechart={"chart": "not_there:chart"}))
    section = odd_section(result)
    assert "statechart.chart: not_there:chart: cannot import 'not_there'" in shown(section).text
    assert [part.title for part in section.parts] == ELEMENTS


def test_who_is_there_when_and_close_ties_are_told_as_they_are_configured():
    calm = describe(**nest_keys(plain())).text
    assert "mean probability 0.5 of coming online and 0.15 of posting in a round; both lognormal over agents" in calm
    assert not any(word in calm for word in ("sessions of", "depends on the hour", "reuses its draw in"))
    agents = {"post_sigma": 1.7, "posting": "online", "popularity": 0.55, "hours": range(24), "persistence": 0.4}
    settings = {"agents": {**agents, "session": 320}, "network": {"close_ties": 4}}
    assert "up to 4 mutual" not in describe(**nest_keys(plain(settings))).text  # they do not count here
    text = describe(**nest_keys(plain(settings | {"utility": {"sensitivity": 0.03, "closeness": 4}}))).text
    for part in (
        "mean probability 0.5 of coming online in a round, and 0.15 of posting in a round online",
        "sigma 1.6 (posting: 1.7)",
        "correlation 0.55 with the rank by followers",
        "depends on the hour of the day",
        "reuses its draw in the next round with probability 0.4",
        "sessions of 320 posts on average",
        "20 followees on average; close ties: up to 4 mutual follows of each",
    ):
        assert part in text
    assert "up to 3 mutual follows" in describe(network={"edges": "e.csv", "close_ties": 3}).text


# -- arms with models of their own ---------------------------------------------------------------------

OWN_PARTS = """
from prism_mesa.social.behavior import build_chart
from prism_mesa.statechart import F

picky = build_chart(engages=(F.post.utility > F.agent.high_threshold) & (F.post.velocity < 50))
by_age = 3 * F.post.likes - F.post.age

def by_likes(columns):
    \"\"\"What is liked most, i.e. by most
    readers. Ties go to the newer post.\"\"\"
    return columns["post.likes"]
"""


@pytest.fixture
def odd_of_arms(tmp_path, monkeypatch):
    """Return the ODD section of a study with these arms, in whose folder is the module `own_parts`."""
    (tmp_path / "own_parts.py").write_text(OWN_PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_parts", raising=False)

    def get(**arms):
        table = RunTable(make_runs(tuple(arms), [{}], [1, 2], ("likes",), lambda *_: 1.0), tuple(arms), (), ("likes",))
        values = {"question": "?", "arms": arms}
        return odd_section(make_result(tmp_path, table, values=values))

    return get


def test_each_arm_has_the_figure_and_the_transitions_of_its_own_chart(odd_of_arms):
    section = odd_of_arms(plain={}, ranked={"feed.mode": "x_algo"}, picky={"statechart": {"chart": "own_parts:picky"}})
    first, second = all_pictures((section,))
    assert [picture.caption[0].text for picture in (first, second)] == ["plain, ranked", "picky"]
    assert first.draw.chart.transitions != second.draw.chart.transitions
    rows = [row for row in shown(section).rows() if row[0] == "evaluating"]
    guard = "post.utility > agent.high_threshold and post.velocity < 50"
    assert ["evaluating", "decides", guard, "composing", "picky"] in rows
    assert ["evaluating", "decides", "post.utility > agent.high_threshold", "composing", "plain, ranked"] in rows
    assert ["evaluating", "decides", "else", "open: the oracle chooses"] in rows
    assert "picky: as the transitions of own_parts:picky from evaluating define it" in shown(section).text


def test_accounts_have_the_figure_and_the_transitions_of_their_own_chart(odd_of_arms):
    bots = {"name": "bots", "n": 2, "engages": {"like": "post.likes > 7"}}
    picky = {"name": "picky", "n": 2, "chart": "own_parts:picky"}
    section = odd_of_arms(plain={}, mixed={"accounts": [bots, {"name": "pages", "n": 2}, picky]})
    assert len(all_pictures((section,))) == 4  # two of the agents, because their words differ
    assert ["evaluating", "decides", "post.likes > 7", "composing"] in [row[:4] for row in shown(section).rows()]
    text = odd_text({("a",): Config(accounts=[picky])})
    assert "own_parts:picky, a module of the user's own, which is not loaded" in text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"feed.mode": "own_parts:by_likes"},
            "own_parts:by_likes, a function of the study's own: What is liked most, i.e. by most readers",
        ),
        (
            {"feed.mode": "own_parts:by_age"},
            "in the order of own_parts:by_age, highest first: 3 * post.likes - post.age",
        ),
        ({"content": "template"}, "replies and reshares get sentences about the topic from templates"),
        ({"posts.file": "mine.csv"}, "agents' own posts are texts of mine.csv"),
        ({"reasoner.asks_action": True}, "which the oracle is asked for"),
        (
            {"interventions": [{"at": 3, "set": {"feed.mode": "random"}, "agents": "agent.leaning > 0"}]},
            "from round 3 on: feed.mode=random for agents with agent.leaning > 0",
        ),
        (
            {"interventions": [{"at": 3, "set": {"feed.mode": "own_parts:by_age"}}]},
            "from round 3 on: feed.mode=own_parts:by_age (in the order of own_parts:by_age, highest first: 3 *",
        ),
        ({"opinions.of": "leaning"}, "leaning: each post that an agent reads moves its reader"),
        ({"attributes.mood": {"of": "agent", "range": [0, 2]}}, "declared: 0 to 2; drawn"),
    ],
)
def test_what_an_arm_changes_is_in_its_text_and_not_in_that_of_the_others(odd_of_arms, settings, text):
    leaning = {"attributes.leaning": {"of": "agent", "range": [-1, 1]}}
    page = shown(odd_of_arms(uno={**leaning, **settings}, two=leaning, three=leaning))
    stated = re.search(rf"uno: [^;]*{re.escape(text)}", page.text)
    assert stated or any(text in cell and row[-1] == "uno" for row in page.rows() for cell in row)
    assert page.text.count("(1 + cosine of the post's topics") == 1  # what all arms share stands there once


def test_modules_of_a_study_are_loaded_only_where_they_may_be(odd_of_arms):
    worlds = {
        ("a",): Config(),
        ("b",): Config(statechart={"chart": "own_parts:picky"}, feed={"mode": "own_parts:by_age"}),
    }
    text = odd_text(worlds)
    assert "own_parts" not in sys.modules
    assert "The chart is own_parts:picky, a module of the user's own, which is not loaded here." in text
    assert "own_parts:by_age, a function of the study's own, which is not loaded here" in text


def test_a_group_of_conditions_is_named_by_the_levels_that_set_it_apart():
    base = Config()
    worlds = condition_configs(base, {"arms": {"a": {}, "b": {"content": "template"}}, "vary": {"feed.size": [5, 20]}})
    text = odd_text(worlds)
    assert "**feed.size=5**: up to 5 posts" in text
    assert "**b**: replies and reshares get sentences" in text
