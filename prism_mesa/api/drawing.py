"""A run meets its pictures: drawn when it has come to its end, or was broken off."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from prism_mesa.api.results import RunResult, with_figures
from prism_mesa.errors import PrismError
from prism_mesa.runs.lifecycle import RunBrokenError, RunInterruptedError
from prism_mesa.runs.lifecycle import RunResult as KeptRun
from prism_mesa.runs.process.stopping import ended_by_signals


class _Draw(Protocol):
    def __call__(self, run_dir: Path, *, partly: bool) -> list[Path]: ...


@ended_by_signals()
def run_and_draw(go: Callable[[], KeptRun], draw: _Draw) -> RunResult:
    """Run and draw; a run that was broken off has the pictures that can be drawn of it."""
    try:
        result = with_figures(go())
    except (RunBrokenError, RunInterruptedError) as stop:
        if stop.result is not None:
            stop.result = with_figures(stop.result)
            with suppress(PrismError, OSError, KeyboardInterrupt):  # what is told is how the run ended
                stop.result = _with_pictures(stop.result, draw(stop.result.run_dir, partly=True))
        raise
    try:
        return _with_pictures(result, draw(result.run_dir, partly=False))
    except KeyboardInterrupt as stop:
        kept = f"{result.run_dir}: interrupted while its pictures were drawn (the run itself is kept there)"
        raise RunInterruptedError(kept, result) from stop


def _with_pictures(result: RunResult, drawn: list[Path]) -> RunResult:
    told = {"pictures": [str(path) for path in drawn]}
    return replace(result, pictures=tuple(drawn), summary=result.summary | told)


# matplotlib takes as long to load as a small run: it is loaded when there is something to draw


def draw_platform(run_dir: Path, *, partly: bool) -> list[Path]:
    """Draw a run of a platform into its folder."""
    from prism_mesa.view.plots.drawing import draw_run

    return draw_run(run_dir, partly=partly)


def draw_nations(run_dir: Path, *, partly: bool) -> list[Path]:
    """Draw a run of nations into its folder."""
    from prism_mesa.view.plots.economy import draw_economy

    return draw_economy(run_dir, partly=partly)


def draw_nothing(run_dir: Path, *, partly: bool) -> list[Path]:
    """Draw nothing."""
    return []
