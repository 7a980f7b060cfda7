"""Solara's front end, stored on this machine so that a page needs no internet.

`front_end.json` pins the npm packages of Solara's page, and the SHA-512 digest of each file that a browser
requests, in the format of browsers and npm (Subresource Integrity). The files are stored where Solara looks
for them (by default in ``share/solara/cdn`` of the environment).
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
from pathlib import Path
from typing import Final

from prism_mesa.errors import PrismError

FETCH: Final = "prism app --fetch"
_TIMEOUT_S: Final = 120
"""Time limit in seconds for npm, and for each file from a server."""


class FrontEndError(PrismError):
    """The front end is missing, cannot be fetched, or does not match its digests."""


@dataclass(frozen=True)
class Package:
    """An npm package, such as ``requirejs@2.3.6``, with digests of its archive and of the files that a page needs."""

    name: str
    integrity: str
    files: Mapping[str, str]


def read_packages(pins: Path) -> tuple[Package, ...]:
    """Return the packages that a file pins."""
    return tuple(Package(name, **package) for name, package in json.loads(pins.read_text(encoding="utf-8")).items())


PACKAGES: Final = read_packages(Path(__file__).with_name("front_end.json"))
"""The packages of the page."""


def needed_files(packages: Sequence[Package] = PACKAGES) -> dict[str, str]:
    """Return the digests of the files of packages, by path."""
    return {f"{package.name}/{file}": digest for package in packages for file, digest in package.files.items()}


def front_end_folder() -> Path:
    """Return the folder in which Solara looks for front ends."""
    from solara.server import settings

    return Path(settings.assets.proxy_cache_dir)


def find_faults(folder: Path, packages: Sequence[Package] = PACKAGES) -> dict[str, str]:
    """Return the files of packages that are ``missing`` or ``damaged`` in a folder."""
    faults = {}
    for name, digest in needed_files(packages).items():
        try:
            if sha512_digest((folder / name).read_bytes()) != digest:
                faults[name] = "damaged"
        except OSError:
            faults[name] = "missing"
    return faults


def sha512_digest(content: bytes) -> str:
    """Return the SHA-512 digest of bytes in the format of npm and browsers.

    >>> sha512_digest(b"")[:24]
    'sha512-z4PhNX7vuL3xVChQ1'
    """
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def fetch_front_end(folder: Path, packages: Sequence[Package] = PACKAGES) -> list[str]:
    """Fetch missing or damaged files of packages into a folder, and return their names.

    Files come from npm's registry if npm is installed, else from the server in Solara's settings. Files with a wrong
    digest are discarded.

    Raises:
        FrontEndError: If files cannot be fetched or have wrong digests, or the folder is not writable.
    """
    faults, npm = find_faults(folder, packages), shutil.which("npm")
    try:
        for package in packages:
            files = [file for file in package.files if f"{package.name}/{file}" in faults]
            if files:
                _write_files(_unpack(npm, package, files) if npm else _download(package, files), package, folder)
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror or error}"
        hint = "set SOLARA_ASSETS_PROXY_CACHE_DIR to another folder, also for 'prism app'"
        raise FrontEndError(f"the front end could not be stored: {reason} ({hint})") from None
    return list(faults)


def _unpack(npm: str, package: Package, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a package from the archive that npm fetches."""
    with tempfile.TemporaryDirectory() as tmp:
        command = [npm, "pack", "--silent", "--fetch-retries=1", f"--pack-destination={tmp}", package.name]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd=tmp)  # noqa: S603
        except subprocess.TimeoutExpired:
            hint = "can this machine reach its registry?"
            raise FrontEndError(f"{package.name}: npm did not fetch it within {_TIMEOUT_S} s: {hint}") from None
        archives = list(Path(tmp).glob("*.tgz"))
        if result.returncode or not archives:
            reason = " ".join(result.stderr.split()) or f"exit code {result.returncode}"
            raise FrontEndError(f"{package.name}: npm could not fetch it: {reason[:300]}")
        content = archives[0].read_bytes()
    if sha512_digest(content) != package.integrity:
        raise FrontEndError(f"{package.name}: the package that npm fetched is not the one that PRISM was tested with")
    # unpack the archive once, because each read of a compressed archive would start from its beginning
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as archive:
        for file in files:
            member = archive.extractfile(f"package/{file}")
            if member is not None:
                yield file, member.read()


def _download(package: Package, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield files of a package from the server that Solara's pages use."""
    import httpx
    import solara.settings

    address = f"{solara.settings.assets.cdn}".rstrip("/")
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
        for file in files:
            try:
                yield file, client.get(f"{address}/{package.name}/{file}").raise_for_status().content
            except httpx.HTTPError as error:
                reason = f"{address} does not serve {file}: {error} (install npm to use its registry instead)"
                raise FrontEndError(f"{package.name}: {reason}") from None


def _write_files(contents: Iterable[tuple[str, bytes]], package: Package, folder: Path) -> None:
    """Write files into the folder of their package, each atomically."""
    for file, content in contents:
        if sha512_digest(content) != package.files[file]:
            raise FrontEndError(f"{package.name}: {file} is not the file that PRISM was tested with: it was discarded")
        path = folder / package.name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
            part.write(content)
        Path(part.name).chmod(0o644)
        os.replace(part.name, path)
