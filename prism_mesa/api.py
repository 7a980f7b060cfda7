"""What users call to run something: a run and its pictures. They meet here, and only here."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from prism_mesa.errors import PrismError
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.runs.economy import run_economy as run_nations
from prism_mesa.runs.lifecycle import RunBrokenError, RunInterruptedError, RunResult
from prism_mesa.runs.social import run as run_platform
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import Statechart


def run(
    config: Config | Mapping[str, Any] | None = None,
    *,
    out: str | Path = "results",
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
    pictures: bool = True,
) -> RunResult:
    """Run a configuration and keep its records and pictures in ``out/<run-id>``, as ``prism run`` does.

    Args:
        config: A `Config`, nested values for one, or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        chart: A chart of your own, as an object.
        reasoner: Who is asked, as an object (``Reasoner(function)``); with `content: llm` it writes as well. The folder
            of such a run has its ledger, but cannot be repeated from the command line.
        prepare: Called with the model before its first round, to add agents of your own. Neither it nor
            `chart` nor `reasoner` stands in the manifest's configuration, which says so.
        on_round: Called with the number of rounds done, after each round.
        pictures: Whether states.png, cascades.png and engagement.png are drawn, which takes a second or two.

    Returns:
        The result; its status is `failed` if more answers were fallbacks than
        `reasoner.max_fallback_share` allows (the tables are kept).

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If the run cannot go on; its folder says so, and keeps what was recorded. The same holds
            for KeyboardInterrupt, after which its status is `interrupted`. Both have the attribute `result`, and
            pictures of what there is.
    """

    def go() -> RunResult:
        return run_platform(config, out=out, chart=chart, reasoner=reasoner, prepare=prepare, on_round=on_round)

    return _drawn(go, _draw_platform if pictures else _draw_nothing)


def run_economy(
    config: EconomyConfig | Mapping[str, Any] | None = None,
    *,
    out: str | Path = "results",
    llm: Any = None,
    on_round: Callable[[int], None] | None = None,
    pictures: bool = True,
) -> RunResult:
    """Run nations and keep their records and pictures in ``out/<run-id>``, as ``prism economy`` does.

    Args:
        config: An `EconomyConfig`, nested values for one, or None for the default run.
        out: Parent folder of the run's folder; made if missing.
        llm: Who is asked, as for `EconomyModel`; None: what the configuration names.
        on_round: Called with the number of quarters done, before the first, which may take a minute, and after each.
        pictures: Whether indicators.png, policies.png and responses.png are drawn, which takes a second or two.

    Raises:
        BadInputError: If input is bad; no folder is made.
        RunError: If an LLM gave no usable answer, or the run cannot go on for another reason; its folder says so, and
            keeps what was recorded. The same holds for KeyboardInterrupt, after which its status is `interrupted`.
            Both have the attribute `result`, and pictures of what there is.
    """

    def go() -> RunResult:
        return run_nations(config, out=out, llm=llm, on_round=on_round)

    return _drawn(go, _draw_nations if pictures else _draw_nothing)


class _Draw(Protocol):
    def __call__(self, run_dir: Path, *, partly: bool) -> list[Path]: ...


def _drawn(go: Callable[[], RunResult], draw: _Draw) -> RunResult:
    """Return a result with its pictures; a run that was broken off has those that can be drawn of it."""
    try:
        result = go()
    except (RunBrokenError, RunInterruptedError) as stop:
        if stop.result is not None:
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


def _draw_platform(run_dir: Path, *, partly: bool) -> list[Path]:
    from prism_mesa.view.plots import draw_run

    return draw_run(run_dir, partly=partly)


def _draw_nations(run_dir: Path, *, partly: bool) -> list[Path]:
    from prism_mesa.view.economy_plots import draw_economy

    return draw_economy(run_dir, partly=partly)


def _draw_nothing(run_dir: Path, *, partly: bool) -> list[Path]:
    return []
