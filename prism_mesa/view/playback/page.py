"""The page on finished runs: one that is played back, or two side by side."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reacton.core import Element, use_state
from solara.components.misc import Text
from solara.core import component

from prism_mesa.errors import BadInputError, in_command
from prism_mesa.runs.recorded import is_economy
from prism_mesa.view.playback.nations import nations_page, read_nations
from prism_mesa.view.playback.recorded import RecordedSource, open_recorded
from prism_mesa.view.playback.transport import transport


def runs_view(paths: Sequence[Path]) -> Callable[[], Element[Any]]:
    """Return the page on one finished run, or on two of a platform.

    Raises:
        PrismError: If one is not there or is damaged, or two are not both of a platform.
    """
    of_nations = [is_economy(path) for path in paths]
    if len(paths) > 1 and any(of_nations):
        told = in_command(paths[of_nations.index(True)])
        raise BadInputError(f"{told}: is a run of nations: side by side the page shows runs of platforms")
    if of_nations[0]:
        tables = read_nations(paths[0])
        return lambda: nations_page(tables)
    sources = [open_recorded(path) for path in paths]
    return lambda: playback(sources)


@component
def playback(sources: Sequence[RecordedSource]) -> None:
    """Finished runs at the same round, one beside the other."""
    rounds = max(source.rounds for source in sources)
    at, choose = use_state(rounds - 1)
    transport(at=at, least=-1, rounds=rounds, unit="round", names=[], event_choose=choose)
    for source in sources:
        Text(f"{source.title} {source.at_round(at).at}")
