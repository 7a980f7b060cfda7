"""The bar with which a recorded run is moved to another round: forwards, backwards, by a slider, or played."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence

from solara.components.component_vue import component_vue


@component_vue("transport.vue")
def transport(
    at: int, least: int, rounds: int, unit: str, names: Sequence[str], event_choose: Callable[[int], None]
) -> None:
    """Show where in a run the page is, and let the user go elsewhere.

    While the page is still drawing a round, the bar asks for no other one, so playing never runs ahead of it.

    Args:
        at: The round on show.
        least: The first one that can be chosen, -1: before the first round.
        rounds: How many there are.
        unit: What one is called.
        names: A name of each beside its number; empty: none.
        event_choose: Called with the round that the user wants.
    """
