"""All views of a run at one round; each reads a `Source` and draws a card in the browser."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence

from reacton.core import use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError
from prism_mesa.view.page.agent_view import agent_view, most_followed
from prism_mesa.view.page.cascade_view import cascade_view
from prism_mesa.view.page.network_view import network_view
from prism_mesa.view.page.rounds_views import engagement_view, oracle_view, states_view
from prism_mesa.view.page.source import Source


@component
def show_views(
    source: Source,
    page_round: int,
    name: str = "page",
    go_to_round: Callable[[int], None] = lambda round_: None,
    compared: Sequence[Source] = (),
) -> None:
    """Show all views of a source at its round `page_round`.

    After a click on a post, its author is shown in the round in which it was written. `name` distinguishes the
    sets of views on one page, `go_to_round` changes the page's round, and the runs in `compared` share the axes.
    """
    selected, fault = use_reactive(most_followed(source)), use_reactive("")
    click = use_reactive((page_round, -1))  # the page's round at the click, and the round of the clicked post
    round_ = click.value[1] if click.value[0] == page_round and click.value[1] >= 0 else page_round
    agent_source = use_memo(lambda: source.at_round(round_), [id(source), page_round, round_])

    def select(row: int, post: int = -1) -> None:
        fault.value, selected.value = "", row
        click.value = page_round, int(source.posts().round[post]) if post >= 0 else -1

    def find_agent(text: str) -> None:
        try:
            select(source.find_agent(text))
        except PrismError as error:
            fault.value = str(error)

    with Html(tag="div", class_="prism-views"):
        states_view(source, page_round, compared)
        engagement_view(source, page_round, compared)
        oracle_view(source, page_round, compared)
        network_view(source, page_round, selected.value, select, name)
        cascade_view(source, page_round, selected.value, select, name)
        agent_view(agent_source, page_round, selected.value, find_agent, fault.value, name, go_to_round)
