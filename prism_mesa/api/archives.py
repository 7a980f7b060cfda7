"""Runs and studies as archives, for the supplement of a paper."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism_mesa.studies.supplement.checking import Checked
    from prism_mesa.studies.supplement.packed import Packed


def archive(
    folder: str | os.PathLike[str],
    *,
    out: str | Path | None = None,
    data: bool = True,
    license: str | None = None,
    author: str | None = None,
) -> "Packed":
    """Write the archive of a run or a study: one zip, of the same bytes for the same content.

    It holds configurations, tables or measures, ledgers, versions, the ODD protocol, checksums and a Process Run Crate,
    without keys and paths of this machine.

    Args:
        folder: The folder of a run (or a `RunResult`), or of a study; it is only read.
        out: The file; by default the folder's name with ``.zip``, beside it.
        data: Whether files that runs read (a network, posts, profiles) are packed.
        license: Under which the content may be used: its address or SPDX name.
        author: Who made it.

    Raises:
        DataError: If there is no run and no study, it has not come to an end, holds a secret that cannot be taken out,
            or something else has the name of the file.
        RunError: If the file cannot be written.
    """
    from prism_mesa.studies.supplement.packed import pack
    from prism_mesa.view.study.odd.sections import odd_text

    return pack(
        Path(os.fspath(folder)),
        lambda worlds, varied, question, load: odd_text(worlds, varied, question, load=load),
        out=None if out is None else Path(out),
        data=data,
        license=license,
        author=author,
    )


def check_archive(path: str | Path, *, unpack_to: str | Path | None = None) -> "Checked":
    """Return whether an archive, a zip or the folder it was unpacked into, is whole, and what is missing or changed.

    Args:
        path: The archive. It is data: nothing in it is run, and nothing of it is written but below `unpack_to`.
        unpack_to: A folder, missing or empty, into which it is unpacked if it is whole.

    Raises:
        DataError: If it is no archive, is damaged as a zip, a name in it leads out of its folder, it unpacks to more
            than an archive has, or there is something in the folder.
        RunError: If the folder cannot be written.
    """
    from prism_mesa.studies.supplement.checking import check

    return check(Path(path), out=None if unpack_to is None else Path(unpack_to))
