"""Engagements by tools, and all counters agree whoever engages."""

from collections import Counter

import numpy as np
import pytest
from engagement_charts import ALL_ONLINE, LIKING, always, assert_counts_agree, engagements
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_charts import charts
from random_worlds import Fan, engage_somehow, happenings, populations, with_chart
from worlds import ran, small

from prism_mesa.domain import ACTIONS
from prism_mesa.social import start
from prism_mesa.social.content.tools import PlatformTools
from prism_mesa.social.content.writer import write_words
from prism_mesa.social.round import run_round as round_module
from prism_mesa.social.state.events import Engagements

# -- tools


def with_tools(monkeypatch, activity):
    """Let `activity(model)` be done at the end of the ticks of every round, as turns of thinking are."""

    def then_write(platform):
        activity(platform.agent_objects)
        write_words(platform)

    monkeypatch.setattr(round_module, "write_words", then_write)


def test_what_a_script_or_the_chart_has_done_in_an_earlier_round_a_tool_is_told_about(monkeypatch):
    results = []

    def activity(model):
        for row in range(30):
            box = PlatformTools(model.platform, row, tick=3).registry(acts=True)
            feed = model.population.feed[row, : model.population.n_feed[row]].tolist()
            results.extend((row, model.round, box.execute("like", {"post": post})) for post in feed)

    model = small(chart=always(LIKING), **ALL_ONLINE)
    model.step()
    own = [model.agent(row).like(model.post(post, row)) for row in range(30) for post in range(len(model.posts))]
    with_tools(monkeypatch, activity)
    ran(model, 2)
    done = [result for _, _, result in results if result.text.startswith("you have done that to post")]
    assert True in own
    assert False in own
    assert done
    assert any(result.ok for _, _, result in results)
    assert all(result.ok or result in done for _, _, result in results)
    assert_counts_agree(model)


# -- all together


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:SocialModel. the guard of:prism_mesa.errors.PrismWarning"
)  # charts have such guards
@pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning")
@pytest.mark.filterwarnings("ignore:.*nobody has close ties:prism_mesa.errors.NotedWarning")
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(populations, charts(), happenings(scripts=(Fan,)), st.integers(0, 10), st.booleans())
def test_counters_tables_and_cascades_agree_whoever_engages(params, chart, happens, seed, has_fans):
    def think(model):
        for row in np.flatnonzero(model.population.n_feed)[: seed % 4].tolist():
            box = PlatformTools(model.platform, row, tick=1 + seed % model.params.ticks_per_round).registry(acts=True)
            [post] = model.population.feed[row, [seed % model.population.n_feed[row]]].tolist()
            said = {"post": post} | ({"text": "So"} if seed % 3 == 1 else {})
            box.execute(ACTIONS[seed % 3], said)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "check_chart", lambda *given: ())
        with_tools(patch, think)
        model = small(**with_chart(params, chart) | {"records_engagements": None, "interventions": ()})
        for row in range(0, len(model.population), 4) if has_fans else ():
            Fan(model, row)
        new = []
        for round_ in range(4):
            for happening in happens:
                if happening.round == round_:
                    happening.to(model)
            for row in range(seed % 5):
                if model.population.present[row] and row not in model.leaving:
                    new.append((row, engage_somehow(model.agent(row), seed + 17 * row)))
            model.step()
    assert_counts_agree(model)
    counted = Counter((row, root, action) for _, _, row, root, action in engagements(model))
    done = [(row, post.root, action) for row, (post, action, is_new) in (n for n in new if n[1]) if is_new]
    assert all(counted[row, root, action] == 1 for row, root, action in done if action != "reply")
    assert not [key for key, n in Counter(done).items() if n > 1 and key[2] != "reply"]


@given(
    st.lists(st.lists(st.integers(0, 300), max_size=40), max_size=12), st.lists(st.booleans(), min_size=12, max_size=12)
)
def test_what_was_remembered_is_found_whenever_it_is_looked_for(rounds, looks):
    engaged, known = Engagements(), set()
    for keys, looks_now in zip(rounds, looks, strict=False):
        engaged.add(np.array(sorted(set(keys) - known), np.int64))
        known |= set(keys)
        if looks_now:
            assert engaged.contains(np.arange(302)).tolist() == [key in known for key in range(302)]
    assert engaged.contains(np.arange(302)).tolist() == [key in known for key in range(302)]
