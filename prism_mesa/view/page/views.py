"""All views of a run at one moment; each reads a `Source` and draws in a card in the browser."""

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
    at: int,
    name: str = "page",
    go: Callable[[int], None] = lambda round_: None,
    beside: Sequence[Source] = (),
) -> None:
    """Show all views of a source at its round `at`.

    An agent that the user chooses by a post is shown in the round in which it wrote the post. `name` distinguishes
    two sets of views on one page, `go` moves the page to another round, and runs `beside` share the axes.
    """
    chosen, fault = use_reactive(most_followed(source)), use_reactive("")
    written = use_reactive((at, -1))  # the page's round at the click, and the round of the clicked post
    round_ = written.value[1] if written.value[0] == at and written.value[1] >= 0 else at
    agent_source = use_memo(lambda: source.at_round(round_), [id(source), at, round_])

    def choose(row: int, post: int = -1) -> None:
        fault.value, chosen.value = "", row
        written.value = at, int(source.posts().round[post]) if post >= 0 else -1

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
        agent_view(agent_source, at, chosen.value, find, fault.value, name, go)
