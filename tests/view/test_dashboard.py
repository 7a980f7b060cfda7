"""The browser page: what it shows, and what Step, the inputs, the seed box and Reset do to its model."""

import json
import os
import runpy
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import ipyvuetify as v
import ipywidgets
import pytest
import solara
from worlds import plain

from prism_mesa.errors import PrismError
from prism_mesa.params import nested
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.view import dashboard as app

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("coarse_pictures")]

CONFIG = SocialParams.model_validate(nested(plain({"agents.n": 60, "rounds": 1, "seed": 5})))


def inside(widget):
    """Yield a widget and all widgets in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        if isinstance(child, ipywidgets.Widget):
            yield from inside(child)


class Opened:
    """A page as a browser tab shows it, and the models it has made, the last one being on show."""

    def __init__(self, page, models):
        layout = solara.AppLayout(children=[page], navigation=False)
        self.box, self.rendered = solara.render(layout, handle_error=False)
        self.models = models

    @property
    def model(self):
        return self.models[-1]

    def every(self, *kinds):
        return [widget for widget in inside(self.box) if isinstance(widget, kinds)]

    @property
    def text(self):
        return [span.children[0] for span in self.every(v.Html) if span.tag == "span"]

    @property
    def pictures(self):
        return [image.value for image in self.every(ipywidgets.Image)]

    def button(self, label):
        return next(button for button in self.every(v.Btn) if button.children == [label])

    def press(self, *labels):
        for label in labels:
            self.button(label).click()

    def put(self, **values):
        for field in self.every(v.Slider, v.TextField, v.Checkbox, v.Select):
            name = field.label.replace(" ", "_")
            if name in values:
                field.v_model = values.pop(name)
                if isinstance(field, v.TextField):
                    field.fire_event("keyup.enter")
        assert not values, f"the page has no input {list(values)}"


@pytest.fixture
def opened(monkeypatch):
    """Return a function that opens a page."""
    pages = []

    def open_page(page=None, config=CONFIG):
        models = []

        class Shown(app.PageModel):
            def __init__(self, config, **inputs):
                super().__init__(config, **inputs)
                models.append(self)

        monkeypatch.setattr(app, "PageModel", Shown)
        pages.append(Opened(page or app.make_page(config), models))
        return pages[-1]

    yield open_page
    for page in pages:
        page.rendered.close()


def collected(model):
    return model.datacollector.get_model_vars_dataframe()


def test_a_page_opens_on_the_model_of_its_config_before_the_first_round(opened):
    page = opened()
    assert page.model.params == CONFIG
    assert page.model.round == -1
    assert page.text[-1].startswith("Round 0 of 1: 60 agents, chronological feed")
    assert [picture[:4] for picture in page.pictures] == [b"\x89PNG"] * 3


def test_a_step_runs_one_round_and_draws_every_figure_anew(opened):
    page = opened()
    before = page.pictures
    page.press("Step")
    assert page.model.round == 0
    assert len(collected(page.model)) == 1
    assert "Time: 1.0" in page.text
    assert page.text[-1].startswith("Round 1 of 1")
    assert all(new != old for new, old in zip(page.pictures, before, strict=True))


def test_changed_inputs_count_from_the_next_reset_on(opened):
    page = opened()
    page.press("Step")
    page.put(Agents=80, Rounds=3, Feed="random", Band=0.4, Post_rate=0.3, Oracle=False)
    assert page.model.params == CONFIG
    page.press("Reset")
    params = page.model.params
    assert len(page.model.population) == params.agents.n == 80
    assert (params.rounds, params.feed.mode, params.agents.band, params.agents.post_rate) == (3, "random", 0.4, 0.3)
    assert not page.model.chart.oracle_enabled
    assert params.seed == 5
    assert page.model.round == -1
    page.press("Step")
    assert collected(page.model)["open"].tolist() == [0]


def test_the_seed_box_makes_the_run_of_that_seed(opened):
    page = opened()
    page.put(Seed="7")
    page.press("Reset", "Step")
    runs = {seed: SocialModel(CONFIG, rng=seed) for seed in (5, 7)}
    for run in runs.values():
        run.step()
    assert collected(page.model).equals(collected(runs[7]))
    assert not collected(page.model).equals(collected(runs[5]))


def test_a_seed_that_is_no_number_is_said_on_the_page_which_goes_on_with_its_own(opened):
    page = opened()
    page.put(Seed="seven", Feed="random")
    page.press("Reset")
    assert page.text[-1].startswith("SocialModel: rng: 'seven'")
    assert "the page's own values are used. Round 0 of 1" in page.text[-1]
    assert page.model.params == CONFIG
    page.put(Seed="8")
    page.press("Reset")
    assert (page.model.params.seed, page.model.params.feed.mode, page.model.fault) == (8, "random", "")


def test_the_last_round_ends_the_run_until_reset(opened):
    page = opened()
    page.press("Step")
    assert page.button("Step").disabled
    page.press("Reset")
    assert not page.button("Step").disabled


def test_a_round_that_fails_ends_the_run_and_is_said_on_the_page(opened):
    class OutOfOrder(SocialAgent):
        def step(self):
            raise PrismError("agent 0 is out of order")

    page = opened()
    OutOfOrder(page.model, 0)
    page.press("Step")
    assert page.text[-1].startswith("Stopped: agent 0 is out of order. Round 1 of 1")
    assert page.button("Step").disabled


def test_a_page_that_is_opened_again_has_a_model_of_its_own(opened):
    page = app.make_page(CONFIG)
    first = opened(page)
    first.press("Step")
    first.rendered.close()
    assert opened(page).model.round == -1


def test_above_the_limit_one_line_stands_for_the_network(opened):
    page = opened(config=SocialParams.model_validate({"agents": {"n": app.NETWORK_LIMIT + 1}}))
    assert "The network is drawn for up to 300 agents; this one has 301." in page.text
    assert len(page.pictures) == 2


def test_a_graph_from_a_file_brings_its_number_of_agents(opened, tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("src,dst\n" + "\n".join(f"{i},{(i + 1) % 20}" for i in range(20)))
    page = opened(config=SocialParams.model_validate({"network": {"edges": str(edges)}}))
    assert any("20 agents" in line for line in page.text)
    assert "Agents" not in [slider.label for slider in page.every(v.Slider)]


def test_the_file_shows_the_config_that_the_environment_names(opened, monkeypatch, tmp_path):
    config = tmp_path / "small.yaml"
    config.write_text("agents: {n: 44}\nseed: 3\n")
    monkeypatch.setenv("PRISM_APP_CONFIG", str(config))
    assert any("44 agents" in line and "seed 3" in line for line in opened(runpy.run_path(app.__file__)["page"]).text)
    monkeypatch.delenv("PRISM_APP_CONFIG")
    assert any("200 agents" in line for line in opened(runpy.run_path(app.__file__)["page"]).text)


# In a browser: only there can be seen that nothing of the page stays blank.

CHROMIUM = shutil.which("chromium")
ASSETS = Path(os.environ.get("SOLARA_ASSETS_PROXY_CACHE_DIR", f"{sys.prefix}/share/solara/cdn"))
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-port=0"
).split()


def until(found, seconds=30):
    """Return what `found` returns once it is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if result := found():
                return result
        except OSError:
            pass
        time.sleep(0.1)
    raise TimeoutError(found)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.skipif(
    not list(ASSETS.glob("@widgetti/solara-vuetify*")),
    reason=f"{ASSETS} holds no copy of solara's scripts; one is made when the page is first opened on the internet",
)
def test_in_a_browser_a_step_shows_its_round_and_three_pictures(tmp_path):
    connect = pytest.importorskip("websockets.sync.client").connect
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    serve = [sys.executable, "-m", "solara", "run", app.__file__, "--no-open", "--production"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*serve, f"--port={address.split(':')[1]}"], **quiet) as server:
        try:
            until(lambda: urllib.request.urlopen(f"http://{address}", timeout=5).status == 200)
            with subprocess.Popen(
                [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path}", f"http://{address}"], **quiet
            ) as seen:
                try:
                    port = until(lambda: (tmp_path / "DevToolsActivePort").read_text().split()[0])
                    tabs = json.load(urllib.request.urlopen(f"http://localhost:{port}/json", timeout=5))
                    tab = next(tab for tab in tabs if tab["type"] == "page")
                    with connect(tab["webSocketDebuggerUrl"], max_size=None) as socket_:

                        def evaluate(script):
                            call = {"id": 1, "method": "Runtime.evaluate", "params": {"expression": script}}
                            socket_.send(json.dumps(call))
                            return json.loads(socket_.recv())["result"]["result"].get("value")

                        shown = (
                            "[...document.images].filter(i => i.naturalWidth > 500 && i.offsetWidth > 300).length == 3"
                        )
                        until(lambda: evaluate(shown))
                        evaluate(
                            "[...document.querySelectorAll('button')].find(b => /step/i.test(b.innerText)).click()"
                        )
                        until(lambda: evaluate("document.body.innerText.includes('Round 1 of 20')"))
                        until(lambda: evaluate(shown))
                finally:
                    seen.terminate()
        finally:
            server.terminate()
