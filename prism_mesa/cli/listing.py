"""The commands that list runs, and pack a run or study or check an archive."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Argument, Option

from prism_mesa.cli.arguments import AsJson
from prism_mesa.cli.console import with_prism_command
from prism_mesa.errors import BadInputError, RunError, format_count, printable, quote_path, shorten
from prism_mesa.terminal import show_json, show_line

if TYPE_CHECKING:
    from prism_mesa.studies.listing import ListedFolder


_TITLES: Final = ("run", "what", "config", "seed", "status", "age", "size")
_LONGEST_NAME: Final = 60
_LONGEST_STATE: Final = 100
_AGE_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def runs(
    out: Annotated[Path, Argument(metavar="DIR", help="the folder that contains the runs")] = Path("results"),
    as_json: Annotated[bool, Option("--json", help="print one JSON list on stdout, and nothing else")] = False,
) -> None:
    """List runs, newest first, with their status.

    Each line has the kind, the configuration and seed, the status, the age, and the size on disk.
    """
    from dataclasses import asdict

    from prism_mesa.studies.listing import list_folders

    entries = list_folders(out)
    if as_json:
        show_json([asdict(entry) for entry in entries])
        return
    if not entries:
        show_line(f"no runs in {out}")
        return
    rows = [_TITLES, *map(_row, entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
    for row in rows:
        show_line("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    kinds = ("platform", "nations")
    stopped_run = next((run for run in entries if run.status in ("died", "interrupted") and run.kind in kinds), None)
    if stopped_run is not None:
        command = f"prism resume {quote_path(stopped_run.run_dir)}"
        show_line(with_prism_command(f"to continue a run that died or stopped: {command}"))


def _row(run: "ListedFolder") -> Sequence[str]:
    reason = f": {run.error}" if run.status in ("damaged", "failed") and run.error else ""
    name = printable(shorten(Path(run.run_dir).name, _LONGEST_NAME))
    seed = "" if run.seed is None else str(run.seed)
    state = shorten(f"{run.state}{reason}", _LONGEST_STATE)
    return name, run.kind, run.config, seed, state, format_age(run.age_s), format_size(run.size_bytes)


def format_age(seconds: float) -> str:
    """Return an age as a number with its unit.

    >>> format_age(0.2), format_age(3599), format_age(200_000)
    ('0 s', '59 min', '2 d')
    """
    unit, name = next(((unit, name) for unit, name in _AGE_UNITS if seconds >= unit), _AGE_UNITS[-1])
    return f"{int(seconds // unit):,} {name}"


def format_size(n_bytes: int) -> str:
    """Return a size on disk as a number with its unit.

    >>> format_size(0), format_size(12_345), format_size(3_456_789_012)
    ('0 kB', '12 kB', '3.5 GB')
    """
    if n_bytes < 10**6:
        return f"{n_bytes / 1000:.0f} kB"
    return f"{n_bytes / 10**6:,.1f} MB" if n_bytes < 10**9 else f"{n_bytes / 10**9:,.1f} GB"


def archive(
    target: Annotated[
        Path, Argument(metavar="RUN|STUDY|FILE", help="folder of a run or study; with --check or --unpack, an archive")
    ],
    out: Annotated[
        Path | None, Option(metavar="FILE.zip", help="the archive; by default the folder's name with .zip")
    ] = None,
    check: Annotated[bool, Option("--check", help="check an archive for missing or changed files")] = False,
    unpack: Annotated[
        Path | None, Option(metavar="DIR", help="check an archive, and unpack it into an empty folder")
    ] = None,
    data: Annotated[
        bool, Option("--data/--no-data", help="include input files of runs: networks, posts, profiles")
    ] = True,
    license: Annotated[str | None, Option(metavar="NAME|URL", help="licence of the content: CC-BY-4.0")] = None,
    author: Annotated[str | None, Option(metavar="NAME", help="author, for the crate")] = None,
    as_json: AsJson = False,
) -> None:
    """Pack a run or study for a paper, or check an archive.

    The archive is one zip, with the same bytes for the same run: configurations, tables or measures, ledgers, versions,
    the ODD protocol, checksums, and a Process Run Crate. It contains no keys and no paths of this machine. Repeat an
    unpacked run with prism replay.
    """
    if check or unpack is not None:
        if out is not None or license is not None or author is not None or not data:
            raise BadInputError("--check and --unpack read an archive: the other options are only for packing")
        _check(target, unpack, as_json=as_json)
        return
    from prism_mesa.api.archives import archive as pack

    packed = pack(target, out=out, data=data, license=license, author=author)
    if as_json:
        show_json(vars(packed) | {"file": str(packed.file)})
        return
    show_line(f"packed: {packed.file} ({format_count(packed.files, 'file')}, {format_size(packed.size_bytes)})")
    for line in packed.left_out:
        show_line(f"left out: {line}")
    show_line(with_prism_command(f"check it with: prism archive --check {quote_path(packed.file)}"))


def _check(path: Path, unpack: Path | None, *, as_json: bool) -> None:
    from prism_mesa.api.archives import check_archive

    result = check_archive(path, unpack_to=unpack)
    if as_json:
        unpacked = {"unpacked": None if unpack is None or result.faults else str(unpack)}
        show_json(vars(result) | {"path": str(path), "whole": not result.faults} | unpacked)
    else:
        for line in result.faults:
            show_line(line)
        for line in result.left_out:
            show_line(f"left out when packed: {line}")
    if result.faults:
        note = "" if unpack is None else "; nothing was unpacked"
        raise RunError(f"{path} is not whole: {format_count(len(result.faults), 'fault')}{note}")
    if not as_json:
        size = format_size(result.size_bytes)
        show_line(f"whole: {result.kind} {result.name}, {format_count(result.files, 'file')}, {size} unpacked")
        if unpack is not None:
            show_line(f"unpacked: {unpack}")
