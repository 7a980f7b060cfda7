"""A social model on Mesa's page: Mesa's buttons play, step and reset it; the inputs and views are PRISM's.

Mesa's own grid of components stays blank with ipyvuetify 3 (mesa/mesa issue 3806), and its sliders show no values.
"""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable
from typing import Any

from mesa.visualization.solara_viz import ModelController
from mesa.visualization.utils import update_counter
from reacton.core import use_effect, use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError, format_error
from prism_mesa.social.params import AgentsParams, NetworkParams, SocialParams
from prism_mesa.view.page.inputs import INPUT, changed_keys, input_values, make_inputs
from prism_mesa.view.page.live import LiveSource
from prism_mesa.view.page.live_model import PageModel
from prism_mesa.view.page.views import show_views
from prism_mesa.view.page.widgets import Json, fault_page, page_frame, page_head, show_inputs

_INTERVAL = "interval"


@component
def make_page(config: SocialParams | None = None) -> None:
    """Return a page for a model of `config`, by default 200 agents who each follow 20 others.

    Each browser tab has its own model. Changed inputs take effect at the next Reset.
    """
    params = config or SocialParams(agents=AgentsParams(n=200), network=NetworkParams(mean_degree=20))
    first = use_memo(lambda: _attempt(params), [])
    if isinstance(first, str):
        fault_page(first)
    else:
        _live_page(params, first)


def _attempt(config: SocialParams) -> PageModel | str:
    """Return a model, or the reason why it cannot be made."""
    try:
        return PageModel(config)
    except (PrismError, MemoryError) as error:
        return format_error(error)


@component
def _live_page(config: SocialParams, first: PageModel) -> None:
    model: Any = use_reactive(first)
    work = use_reactive("")
    first.on_work = work.set
    values = use_reactive(input_values(config))
    parameters = use_reactive({"config": config, "inputs": values.value, "on_work": work.set})
    interval, every, threads = use_reactive(100), use_reactive(1), use_reactive(False)
    use_effect(lambda: model.value.close, [id(model.value)])  # showing another model closes the previous one

    def change(told_by: Json) -> None:
        if told_by["key"] == _INTERVAL:
            interval.value = int(told_by["value"])
            return
        values.value = {**values.value, told_by["key"]: told_by["value"]}
        parameters.value = {**parameters.value, "inputs": values.value}

    buttons = ModelController(
        model, model_parameters=parameters, play_interval=interval, render_interval=every, use_threads=threads
    )
    controls = [buttons, _controls(config, model.value, values.value, interval.value, change)]
    label = {"aria-label": "Controls"}
    page_frame(
        "a model that runs",
        [
            _head(model.value, work.value),
            Html(tag="section", class_="prism-card prism-controls", attributes=label, children=controls),
            _views(model.value),
        ],
        controls=True,
    )


@component
def _head(model: PageModel, work: str) -> None:
    update_counter.get()
    source = use_memo(lambda: LiveSource(model), [id(model)])
    faults = [f"Stopped: {model.fault}."] if model.fault else []
    faults += [f"Left out: {text.removeprefix(INPUT)}." for text in dict.fromkeys(model.faults.values())]
    page_head(
        work or "a model that runs",
        rounds=source.rounds,
        done=source.at + 1,
        facts=source.facts,
        fault=" ".join(faults),
        notes=model.notes,
    )


@component
def _controls(
    config: SocialParams, model: PageModel, values: dict[str, Any], interval: int, change: Callable[[Json], None]
) -> None:
    changed = set(changed_keys(values, model.inputs))
    with Html(tag="div"):
        if model.round < 0 and not model.fault:
            Html(tag="p", class_="prism-hint", children=["Press play (▶), or Step, to run the first round."])
        if changed:
            count = "1 changed input counts" if len(changed) == 1 else f"{len(changed)} changed inputs count"
            text = f"{count} from the next Reset on."
            Html(tag="p", class_="prism-changed", attributes={"role": "status"}, children=[text])
        faults = {key: text.removeprefix(INPUT) for key, text in model.faults.items() if key not in changed}
        items = []
        for field in make_inputs(config):
            state = {"value": values[field.key], "changed": field.key in changed, "fault": faults.get(field.key, "")}
            items.append({**vars(field), "choices": list(field.choices), **state})
        show_inputs(name="model", items=[*items, _pause(interval)], inline=False, event_change=change)


def _pause(interval: int) -> Json:
    label = "Pause between rounds, ms"
    range_ = {"low": 0, "high": 2000, "step": 50, "choices": [], "changed": False, "fault": ""}
    return {"group": "Speed", "key": _INTERVAL, "label": label, "kind": "slider", "value": interval, **range_}


@component
def _views(model: PageModel) -> None:
    update_counter.get()
    source = use_memo(lambda: LiveSource(model), [id(model)])
    show_views(source, source.at, tell_soon=source.tell_soon)
