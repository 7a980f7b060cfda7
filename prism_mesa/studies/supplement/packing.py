"""The contents of an archive, and a cleaner that removes secrets and paths of this machine."""

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
from prism_mesa.studies.supplement.zip_files import Content, open_content

REMOVED: Final = "[removed]"  # stands for a secret, or the folders of a path
CREDENTIAL: Final = "a key or password"
_NAMED_SECRET: Final = re.compile(r"key|token|secret|passw(?:or)?d|pwd|credential", re.IGNORECASE)
_MIN_SECRET: Final = 8  # characters of a secret; shorter values such as ``KEYBOARD=us`` occur in any text
_KEYS: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_\w{20,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]{0,8000}?-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Keys in the forms of well-known services."""
_PATH: Final = re.compile(
    r"(?<![\w/.~+\]-])(?:file://)?(?:[A-Za-z]:[\\/]|~?/)(?:[^\s/\\'\",;:()\[\]{}<>|]+[\\/])+[^\s/\\'\",;:()\[\]{}<>|]*"
)
"""An absolute path of at least two names."""
_QUOTED: Final = re.compile(r"""(['"])((?:[A-Za-z]:[\\/]|/)[^'"\n]+)\1""")  # perhaps a path with spaces
_HOME: Final = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[\\/][^\s/\\'\"<>:;,)]+")


class Cleaner:
    """Removes paths of this machine and secrets from texts and values, and remembers the paths that it saw.

    Known paths are the home, the working directory, the folders of temporary files and Python, and `folders`. Secrets
    are values of `environment` variables with a name such as ``API_KEY``.
    """

    def __init__(self, folders: Iterable[str | Path] = (), environment: Mapping[str, str] = os.environ) -> None:
        home, working = os.path.expanduser("~"), os.getcwd()
        known_paths = [home, working, tempfile.gettempdir(), sys.prefix, *map(str, folders)]
        self._paths = {_plain(path) for path in known_paths if _is_absolute(path) and len(_plain(path)) > 1}
        self._watched = sorted(set(filter(_is_deep, map(_plain, (home, working, *folders)))))
        self._seen: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._hidden: set[str] = set()
        secrets = {
            value
            for name, value in environment.items()
            if _NAMED_SECRET.search(name) and len(value) >= _MIN_SECRET and not _is_absolute(value)
        }
        self._secrets = sorted(secrets, key=len, reverse=True)

    def replace_path(self, path: str | Path, name: str) -> None:
        """Replace a path with a name from now on: an absolute path anywhere, a relative path only as a whole value."""
        (self._seen if _is_deep(str(path)) else self._names)[_plain(path)] = name

    def hide(self, *words: str) -> None:
        """Treat words such as a server's address as secrets."""
        self._hidden.update(words)

    def text(self, text: str) -> str:
        """Return `text` without known paths and secrets."""
        text = _without(_without(text, self._seen), dict.fromkeys(self._paths, REMOVED))
        return self._without_secrets(_HOME.sub(REMOVED, text))

    def value(self, value: Any) -> Any:
        """Return JSON-like values without secrets, and with paths cut to their last names; the paths become known."""
        if isinstance(value, Mapping):
            return {str(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if not isinstance(value, str):
            return value
        if value and _plain(value) in self._names:
            return self._names[_plain(value)]
        if _plain(value) in self._seen or (_is_deep(value) and "\n" not in value):
            return self._last_name(value)
        text = _QUOTED.sub(
            lambda m: f"{m[1]}{self._last_name(m[2])}{m[1]}" if _is_deep(m[2]) else m[0], _without(value, self._seen)
        )
        return self.text(_PATH.sub(lambda match: self._last_name(match[0]), text))

    def leak_in(self, text: str) -> str:
        """Return the kind of secret or path that `text` contains; empty without any."""
        for kind, words in self.forbidden.items():
            if any(form in text for word in words for form in _forms(word)):
                return kind
        return CREDENTIAL if _KEYS.search(text) else ""

    @property
    def forbidden(self) -> dict[str, list[str]]:
        """Words that no packed file may contain, by kind."""
        return {CREDENTIAL: self._secrets, "a path of this machine": self._watched}

    def _last_name(self, path: str) -> str:
        name = self._seen.setdefault(_plain(path), REMOVED)
        if name != REMOVED:
            return name
        parts = [part for part in re.split(r"[\\/]", path) if part]
        return self._without_secrets(f"{REMOVED}/{parts[-1]}" if len(parts) > 2 else REMOVED)

    def _without_secrets(self, text: str) -> str:
        for secret in (*self._secrets, *sorted(self._hidden, key=lambda word: (-len(word), word))):
            for form in _forms(secret):
                text = text.replace(form, REMOVED)
        return _KEYS.sub(REMOVED, redact_credentials(text))


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _without(text: str, names: Mapping[str, str]) -> str:
    for path in sorted(names, key=lambda path: (-len(path), path)):
        for form in _forms(path):
            if form in text:
                pattern = rf"(?<![\w/]){re.escape(form)}(?=$|[^\w.-]|\.(?:\W|$))"
                text = re.sub(pattern, names[path].replace("\\", r"\\"), text)
    return text


def _forms(text: str) -> list[str]:
    """Return `text` as it appears in plain text, HTML and JSON."""
    forms = (text, html.escape(text), html.escape(text, quote=False), json.dumps(text)[1:-1])
    return list(dict.fromkeys(forms))


def _plain(path: str | Path) -> str:
    return str(path).rstrip("/\\")


def _is_deep(path: str) -> bool:
    """Return whether a path is absolute with at least two names, so that it is unambiguous in a text."""
    return _is_absolute(path) and len([part for part in re.split(r"[\\/]", path) if part]) > 1


FACTS: Final = "archive.json"
CHECKSUMS: Final = "manifest-sha256.txt"  # BagIt's name (RFC 8493), which ``sha256sum -c`` reads
CRATE: Final = "ro-crate-metadata.json"
VERSIONS: Final = "versions.json"
README: Final = "README.md"
ODD: Final = "odd.md"
TEXTS: Final = (".json", ".yaml", ".yml", ".md", ".html", ".txt", ".py", ".csv")
FORMAT: Final = 1  # of archives


@dataclass
class Contents:
    """The contents of an archive of a `run` or `study` that is being packed.

    Attributes:
        files: Name in the archive -> content.
        inputs: Name in the archive -> path of an input file, packed or not.
        left_out: Lines on omitted files, with reasons.
    """

    kind: str
    name: str
    cleaner: Cleaner
    files: dict[str, Content] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    actions: list["Action"] = field(default_factory=list)

    def put_values(self, name: str, values: Mapping[str, Any]) -> None:
        """Add values as a JSON file."""
        self.files[name] = (json.dumps(self.cleaner.value(values), indent=2) + "\n").encode()

    def put_yaml(self, name: str, values: Mapping[str, Any]) -> None:
        """Add values as a YAML file."""
        text = yaml.safe_dump(self.cleaner.value(values), sort_keys=False, allow_unicode=True)
        self.files[name] = text.encode()

    def put_text(self, name: str, text: str) -> None:
        """Add a text file."""
        self.files[name] = self.cleaner.text(text).encode()

    def leave_out(self, note: str) -> None:
        """Note an omitted file and the reason."""
        line = self.cleaner.value(note)
        if line not in self.left_out:
            self.left_out.append(line)

    def check(self) -> None:
        """Raise DataError if a text file contains a secret or a path of this machine."""
        for name, content in self.files.items():
            if not name.endswith(TEXTS):
                continue
            text = content.read_bytes() if isinstance(content, Path) else content
            if leak := self.cleaner.leak_in(text.decode("utf-8", errors="replace")):
                raise DataError(f"{name}: contains {leak}: nothing was packed; remove it, or use --no-data")


@dataclass(frozen=True)
class Action:
    """A run or study in the crate: an action that made files.

    Attributes:
        description: The command that repeats it.
        started: Start time as ISO 8601; None if unknown.
        failed: Why it failed; empty if it did not.
        unended: The status of an unfinished run, which cannot be repeated; else empty.
        read: Names of its input files.
        made: Names of the files or folders that it made.
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
    """Return the SHA-256 of each file in the format of ``sha256sum``."""
    lines = []
    for name in sorted(files):
        with open_content(files[name]) as stream:
            lines.append(f"{file_digest(stream, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines).encode()
