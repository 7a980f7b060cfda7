"""Mesa's page on a social model: of the config that PRISM_APP_CONFIG names, else a small one."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
import os
from pathlib import Path
from typing import Any

from mesa.visualization.solara_viz import ModelController
from mesa.visualization.utils import update_counter
from reacton.core import use_effect, use_memo
from reacton.ipyvuetify import Html
from solara.components.style import Style
from solara.components.title import Title
from solara.core import component
from solara.hooks.use_reactive import use_reactive
from solara.lab import ThemeToggle

from prism_mesa.errors import PrismError, told
from prism_mesa.runs.config import load_config
from prism_mesa.social.params import AgentsParams, NetworkParams, SocialParams
from prism_mesa.view.page.inputs import changed_keys, inputs_of, values_of
from prism_mesa.view.page.live import LiveSource
from prism_mesa.view.page.live_model import PageModel
from prism_mesa.view.page.views import show_views
from prism_mesa.view.page.widgets import Json, show_head, show_inputs

STYLE = Path(__file__).parent / "page.css"
"""How the page looks."""


@component
def Layout(children: Any = ()) -> None:  # noqa: N802 - the name that solara looks for
    """The whole window, without bars of solara's own."""
    Style(STYLE)
    Html(tag="main", children=list(children))


@component
def show_fault(said: str) -> None:
    """A page that has nothing to show but why."""
    Title("PRISM")
    with Html(tag="div", class_="prism-page"):
        show_head(title="", rounds=1, done=0, facts=[], fault=said, notes=[])


@component
def make_page(config: SocialParams | None = None) -> None:
    """A page on a model of `config`; by default of 200 agents who follow 20 others.

    Each browser tab has a model of its own. Changed inputs count from the next Reset on.
    """
    own = config or SocialParams(agents=AgentsParams(n=200), network=NetworkParams(mean_degree=20))
    first = use_memo(lambda: _attempt(own), [])
    if isinstance(first, str):
        show_fault(first)
    else:
        _live_page(own, first)


def _attempt(config: SocialParams) -> PageModel | str:
    """Return a model, or why there is none."""
    try:
        return PageModel(config)
    except (PrismError, MemoryError) as error:
        return told(error)


@component
def _live_page(config: SocialParams, first: PageModel) -> None:
    model: Any = use_reactive(first)
    busy = use_reactive(False)
    values = use_reactive(values_of(config))
    parameters = use_reactive({"config": config, "inputs": values.value, "on_begin": busy.set})
    interval, every, threads = use_reactive(100), use_reactive(1), use_reactive(False)

    def close_later() -> Any:
        shown = model.value
        return shown.close

    use_effect(close_later, [model.value])

    def change(told_by: Json) -> None:
        if told_by["key"] == "interval":
            interval.value = int(told_by["value"])
            return
        values.value = {**values.value, told_by["key"]: told_by["value"]}
        parameters.value = {**parameters.value, "inputs": values.value}

    Title("PRISM")
    with Html(tag="div", class_="prism-page with-controls"):
        _shown_head(model.value, busy.value)
        with Html(tag="section", class_="prism-card prism-controls", attributes={"aria-label": "Controls"}):
            ModelController(
                model,
                model_parameters=parameters,
                play_interval=interval,
                render_interval=every,
                use_threads=threads,
            )
            _shown_inputs(config, model.value, values.value, interval.value, change)
        _shown_views(model.value)


@component
def _shown_head(model: PageModel, busy: bool) -> None:
    update_counter.get()
    source = use_memo(lambda: LiveSource(model), [id(model)])
    faults = [f"Stopped: {model.fault}."] if model.fault else []
    faults += [f"Left out: {said}" for said in model.faults.values()]
    show_head(
        title="A new model is being made ..." if busy else source.title,
        rounds=source.rounds,
        done=source.at + 1,
        facts=[list(pair) for pair in source.facts],
        fault=" ".join(faults),
        notes=list(model.notes),
    )


@component
def _shown_inputs(config: SocialParams, model: PageModel, values: Any, interval: int, change: Any) -> None:
    changed = set(changed_keys(values, model.inputs))
    if changed:
        said = f"{len(changed)} changed {'input counts' if len(changed) == 1 else 'inputs count'} from the next Reset."
        Html(tag="p", class_="prism-changed", attributes={"role": "status"}, children=[said])
    pause: Json = {
        "group": "Play",
        "key": "interval",
        "label": "Pause between rounds, ms",
        "kind": "slider",
        "value": interval,
        "low": 0,
        "high": 2000,
        "step": 50,
        "choices": [],
        "changed": False,
        "fault": "",
    }
    items = [
        {
            "group": one.group,
            "key": one.key,
            "label": one.label,
            "kind": one.kind,
            "value": values[one.key],
            "choices": list(one.choices),
            "low": one.low,
            "high": one.high,
            "step": one.step,
            "changed": one.key in changed,
            "fault": model.faults.get(one.key, "") if one.key not in changed else "",
        }
        for one in inputs_of(config)
    ]
    show_inputs(name="model", items=[pause, *items], inline=False, event_change=change)
    ThemeToggle()


@component
def _shown_views(model: PageModel) -> None:
    update_counter.get()
    source = use_memo(lambda: LiveSource(model), [id(model)])
    show_views(source, source.at)


def _page() -> Any:
    """Return the page of this process, or one that says what is wrong with its config."""
    file = os.environ.get("PRISM_APP_CONFIG")
    try:
        return make_page(load_config(file) if file else None)
    except PrismError as error:
        return show_fault(told(error))


page = _page()
