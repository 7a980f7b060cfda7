"""The page as a person meets it: in headless Chromium, with no way to any other machine."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from forked import PYTHON

from prism_mesa.view.server.front_end import find_faults, front_end_folder, read_packages

HERE = Path(__file__).parent
AXE = read_packages(HERE / "axe_core.json")
WIDTHS = {"phone": (390, 844), "laptop": (1280, 800), "wide": (1920, 1080)}


def has_front_end():
    """Return whether the front end is there; asked for when the test runs, since importing Solara takes a while."""
    return not find_faults(front_end_folder())


class Served:
    """The server with small runs, in a process of its own."""

    def __init__(self, folder):
        command = [*PYTHON, str(HERE / "served_pages.py"), str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        text = self.process.stdout.readline()
        assert text, "the server did not start"
        self.__dict__ |= json.loads(text)

    def show(self, kind, *paths, overrides=()):
        """Let the page show something from its next load on."""
        text = {"kind": kind, "paths": [str(path) for path in paths], "overrides": overrides}
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "shown\n"


@pytest.fixture
def served(tmp_path):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: 'apt-get install chromium'")
    if not has_front_end():
        pytest.skip("the page's front end is not here: 'prism app --fetch'")
    server = Served(tmp_path / "runs")
    yield server
    server.process.stdin.close()
    server.process.wait(20)
    server.process.stdout.close()


def serious_faults(tab):
    """Return the serious faults that axe-core finds on a page, none where it is not there: `.ci/run` fetches it."""
    folder = front_end_folder()
    if find_faults(folder, AXE):
        return []
    tab.run((folder / AXE[0].name / "axe.min.js").read_text() + "; 0")
    faults = tab.run("axe.run().then(found => found.violations)")
    return [
        f"{fault['id']}: {fault['help']}: {node['html'][:120]}"
        for fault in faults
        for node in fault["nodes"]
        if fault["impact"] in ("serious", "critical")
    ]


def see(tab, folder, name):
    """Keep screenshots at three widths, and check that nothing of the page is wider than the window."""
    for width, (across, down) in WIDTHS.items():
        tab.size(across, down)
        time.sleep(0.3)  # pictures are drawn anew
        tab.picture(folder / f"{name}-{width}.png")
        assert tab.run("document.documentElement.scrollWidth") <= across, (name, width)
    tab.size(*WIDTHS["laptop"])


def live_model(tab, served):
    """Step, reset, change an input, choose an agent."""
    served.show(
        "model", overrides=["agents.n=60", "network.mean_degree=8", "agents.activity=0.6", "reasoner.kind=rule"]
    )
    tab.open(served.url)
    tab.wait_text("0 of 56 rounds")
    tab.click_text("Step")
    tab.wait_text("1 of 56 rounds")
    tab.click_text("Step")
    tab.wait_text("2 of 56 rounds")
    tab.run(_SET_SEED)
    tab.wait_text("1 changed input takes effect at the next Reset.")
    tab.click_text("Reset")
    tab.wait_text("0 of 56 rounds")
    tab.wait("[...document.querySelectorAll('.prism-facts div')].some(one => one.innerText.match(/seed\\s*7$/))")
    choose_agent(tab, "17")
    tab.wait_text("agent 17")


_SET_SEED = """(() => {
  const input = document.getElementById('prism-model-seed');
  input.value = '7';
  for (const kind of ['input', 'change']) input.dispatchEvent(new Event(kind, {bubbles: true}));
})()"""


def choose_agent(tab, text):
    """Name an agent in the card of agents."""
    tab.click("document.querySelector('.prism-find input')")
    tab.ask("Input.insertText", text=text)
    tab.click("document.querySelector('.prism-find button')")


def recorded_run(tab, served):
    """Play a run back, then forwards, and find out why an agent did what it did."""
    served.show("runs", served.runs["one"])
    tab.open(served.url)
    tab.wait_text("round 5 (last: 5)", 30)
    tab.click_text("back")
    tab.wait_text("round 4 (last: 5)")
    tab.click_text("first")
    tab.wait_text("before the first round")
    tab.click_text("play")
    tab.wait_text("round 5 (last: 5)", 20)
    before = tab.run("document.querySelector('.prism-who').innerText")
    tab.click_text("liked")
    tab.wait(f"document.querySelector('.prism-who').innerText !== {json.dumps(before)}")
    tab.click("document.querySelector('.prism-ask')")
    tab.wait_text("Utility is the value of a post to it")


def two_runs(tab, served):
    """Look at two runs side by side."""
    served.show("runs", served.runs["one"], served.runs["other"])
    tab.open(served.url)
    tab.wait_text("up to this round")
    tab.wait("document.querySelectorAll('.view-network canvas').length === 2")
    tab.click_text("first")
    tab.wait("[...document.querySelectorAll('.prism-differences tbody td')].every(one => one.innerText.match(/^0$/))")


def nations(tab, served):
    """Look at the policies of a quarter."""
    served.show("runs", served.runs["nations"])
    tab.open(served.url)
    tab.wait_text("quarter 3 (last: 3)", 30)
    tab.wait_text("Taylor's rule gives")
    tab.wait("[...document.images].some(one => one.alt.startsWith('Output gap') && one.complete)")
    tab.click_text("back")
    tab.wait_text("2010Q2")


def wrong_input(tab, served, folder):
    """See on the page what is wrong, and the page again once it was mended."""
    bad = folder / "bad.yaml"
    bad.write_text("agents: {n: -3}\n")
    wanted = {
        ("runs", "nowhere"): "nowhere: no run there: there is no such folder",
        ("model", bad): "agents.n",
        ("runs", served.runs["nations"], served.runs["one"]): "is a run of nations; two runs",
    }
    for (kind, *paths), text in wanted.items():
        served.show(kind, *paths)
        tab.open(served.url)
        tab.wait_text(text)
    bad.write_text("agents: {n: 60}\nnetwork: {mean_degree: 8}\n")
    served.show("model", bad)
    tab.open(served.url)
    tab.wait_text("0 of 56 rounds")


@pytest.mark.slow
def test_a_person_steps_a_model_plays_back_runs_and_is_told_what_is_wrong(served, tmp_path):
    with Browser(tmp_path / "profile", *WIDTHS["laptop"]) as tab:
        for visit in (live_model, recorded_run, two_runs, nations):
            visit(tab, served)
            see(tab, tmp_path, visit.__name__)
            assert serious_faults(tab) == [], visit.__name__
        wrong_input(tab, served, tmp_path)
        assert (tab.errors, tab.elsewhere) == ([], [])
    assert served.process.poll() is None
