"""The command that lists runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prism_mesa.cli.console import as_typed
from prism_mesa.errors import in_command, printable, shortened
from prism_mesa.terminal import show_json, show_line

if TYPE_CHECKING:
    from prism_mesa.studies.listing import Listed

_TITLES: Final = ("run", "what", "config", "seed", "status", "age", "size")
_LONGEST_NAME: Final = 60
_LONGEST_STATE: Final = 100
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def runs(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="the folder in which runs lie")] = Path("results"),
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON list on stdout, and nothing else there")
    ] = False,
) -> None:
    """List runs, newest first, and how each stands.

    Each has a line: what it is, its configuration and seed, how it stands, its age, and its size on disk.
    """
    from dataclasses import asdict

    from prism_mesa.studies.listing import listed

    found = listed(out)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    if not found:
        show_line(f"no runs in {out}")
        return
    rows = [_TITLES, *map(_row, found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_TITLES))]
    for row in rows:
        show_line("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    kinds = ("platform", "nations")
    stopped = next((one for one in found if one.status in ("died", "interrupted") and one.kind in kinds), None)
    if stopped is not None:
        show_line(as_typed(f"what died or was interrupted goes on with: prism resume {in_command(stopped.run_dir)}"))


def _row(one: "Listed") -> Sequence[str]:
    why = f": {one.error}" if one.status in ("damaged", "failed") and one.error else ""
    name = printable(shortened(Path(one.run_dir).name, _LONGEST_NAME))
    seed = "" if one.seed is None else str(one.seed)
    state = shortened(f"{one.state}{why}", _LONGEST_STATE)
    return name, one.kind, one.config, seed, state, age_in_words(one.age_s), size_in_words(one.size_bytes)


def age_in_words(seconds: float) -> str:
    """Return how long ago something was.

    >>> age_in_words(0.2), age_in_words(3599), age_in_words(200_000)
    ('0 s', '59 min', '2 d')
    """
    unit, name = next(((unit, name) for unit, name in _AGES if seconds >= unit), _AGES[-1])
    return f"{int(seconds // unit):,} {name}"


def size_in_words(n_bytes: int) -> str:
    """Return a size on disk.

    >>> size_in_words(0), size_in_words(12_345), size_in_words(3_456_789_012)
    ('0 kB', '12 kB', '3.5 GB')
    """
    if n_bytes < 10**6:
        return f"{n_bytes / 1000:.0f} kB"
    return f"{n_bytes / 10**6:,.1f} MB" if n_bytes < 10**9 else f"{n_bytes / 10**9:,.1f} GB"
