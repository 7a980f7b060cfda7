"""The command that packs a run or study, or checks an archive."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from prism_mesa.cli.arguments import AsJson
from prism_mesa.cli.console import with_prism_command
from prism_mesa.cli.listing import format_size
from prism_mesa.errors import BadInputError, RunError, format_count, quote_path
from prism_mesa.terminal import show_json, show_line


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
    """Check an archive and print the result; raises RunError if something is missing or changed."""
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
