"""The contents of an archive, and the cleaner that takes paths of this machine and secrets out of them."""

import html
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

import yaml

from prism_mesa.errors import DataError, redact_credentials
from prism_mesa.studies.supplement.zip_files import Content, opened_content

REMOVED: Final = "[removed]"  # what stands where a secret, or the folders of a path, stood
_NAMED_SECRET: Final = re.compile(r"key|token|secret|passw(?:or)?d|pwd|credential", re.IGNORECASE)
_SHORTEST: Final = 8  # characters of a secret; what is shorter, as ``KEYBOARD=us``, would be found anywhere
_KEYS: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_\w{20,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]{0,8000}?-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Keys by the forms in which well-known services hand them out."""
_PATH: Final = re.compile(
    r"(?<![\w/.~+\]-])(?:file://)?(?:[A-Za-z]:[\\/]|~?/)(?:[^\s/\\'\",;:()\[\]{}<>|]+[\\/])+[^\s/\\'\",;:()\[\]{}<>|]*"
)
"""A path from the root on, of two names or more."""
_QUOTED: Final = re.compile(r"""(['"])((?:[A-Za-z]:[\\/]|/)[^'"\n]+)\1""")  # what may be a path with blanks in it
_HOME: Final = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[\\/][^\s/\\'\"<>:;,)]+")


class Cleaner:
    """Takes what is of this machine out of texts and values, and remembers the paths that it met.

    Args:
        folders: Folders whose paths are of this machine, besides the home, the working directory, the folder of
            temporary files, and that of Python.
        environment: Variables, of which those with the name of a secret hold one.
    """

    def __init__(self, folders: Iterable[str | Path] = (), environment: Mapping[str, str] = os.environ) -> None:
        ours = [os.path.expanduser("~"), os.getcwd(), tempfile.gettempdir(), sys.prefix, *map(str, folders)]
        self._paths = {_plain(path) for path in ours if _is_absolute(path) and len(_plain(path)) > 1}
        self._watched = set(filter(_is_deep, map(_plain, (os.path.expanduser("~"), os.getcwd(), *folders))))
        self._met: dict[str, str] = {}
        self._called: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._secrets = sorted(
            {
                value
                for name, value in environment.items()
                if _NAMED_SECRET.search(name) and len(value) >= _SHORTEST and not _is_absolute(value)
            },
            key=len,
            reverse=True,
        )

    def call(self, path: str | Path, name: str) -> None:
        """Let a name, such as that in an archive, stand for a path from now on.

        A path from the root on is replaced wherever it is told; another one only where it is the whole of a value.
        """
        (self._met if _is_deep(str(path)) else self._called)[_plain(path)] = name

    def hide(self, *words: str) -> None:
        """Count words, such as the address of a server, as secrets in texts and values, but not where they may stay."""
        self._hidden.update(words)

    def text(self, text: str) -> str:
        """Return a text without what is of this machine: paths that are known, and secrets."""
        return self._without_secrets(
            _HOME.sub(REMOVED, _without(_without(text, self._met), dict.fromkeys(self._paths, REMOVED)))
        )

    def value(self, value: Any) -> Any:
        """Return values, nested as in JSON, without secrets and without the folders of paths; of a path its last name.

        Paths that are met count as known from then on.
        """
        if isinstance(value, Mapping):
            return {str(key): self.value(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(one) for one in value]
        return self._words(value) if isinstance(value, str) else value

    def found_in(self, text: str) -> str:
        """Return what of this machine a text holds, in words that do not repeat it; empty if nothing."""
        if any(one in text for secret in self._secrets for one in _written(secret)) or _KEYS.search(text):
            return "a key or password"
        return "a path of this machine" if any(one in text for path in self._watched for one in _written(path)) else ""

    @property
    def needles(self) -> tuple[list[str], list[str]]:
        """Texts that nothing packed may hold: secrets, and paths."""
        return self._secrets, sorted(self._watched)

    def _words(self, text: str) -> str:
        if text and _plain(text) in self._called:
            return self._called[_plain(text)]
        if _plain(text) in self._met or (_is_deep(text) and "\n" not in text):
            return self._last_name(text)
        text = _QUOTED.sub(self._quoted, _without(text, self._met))
        return self.text(_PATH.sub(lambda found: self._last_name(found[0]), text))

    def _quoted(self, found: re.Match[str]) -> str:
        """Return what was found between quotes, without its folders if it is a path."""
        quote, words = found.groups()
        return f"{quote}{self._last_name(words)}{quote}" if _is_deep(words) else found[0]

    def _last_name(self, path: str) -> str:
        """Return a path without its folders."""
        named = self._met.setdefault(_plain(path), REMOVED)
        if named != REMOVED:
            return named
        parts = [part for part in re.split(r"[\\/]", path) if part]
        return self._without_secrets(f"{REMOVED}/{parts[-1]}" if len(parts) > 2 else REMOVED)

    def _without_secrets(self, text: str) -> str:
        for secret in (*self._secrets, *sorted(self._hidden, key=lambda word: (-len(word), word))):
            for one in _written(secret):
                text = text.replace(one, REMOVED)
        return _KEYS.sub(REMOVED, redact_credentials(text))


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _without(text: str, paths: Mapping[str, str]) -> str:
    """Return a text with what stands for paths, the longest first, where they end as a path does."""
    for path in sorted(paths, key=lambda path: (-len(path), path)):
        for one in _written(path):
            if one in text:
                pattern = rf"(?<![\w/]){re.escape(one)}(?=$|[^\w.-]|\.(?:\W|$))"
                text = re.sub(pattern, paths[path].replace("\\", r"\\"), text)
    return text


def _written(text: str) -> list[str]:
    """Return a text as it stands in plain texts, in HTML, and in JSON."""
    forms = (text, html.escape(text), html.escape(text, quote=False), json.dumps(text)[1:-1])
    return list(dict.fromkeys(forms))


def _plain(path: str | Path) -> str:
    return str(path).rstrip("/\\")


def _is_deep(path: str) -> bool:
    """Return whether a path has two names or more, so that it stands for nothing else in a text."""
    return _is_absolute(path) and len([part for part in re.split(r"[\\/]", path) if part]) > 1


FACTS: Final = "archive.json"
CHECKSUMS: Final = "manifest-sha256.txt"  # as BagIt names it (RFC 8493): ``sha256sum -c`` reads it
CRATE: Final = "ro-crate-metadata.json"
VERSIONS: Final = "versions.json"
README: Final = "README.md"
ODD: Final = "odd.md"
TEXTS: Final = (".json", ".yaml", ".yml", ".md", ".html", ".txt", ".py", ".csv")
FORMAT: Final = 1  # of archives; one that says another is another version's


@dataclass
class Contents:
    """What is packed, as it comes together.

    Attributes:
        kind: `run` or `study`.
        files: Content of each file by its name in the archive.
        inputs: Where each file that runs read lies, by its name in the archive, packed or not.
        left_out: What is not in it that a reader might look for, a line each.
        actions: Of each run what the crate says of it.
    """

    kind: str
    name: str
    cleaner: Cleaner
    files: dict[str, Content] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    actions: list["Action"] = field(default_factory=list)

    def put_values(self, name: str, values: Mapping[str, Any]) -> None:
        """Put values as a JSON file."""
        self.files[name] = (json.dumps(self.cleaner.value(values), indent=2) + "\n").encode()

    def put_yaml(self, name: str, values: Mapping[str, Any]) -> None:
        """Put values as a YAML file."""
        text = yaml.safe_dump(self.cleaner.value(values), sort_keys=False, allow_unicode=True)
        self.files[name] = text.encode()

    def put_text(self, name: str, text: str) -> None:
        """Put a text."""
        self.files[name] = self.cleaner.text(text).encode()

    def leave_out(self, told: str) -> None:
        """Note what is not in the archive, and why."""
        line = self.cleaner.value(told)
        if line not in self.left_out:
            self.left_out.append(line)

    def check(self) -> None:
        """Make sure that no text holds what is of this machine.

        Raises:
            DataError: If one does.
        """
        for name, content in self.files.items():
            if not name.endswith(TEXTS):
                continue
            text = content.read_bytes() if isinstance(content, Path) else content
            if found := self.cleaner.found_in(text.decode("utf-8", errors="replace")):
                raise DataError(f"{name}: holds {found}: nothing was packed; take it out, or leave own data out")


@dataclass(frozen=True)
class Action:
    """That files were made by PRISM, for the crate.

    Attributes:
        description: The command that makes it again.
        started: When, as ISO 8601; None if not known.
        failed: Why it failed; empty if it did not.
        unended: Its status, if it has not come to its end, so that nothing is there to repeat; else empty.
        read: Names of the files that it read.
        made: Names of the files, or folders, that it made.
    """

    id: str
    name: str
    description: str
    started: str | None
    ended: str | None
    failed: str
    unended: str
    read: tuple[str, ...]
    made: tuple[str, ...]


def checksums(files: Mapping[str, Content]) -> bytes:
    """Return the SHA-256 of each file, a line each, as ``sha256sum`` writes them."""
    lines = []
    for name in sorted(files):
        with opened_content(files[name]) as stream:
            lines.append(f"{file_digest(stream, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines).encode()
