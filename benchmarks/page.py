"""What the live page costs: a round with all views, a click on an agent, and memory over many rounds and resets.

The page is rendered in this process, without a browser: what it sends is made, and its length counted, but nothing is
drawn. Beside it an equal model runs without a page; what memory two such models take more is taken off. It asserts that
both have the same results, that a page makes no more widgets as it goes on, and that no model but the last stays after
resets. Seconds on the wall, one process.

    uv run --group bench python benchmarks/page.py
    uv run --group bench python benchmarks/page.py --quick
"""

import argparse
import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any, Final

import ipyvuetify as v
import ipywidgets
import solara
from measuring import at_least, at_most, machine, print_targets, rounds_of, rss_bytes, say, wall_s

from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.state.chunks import map_large_blocks, trim_heap
from prism_mesa.view.page import live_page
from prism_mesa.view.page.live_model import PageModel

CLICKS: Final = 20
LONGEST_S: Final = 60
ROUNDS_A_REST: Final = 10
"""After so many rounds one follows that is looked at until it is told why."""


class Page:
    """A page that is rendered here, and the models that it has made."""

    def __init__(self, config: SocialParams) -> None:
        made: list[weakref.ref[PageModel]] = []

        class Shown(PageModel):
            def __init__(self, config: SocialParams, inputs: Any = None, on_work: Any = lambda _: None) -> None:
                super().__init__(config, inputs, on_work)
                made.append(weakref.ref(self))

        self.made = made
        live_page.PageModel = Shown  # type: ignore[misc]
        self.box, self.rendered = solara.render(live_page.make_page(config), handle_error=False)

    @property
    def model(self) -> PageModel:
        """The model on show."""
        model = self.made[-1]()
        assert model is not None
        return model

    def press(self, label: str) -> None:
        """Press a button."""
        next(one for one in self.widgets() if isinstance(one, v.Btn) and one.children == [label]).click()

    def choose(self, row: int) -> None:
        """Click an agent of the network, and wait until the page shows it: another thread may be drawing just now."""
        graphs = [one for one in self.widgets() if one.has_trait("nodes")]
        network = next(one for one in graphs if one.nodes["key"].startswith("network"))
        network.vue_pick({"id": row, "node": row})
        end = time.monotonic() + LONGEST_S
        while self.card["row"] != row:
            assert time.monotonic() < end, f"agent {row} is not shown"
            time.sleep(0.001)

    @property
    def card(self) -> Any:
        """The agent on show."""
        return next(one for one in self.widgets() if one.has_trait("suggested")).card

    def wait_told(self) -> None:
        """Wait until the page tells why the agent on show did what it did, which another thread finds out."""
        while self.card["why_note"].startswith("The reasons follow"):
            time.sleep(0.005)

    def widgets(self) -> Iterator[Any]:
        """Yield all widgets of the page."""
        waiting: list[Any] = [self.box]
        while waiting:
            widget = waiting.pop()
            yield widget
            waiting += [one for one in getattr(widget, "children", ()) if isinstance(one, ipywidgets.Widget)]


def config_of(n: int, rounds: int) -> SocialParams:
    """Return the default world of `n` agents."""
    return SocialParams.model_validate({"agents": {"n": n}, "rounds": rounds})


def _tidy_up() -> None:
    """Let go of what nobody holds, so that what is measured is what is in use."""
    gc.collect()
    trim_heap()


def measure_models(n: int, rounds: int) -> float:
    """Return the growth of memory in the last half of the rounds of two models without a page, MB: posts, mostly."""
    models, half = [SocialModel(config_of(n, rounds)) for _ in range(2)], 0.0
    for i in range(rounds):
        for model in models:
            model.step()
        if i in (rounds // 2, rounds - 1):
            _tidy_up()
        half = rss_bytes() / 1e6 if i == rounds // 2 else half
    grown = rss_bytes() / 1e6 - half
    print(f"| memory from round {rounds // 2} to {rounds}: two models without a page | {grown:+.1f} MB |", flush=True)
    return grown


def measure_rounds(n: int, rounds: int) -> tuple[float, float, float]:
    """Return seconds of a round with all views, seconds of a click, and the growth of memory in the last half, MB."""
    page, alone = Page(config_of(n, rounds)), SocialModel(config_of(n, rounds))
    times, own, clicks, told, half, n_widgets = rounds_of(), rounds_of(), rounds_of(), rounds_of(), 0.0, 0
    for i in range(rounds):
        times.all.append(wall_s(lambda: page.press("Step")))
        own.all.append(wall_s(alone.step))
        if i % ROUNDS_A_REST == ROUNDS_A_REST - 1:
            page.wait_told()
        if i in (rounds // 2, rounds - 1):
            _tidy_up()
            say(f"round {i}: {times.all[-1]:.3f} s, {rss_bytes() / 1e6:.0f} MB, {len(list(page.widgets()))} widgets")
        if i == rounds // 2:
            half, n_widgets = rss_bytes() / 1e6, len(list(page.widgets()))
            alone_posts = len(alone.posts)
    grown = rss_bytes() / 1e6 - half
    assert len(list(page.widgets())) == n_widgets, "the page makes more and more widgets"
    assert page.model.datacollector.get_model_vars_dataframe().equals(alone.datacollector.get_model_vars_dataframe())
    for row in range(1, CLICKS + 1):
        clicks.all.append(wall_s(lambda row=row: page.choose(row)))  # type: ignore[misc]
        told.all.append(clicks.all[-1] + wall_s(page.wait_told))
    print(f"| a round with all views, s: median (minimum) | {times} |")
    print(f"| the same model's round without a page | {own} |")
    print(f"| a click on an agent | {clicks} |")
    print(f"| the same, until it is told why | {told} |")
    more = f"page, and two models, each of which has {len(alone.posts) - alone_posts:,} posts more"
    print(f"| memory from round {rounds // 2} to {rounds}: {more} | {grown:+.1f} MB |", flush=True)
    page.rendered.close()
    return times.median, clicks.median, grown


def measure_resets(n: int, resets: int) -> float:
    """Return by how much memory grows over the last half of many resets, MB; after each, a round is run."""
    page, half = Page(config_of(n, 10)), 0.0
    for i in range(resets):
        page.press("Reset")
        page.press("Step")
        _tidy_up()
        half = rss_bytes() / 1e6 if i == resets // 2 else half
        say(f"reset {i}: {rss_bytes() / 1e6:.0f} MB")
    grown = rss_bytes() / 1e6 - half
    alive = sum(model() is not None for model in page.made)
    assert alive <= 2, f"{alive} models are still there after {resets} resets"
    print(f"| memory over the last {resets - resets // 2} of {resets} resets | {grown:+.1f} MB |", flush=True)
    page.rendered.close()
    return grown


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--agents", type=int, default=2000)
    options.add_argument("--rounds", type=int, default=500)
    options.add_argument("--resets", type=int, default=50)
    options.add_argument("--quick", action="store_true", help="see in seconds that everything runs; times mean nothing")
    given = options.parse_args()
    n, rounds, resets = (100, 10, 4) if given.quick else (given.agents, given.rounds, given.resets)
    map_large_blocks()  # as `prism app` does
    print(machine("mesa", "solara", "numpy"), "\n\n| what | measured |\n|---|--:|", flush=True)
    models = measure_models(n, rounds)
    round_s, click_s, grown = measure_rounds(n, rounds)
    again = measure_resets(n, resets)
    told = (lambda value: None) if given.quick else (lambda value: value)
    print_targets(
        [
            at_least("rounds a second with all views", 2, told(1 / round_s)),
            at_most("a click shows an agent, s", 0.5, told(click_s)),
            at_most("growth of memory over the last half of the rounds, the page's, MB", 10, told(grown - models)),
            at_most("growth of memory over the last half of the resets, MB", 20, told(again)),
        ]
    )


if __name__ == "__main__":
    main()
