"""Archives of runs and studies for a paper's supplement."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism_mesa.studies.supplement.checking import ArchiveCheck
    from prism_mesa.studies.supplement.packed import PackedArchive


def archive(
    folder: str | os.PathLike[str],
    *,
    out: str | Path | None = None,
    data: bool = True,
    license: str | None = None,
    author: str | None = None,
) -> "PackedArchive":
    """Write the archive of a run or a study: one zip, with the same bytes for the same content.

    It contains configurations, tables or measures, ledgers, versions, the ODD protocol, checksums and a Process Run
    Crate, but no keys and no paths of this machine.

    Args:
        folder: The folder of a run or a study, or a `RunResult`; it is only read.
        out: The file; by default next to the folder, with its name and ``.zip``.
        data: Whether to pack the input files of runs (a network, posts, profiles).
        license: The license of the content, by SPDX name or address.
        author: The author's name.

    Raises:
        DataError: If there is no run or study, it has not ended, it contains a secret that cannot be removed, or `out`
            exists and is not an archive.
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


def check_archive(path: str | Path, *, unpack_to: str | Path | None = None) -> "ArchiveCheck":
    """Return whether an archive is complete, and which files are missing or changed.

    Args:
        path: The archive, a zip or an unpacked folder. Nothing in it is run.
        unpack_to: A missing or empty folder to unpack a complete archive into.

    Raises:
        DataError: If the file is not an archive, is damaged, would write outside its folder, or is too large when
            unpacked, or if the folder is not empty.
        RunError: If the folder cannot be written.
    """
    from prism_mesa.studies.supplement.checking import check

    return check(Path(path), out=None if unpack_to is None else Path(unpack_to))
