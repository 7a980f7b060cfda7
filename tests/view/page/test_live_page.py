"""The live page as a browser tab has it, without the browser: what its buttons, inputs and clicks do."""

import threading
import time

import ipyvuetify as v
import ipywidgets
import pytest
import solara
from worlds import plain

from prism_mesa.errors import PrismError
from prism_mesa.params import nest_keys
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.view.page import live_page

pytestmark = pytest.mark.slow

CONFIG = SocialParams.model_validate(
    nest_keys(plain({"agents.n": 60, "rounds": 2, "seed": 5, "agents.activity": 0.8, "agents.post_rate": 0.4}))
)
TELLING = {
    "head": "done",
    "inputs": "items",
    "series": "stacked",
    "graph": "nodes",
    "card": "suggested",
    "oracle": "reasons",
}
"""A field that only this part of the page has."""


def inside(widget):
    """Yield a widget and all widgets in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        if isinstance(child, ipywidgets.Widget):
            yield from inside(child)


class Opened:
    """A page as a browser tab shows it, and the models it has made, the last one being on show."""

    def __init__(self, page, models):
        self.box, self.rendered = solara.render(page, handle_error=False)
        self.models = models

    @property
    def model(self):
        return self.models[-1]

    def parts(self, name):
        return [
            part for part in inside(self.box) if part.has_trait(TELLING[name]) and isinstance(part, v.VuetifyTemplate)
        ]

    def part(self, name):
        return self.parts(name)[0]

    def graph(self, key):
        return next(part for part in self.parts("graph") if part.nodes["key"].startswith(key))

    def press(self, *labels):
        for label in labels:
            next(part for part in inside(self.box) if isinstance(part, v.Btn) and part.children == [label]).click()

    def is_off(self, label):
        return next(part for part in inside(self.box) if isinstance(part, v.Btn) and part.children == [label]).disabled

    def put(self, **values):
        for key, value in values.items():
            self.inputs.vue_change({"key": key.replace("__", "."), "value": value})

    def wait_for_why(self):
        end = time.monotonic() + 60
        while self.part("card").card["why_note"].startswith("The reasons appear"):
            assert time.monotonic() < end, "why was not told"
            time.sleep(0.01)

    @property
    def inputs(self):
        return next(part for part in self.parts("inputs") if part.name == "model")

    def item(self, key):
        return next(part for part in self.inputs.items if part["key"] == key)

    @property
    def says(self):
        return [part.children[0] for part in inside(self.box) if getattr(part, "class_", "") == "prism-changed"]


@pytest.fixture
def opened(monkeypatch):
    """Return a function that opens a page; only with a short `rest_s` another thread tells why."""
    pages = []

    def open_page(config=CONFIG, rest_s=3600.0):
        models = []

        class Shown(live_page.PageModel):
            def __init__(self, config, inputs=None, on_work=lambda _: None):
                super().__init__(config, inputs, on_work)
                models.append(self)

        Shown.rest_s = rest_s
        monkeypatch.setattr(live_page, "PageModel", Shown)
        pages.append(Opened(live_page.make_page(config), models))
        return pages[-1]

    yield open_page
    for page in pages:
        page.rendered.close()
    for part in threading.enumerate():
        if isinstance(part, threading.Timer):
            part.join(60)


def test_each_step_runs_one_round_which_all_views_show_until_the_last(opened):
    page = opened(rest_s=0.0)
    assert page.model.params == CONFIG
    assert (page.part("head").done, page.part("head").rounds, page.part("head").fault) == (0, 2, "")
    assert len(page.graph("network").nodes["names"]) == 60
    assert "press play" in page.part("card").card["why_note"]
    page.press("Step")
    assert (page.model.round, page.part("head").done, len(page.parts("series"))) == (0, 1, 3)
    assert all(view.rounds == [0] for view in page.parts("series"))
    likes = next(s for view in page.parts("series") for s in view.series if s["name"] == "likes")
    assert likes["values"] == [page.model.round_row["likes"]]
    page.wait_for_why()
    card = page.part("card").card
    assert (card["why"][0][:9], card["why_note"]) == ("Round 0: ", "")
    page.press("Step")
    assert page.is_off("Step")
    page.press("Reset")
    assert not page.is_off("Step")


def test_changed_inputs_count_from_the_next_reset_on_and_the_page_says_so(opened):
    page = opened()
    page.press("Step")
    page.put(agents__n=80, rounds=3, feed__mode="random", statechart__oracle_enabled=False)
    assert page.says == ["4 changed inputs take effect at the next Reset."]
    assert page.item("rounds")["changed"]
    assert page.model.params == CONFIG
    page.press("Reset")
    params = page.model.params
    assert (len(page.model.population), params.rounds, params.feed.mode, params.seed) == (80, 3, "random", 5)
    assert not params.statechart.oracle_enabled
    assert page.says == []
    assert page.part("head").done == 0
    assert len(page.graph("network").nodes["names"]) == 80


def test_a_round_that_fails_is_said_and_reset_begins_anew(opened, monkeypatch):
    page = opened()
    page.press("Step")

    def fail(*_):
        raise PrismError("agent 0 is out of order")

    with monkeypatch.context() as patched:
        patched.setattr(SocialModel, "step", fail)
        page.press("Step")
    assert page.part("head").fault == "Stopped: agent 0 is out of order."
    assert page.is_off("Step")
    page.press("Reset", "Step")
    assert (page.part("head").fault, page.model.round) == ("", 0)


def test_a_click_on_an_agent_and_its_name_show_it(opened):
    page = opened()
    page.press("Step")
    page.graph("network").vue_pick({"id": 12, "node": 12})
    card = page.part("card").card
    assert (card["row"], card["name"]) == (12, page.model.population.names[12])
    assert page.graph("network").selected == 12
    page.part("card").vue_find("nobody at all")
    assert "no agent 'nobody at all'" in page.part("card").fault
    assert page.part("card").card["row"] == 12
    page.part("card").vue_find(page.model.population.names[30])
    assert (page.part("card").card["row"], page.part("card").fault) == (30, "")


def test_the_network_is_laid_out_once_and_coloured_anew(opened):
    page = opened()
    graph = page.graph("network")
    places, colors = graph.nodes["x"], graph.colors
    page.press("Step")
    assert graph.nodes["x"] == places
    assert graph.colors != colors
    by = next(part for part in page.parts("inputs") if part.name.endswith("network"))
    by.vue_change({"key": "by", "value": "activity"})
    assert "coloured by activity" in page.graph("network").label


def test_the_largest_cascade_is_a_tree_that_grows(opened):
    page = opened(CONFIG.with_settings({"rounds": 8, "agents.reshare": 1.0, "agents.like": 0.0}))
    sizes = []
    for _ in range(6):
        page.press("Step")
        sizes.append(len(next((part.nodes["names"] for part in page.parts("graph") if part.curved), ())))
    assert sizes == sorted(sizes)
    assert sizes[-1] > 2
