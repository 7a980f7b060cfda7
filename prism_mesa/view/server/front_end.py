"""Solara's front end, stored on this machine so that a page needs no internet.

`front_end.json` pins the npm packages that Solara's page names, and the SHA-512 digest of each file that a browser
requests, in the format of browsers and npm (Subresource Integrity). The files lie where Solara looks for them
(``share/solara/cdn`` of the environment, unless its settings say otherwise).
"""

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from prism_mesa.errors import PrismError

FETCH: Final = "prism app --fetch"
_PINNED: Final = Path(__file__).with_name("front_end.json")
_LONGEST_S: Final = 120
"""Seconds that npm, or a server for one file, may take."""


class FrontEndError(PrismError):
    """The front end is missing, cannot be fetched, or does not match its digests."""


@dataclass(frozen=True)
class Package:
    """An npm package with files that a page needs.

    Attributes:
        name: Name and version, such as ``requirejs@2.3.6``.
        integrity: Digest of its archive: ``sha512-`` and base64.
        files: Digests by path within the package.
    """

    name: str
    integrity: str
    files: Mapping[str, str]


@cache
def packages(pins: Path = _PINNED) -> tuple[Package, ...]:
    """Return the packages that a file pins, by default those of the page."""
    pinned = json.loads(pins.read_text(encoding="utf-8"))
    return tuple(Package(name, package["integrity"], package["files"]) for name, package in pinned.items())


def needed_files(of: Sequence[Package] | None = None) -> dict[str, str]:
    """Return digests by path for the files of packages, by default those of the page."""
    wanted = packages() if of is None else of
    return {f"{package.name}/{file}": digest for package in wanted for file, digest in package.files.items()}


def front_end_folder() -> Path:
    """Return the folder in which Solara looks for front ends."""
    from solara.server import settings

    return Path(settings.assets.proxy_cache_dir)


def find_faults(folder: Path, of: Sequence[Package] | None = None) -> dict[str, str]:
    """Return which files of packages, by default those of the page, are ``missing`` or ``damaged`` in a folder."""
    faults = {}
    for name, digest in needed_files(of).items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            faults[name] = "missing"
        else:
            if sha512_digest(content) != digest:
                faults[name] = "damaged"
    return faults


def sha512_digest(content: bytes) -> str:
    """Return the SHA-512 digest of bytes in the format of npm and browsers.

    >>> sha512_digest(b"")[:24]
    'sha512-z4PhNX7vuL3xVChQ1'
    """
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def fetch_front_end(folder: Path, of: Sequence[Package] | None = None) -> list[str]:
    """Fetch missing or damaged files into a folder, by default the front end's, and return their names.

    Files come from npm's registry if npm is installed, else from the server that Solara is set to. Files with another
    digest are discarded.

    Raises:
        FrontEndError: If files cannot be fetched or have other digests, or the folder is not writable.
    """
    wanted = find_faults(folder, of)
    if not wanted:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for package in packages() if of is None else of:
            files = [file for file in package.files if f"{package.name}/{file}" in wanted]
            if files:
                got = _from_npm(package, files) if shutil.which("npm") else _from_address(package, files)
                _keep(got, package, folder)
    except OSError as error:
        what = f"{error.filename or folder}: {error.strerror or error}"
        hint = "SOLARA_ASSETS_PROXY_CACHE_DIR names another folder, then for 'prism app' too"
        raise FrontEndError(f"the front end could not be kept: {what} ({hint})") from None
    return list(wanted)


def _from_npm(package: Package, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a package from the archive that npm fetches.

    Raises:
        FrontEndError: If npm fails, or the archive has another digest.
    """
    with tempfile.TemporaryDirectory() as here:
        archive = _pack(package.name, Path(here)).read_bytes()
        if sha512_digest(archive) != package.integrity:
            raise FrontEndError(f"{package.name}: what npm fetched is not the package that PRISM was made with")
        # unpack once: reading single files would unpack the archive from its start each time
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive))) as opened:
            for file in files:
                content = opened.extractfile(f"package/{file}")
                if content is not None:
                    yield file, content.read()


def _pack(name: str, here: Path) -> Path:
    """Fetch the archive of a package with npm, and return its path.

    Raises:
        FrontEndError: If npm fails.
    """
    npm = shutil.which("npm") or "npm"
    command = [npm, "pack", "--silent", "--fetch-retries=1", f"--pack-destination={here}", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False, cwd=here)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise FrontEndError(
            f"{name}: npm did not fetch it within {_LONGEST_S} s: is there a way to its registry?"
        ) from None
    archives = list(here.glob("*.tgz"))
    if done.returncode or not archives:
        text = " ".join(done.stderr.split()) or f"it ended with {done.returncode}"
        raise FrontEndError(f"{name}: npm could not fetch it: {text[:300]}")
    return archives[0]


def _from_address(package: Package, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield files of a package from the server that Solara's pages use.

    Raises:
        FrontEndError: If a file is not available.
    """
    import httpx
    import solara.settings

    address = f"{solara.settings.assets.cdn}".rstrip("/")
    with httpx.Client(timeout=_LONGEST_S, follow_redirects=True) as client:
        for file in files:
            try:
                answer = client.get(f"{address}/{package.name}/{file}").raise_for_status()
            except httpx.HTTPError as error:
                raise FrontEndError(
                    f"{package.name}: {address} gives no {file}: {error} (npm, if installed, is used)"
                ) from None
            yield file, answer.content


def _keep(got: Iterable[tuple[str, bytes]], package: Package, folder: Path) -> None:
    """Write files into the folder of their package, each atomically.

    Raises:
        FrontEndError: If a file has another digest.
    """
    for file, content in got:
        if sha512_digest(content) != package.files[file]:
            raise FrontEndError(f"{package.name}: {file} is not the file that PRISM was made with: it was not kept")
        place = folder / package.name / file
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as made:
            made.write(content)
        Path(made.name).chmod(0o644)
        os.replace(made.name, place)
