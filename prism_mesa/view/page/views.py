"""All views of a run at one moment; each reads a `Source`, stands in a card, and draws in the browser."""

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
    """All views of a source at its round `at`.

    Args:
        source: What is shown.
        at: Its round.
        name: Tells two sets of views on one page apart.
        of_agent: The moment at which the chosen agent is shown, if it is another one.
        on_choose: Called as an agent is chosen, with the post in a cascade by which it was, or -1.
        on_ask: Called with the agent of which the user wants to know why (see `AgentOnShow.ask`).
        on_go: Called with the round of the agent, if all views are to go there.
        tell_soon: Called with the agent on show; see `agent_view`.
        beside: Runs that stand beside this one, whose axes it shares.
    """
    chosen = use_reactive(most_followed(source))
    fault = use_reactive("")

    def choose(row: int, post: int = -1) -> None:
        fault.value, chosen.value = "", row
        on_choose(post)

    def find(said: str) -> None:
        try:
            choose(source.find_agent(said))
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
