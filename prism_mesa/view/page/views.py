"""All views of a run at one moment; each reads a `Source` and draws in a card in the browser."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence

from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError
from prism_mesa.view.page.agent_view import TellSoon, agent_view, most_followed
from prism_mesa.view.page.cascade_view import cascade_view
from prism_mesa.view.page.network_view import network_view
from prism_mesa.view.page.rounds_views import engagement_view, oracle_view, states_view
from prism_mesa.view.page.source import Source


@component
def show_views(
    source: Source,
    at: int,
    name: str = "page",
    *,
    of_agent: Source | None = None,
    on_choose: Callable[[int], None] = lambda post: None,
    on_ask: Callable[[int], None] = lambda row: None,
    on_go: Callable[[int], None] = lambda round_: None,
    tell_soon: TellSoon = lambda row, on_told: lambda: None,
    beside: Sequence[Source] = (),
) -> None:
    """Show all views of a source at its round `at`.

    Args:
        source: The source to show.
        at: Its round.
        name: Distinguishes two sets of views on one page.
        of_agent: The moment at which to show the chosen agent, if it differs.
        on_choose: Called when the user chooses an agent, with the clicked post of a cascade or -1.
        on_ask: Called with the agent that the user wants explained (see `AgentOnShow.ask`).
        on_go: Called with the agent's round when the user moves all views there.
        tell_soon: Called with the displayed agent; see `agent_view`.
        beside: Other runs on the page, which share the axes.
    """
    chosen = use_reactive(most_followed(source))
    fault = use_reactive("")

    def choose(row: int, post: int = -1) -> None:
        fault.value, chosen.value = "", row
        on_choose(post)

    def find(text: str) -> None:
        try:
            choose(source.find_agent(text))
        except PrismError as error:
            fault.value = str(error)

    with Html(tag="div", class_="prism-views"):
        states_view(source, at, beside)
        engagement_view(source, at, beside)
        oracle_view(source, at, beside)
        network_view(source, at, chosen.value, choose, name)
        cascade_view(source, at, chosen.value, choose, name)
        shown = of_agent or source
        agent_view(shown, shown.at, chosen.value, find, fault.value, name, on_ask, at, on_go, tell_soon)
