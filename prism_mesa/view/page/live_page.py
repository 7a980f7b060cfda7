"""A social model on Mesa's page: Mesa's buttons play, step and reset it; the inputs and views are PRISM's.

Mesa's own grid of components is not used because it stays blank with ipyvuetify 3 (mesa/mesa issue 3806), and its
sliders show no values.
"""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable
from typing import Any

from mesa.visualization.solara_viz import ModelController
from mesa.visualization.utils import update_counter
from reacton.core import Element, use_effect, use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError, format_error
from prism_mesa.social.params import AgentsParams, NetworkParams, SocialParams
from prism_mesa.view.page.inputs import ERROR_PREFIX, Input, changed_keys, input_values, make_inputs
from prism_mesa.view.page.live import LiveSource
from prism_mesa.view.page.live_model import PageModel
from prism_mesa.view.page.views import show_views
from prism_mesa.view.page.widgets import Json, page_frame, show_inputs

_INTERVAL = "interval"


@component
def make_page(config: SocialParams | None = None) -> None:
    """Show a model of `config`, by default 200 agents that each follow 20 others.

    Each browser tab has its own model. Changed inputs take effect at the next Reset.
    """
    params = config or SocialParams(agents=AgentsParams(n=200), network=NetworkParams(mean_degree=20))

    def make_model() -> PageModel | str:
        try:
            return PageModel(params)
        except (PrismError, MemoryError) as error:
            return format_error(error)

    model = use_memo(make_model, [])
    if isinstance(model, str):
        page_frame("Nothing to show", [], fault=model)
    else:
        _live_page(params, model)


@component
def _live_page(config: SocialParams, first_model: PageModel) -> None:
    update_counter.get()
    reactive: Any = use_reactive(first_model)
    model: PageModel = reactive.value
    work_message = use_reactive("")
    first_model.on_work = work_message.set
    values = use_reactive(input_values(config))
    parameters = use_reactive({"config": config, "inputs": values.value, "on_work": work_message.set})
    interval, render_every, threads = use_reactive(100), use_reactive(1), use_reactive(False)
    use_effect(lambda: model.close, [id(model)])  # showing another model closes the previous one
    source = use_memo(lambda: LiveSource(model), [id(model)])

    def change_input(item: Json) -> None:
        if item["key"] == _INTERVAL:
            interval.value = int(item["value"])
        else:
            values.value = {**values.value, item["key"]: item["value"]}
            parameters.value = {**parameters.value, "inputs": values.value}

    buttons = ModelController(
        reactive, model_parameters=parameters, play_interval=interval, render_interval=render_every, use_threads=threads
    )
    controls = [buttons, *_controls(config, model, values.value, interval.value, change_input)]
    label = {"aria-label": "Controls"}
    control_panel = Html(tag="section", class_="prism-card prism-controls", attributes=label, children=controls)
    faults = [f"Stopped: {model.fault}."] if model.fault else []
    faults += [f"Left out: {text.removeprefix(ERROR_PREFIX)}." for text in dict.fromkeys(model.faults.values())]
    page_frame(
        "a live model",
        [control_panel, show_views(source, source.round)],
        heading=work_message.value,
        rounds=source.rounds,
        done=source.round + 1,
        facts=source.facts,
        fault=" ".join(faults),
        notes=model.notes,
        controls=True,
    )


def _controls(
    config: SocialParams, model: PageModel, values: dict[str, Any], interval: int, change: Callable[[Json], None]
) -> list[Element[Any]]:
    changed = set(changed_keys(values, model.inputs))
    faults = {key: text.removeprefix(ERROR_PREFIX) for key, text in model.faults.items() if key not in changed}
    parts = []
    if model.round < 0 and not model.fault:
        parts.append(Html(tag="p", class_="prism-hint", children=["Press play (▶), or Step, to run the first round."]))
    if changed:
        changes = "1 changed input takes" if len(changed) == 1 else f"{len(changed)} changed inputs take"
        text = f"{changes} effect at the next Reset."
        parts.append(Html(tag="p", class_="prism-changed", attributes={"role": "status"}, children=[text]))
    items = []
    for field in make_inputs(config):
        state = {"value": values[field.key], "changed": field.key in changed, "fault": faults.get(field.key, "")}
        items.append({**vars(field), "choices": list(field.choices), **state})
    pause_input = Input("Speed", _INTERVAL, "Pause between rounds, ms", "slider", (), 0, 2000, 50)
    items.append({**vars(pause_input), "choices": [], "value": interval, "changed": False, "fault": ""})
    return [*parts, show_inputs(name="model", items=items, inline=False, event_change=change)]
